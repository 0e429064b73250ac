"""References: everywhere that a key is cited or named by other entries, or a label is referred to."""

from __future__ import annotations

from lsprotocol import types

from astroresearch.lsp.spots import Host, spot_at


async def references(server: Host, params: types.ReferenceParams) -> list[types.Location] | None:
    """All places of the name at the position, in all manuscripts that share a file with this one."""
    spot = await spot_at(server, params.text_document.uri, params.position)
    if spot is None:
        return None
    found: dict[tuple[str, int, int], types.Location] = {}
    for project in await server.projects.around(params.text_document.uri):
        if spot.kind == "label":
            places = project.references_of(spot.name)
            if params.context.include_declaration:
                places = [*project.labels.get(spot.name, []), *places]
            spans = [(p.path, p.start, p.end) for p in places]
        else:
            spans = []
            for name in project.names_of(spot.name):
                if params.context.include_declaration:
                    spans += [(d.path, d.start, d.end) for d in project.find(name)]
                places = [*project.citations_of(name), *project.crossrefs_of(name)]
                spans += [(p.path, p.start, p.end) for p in places]
        for path, start, end in spans:
            if (str(path), start, end) not in found:
                found[str(path), start, end] = server.projects.location(project, path, start, end)
    return list(found.values()) or None

"""Definition: a key's entry, a label's \\label, an include's file."""

from __future__ import annotations

from lsprotocol import types

from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host, spot_at

_START = types.Range(types.Position(0, 0), types.Position(0, 0))


async def definition(server: Host, params: types.DefinitionParams) -> list[types.Location] | None:
    """All places that define what stands at the position."""
    uri = params.text_document.uri
    spot = await spot_at(server, uri, params.position, fresh=False)
    if spot is None:
        return await _included(server, params)
    project = spot.project
    if spot.kind == "label":
        places = [(p.path, p.start, p.end) for p in project.labels.get(spot.name, [])]
    else:
        places = [(d.path, d.start, d.end) for d in project.find(spot.name)]
    return [server.projects.location(project, *place) for place in places] or None


async def _included(server: Host, params: types.DefinitionParams) -> list[types.Location] | None:
    uri = params.text_document.uri
    document = server.documents.get(uri)
    path = server.projects.path(uri)
    if document is None or is_bib(path):
        return None
    project = await server.projects.project(uri)
    offset = document.offset(params.position)
    file = project.tex.get(path)
    for include in file.includes if file is not None else ():
        if include.start <= offset <= include.end and (path, include.start) in project.links:
            return [types.Location(server.projects.uri(project.links[path, include.start]), _START)]
    return None

"""Rename: one key or label everywhere: lists of keys, entries, `crossref`, `ids`, all files of the manuscript."""

from __future__ import annotations

import re
from pathlib import Path

from lsprotocol import types

from astroresearch.errors import Conflict, InvalidInput
from astroresearch.lsp.spots import Host, Spot, spot_at
from astroresearch.manuscript.project import Project

_BAD_KEY = re.compile(r"[\s,{}\"#%~\\=()]")


async def prepare_rename(server: Host, params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
    """The exact name under the cursor; None where nothing can be renamed."""
    spot = await spot_at(server, params.text_document.uri, params.position)
    if spot is None or not (spot.project.find(spot.name) or spot.kind == "label" or _used(spot)):
        return None
    return types.PrepareRenamePlaceholder(spot.range, spot.name)


def _used(spot: Spot) -> bool:
    return bool(spot.project.citations_of(spot.name))


async def rename(server: Host, params: types.RenameParams) -> types.WorkspaceEdit | None:
    """Edits for every place of the name; versioned where the editor takes that.

    Raises:
        InvalidInput: The new name can't be a key or label.
        Conflict: The manuscript has that name already.
    """
    spot = await spot_at(server, params.text_document.uri, params.position)
    if spot is None:
        return None
    new = params.new_name.strip()
    _check(spot, new)
    spans: dict[Path, dict[tuple[int, int], Project]] = {}
    for project in await server.projects.around(params.text_document.uri):
        for path, start, end in _places(project, spot):
            spans.setdefault(path, {}).setdefault((start, end), project)
    edits: list[types.TextDocumentEdit] = []
    for path, places in spans.items():
        document = server.documents.by_path(path)
        texts = [
            types.TextEdit(server.projects.location(project, path, *span).range, new)
            for span, project in sorted(places.items(), key=lambda item: item[0])
        ]
        version = document.version if document is not None else None
        ref = types.OptionalVersionedTextDocumentIdentifier(server.projects.uri(path), version)
        edits.append(types.TextDocumentEdit(ref, texts))
    if server.supports("workspace", "workspace_edit", "document_changes"):
        return types.WorkspaceEdit(document_changes=edits)
    return types.WorkspaceEdit(
        changes={e.text_document.uri: [t for t in e.edits if isinstance(t, types.TextEdit)] for e in edits}
    )


def _check(spot: Spot, new: str) -> None:
    if not new or _BAD_KEY.search(new):
        raise InvalidInput(
            f"`{new}` can't be a {spot.kind}.", hint="Leave out blanks, commas, braces and TeX's own characters.",
            field="newName",
        )  # fmt: skip
    if new == spot.name:
        return
    taken = spot.project.labels.get(new) if spot.kind == "label" else spot.project.find(new)
    if taken and new.lower() != spot.name.lower():
        raise Conflict(f"The manuscript already has a {spot.kind} `{new}`.", hint="Choose another name.")


def _places(project: Project, spot: Spot) -> list[tuple[Path, int, int]]:
    if spot.kind == "label":
        both = [*project.labels.get(spot.name, []), *project.references_of(spot.name)]
        return [(p.path, p.start, p.end) for p in both]
    places = [(d.path, d.start, d.end) for d in project.find(spot.name)]
    uses = [*project.citations_of(spot.name), *project.crossrefs_of(spot.name)]
    return places + [(p.path, p.start, p.end) for p in uses]

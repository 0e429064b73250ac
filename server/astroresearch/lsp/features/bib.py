"""`astroresearch/bib/insert`: a paper's BibTeX into the manuscript's .bib, and its key at the cursor, as one versioned edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from lsprotocol import types as T

from astroresearch.errors import Conflict, InvalidInput
from astroresearch.lsp.documents import apply_edit
from astroresearch.lsp.params import BibInsert
from astroresearch.lsp.text import range_in
from astroresearch.manuscript.citations import identifiers
from astroresearch.manuscript.edits import (
    bib_insertion,
    cite_insertion,
    entry_key,
    free_key,
    preferred_style,
    with_key,
)

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server
    from astroresearch.manuscript.project import Project


async def insert(server: Server, params: BibInsert) -> dict[str, Any]:
    """Adds the entry unless the manuscript has it, then cites it where `position` says.

    The entry comes from the resolved record of ADS, arXiv or the library, never from a model.
    """
    services = await server.ready()
    if not server.supports("workspace", "apply_edit"):
        raise InvalidInput("This editor takes no edits from a server.", hint="Use `astroresearch export` instead.")
    uri = params.text_document.uri
    project = await server.projects.project(uri)
    paper = await services.catalogue.get(params.paper)
    entry = await services.bibtex_of(paper)
    ids = paper.identifiers
    known = _known_key(project, [params.paper, entry_key(entry), ids.bibcode, ids.doi, ids.arxiv])
    edits: dict[str, tuple[int | None, list[T.TextEdit]]] = {}
    target = ""
    key = known
    if not known:
        bib = _bib_of(project, server.projects.path(uri))
        document = server.documents.by_path(bib)
        text = document.text if document is not None else await anyio.to_thread.run_sync(_read, bib)
        wanted = params.key or (params.paper if _is_undefined_key(project, params.paper) else entry_key(entry))
        key = free_key(text, wanted)
        span = bib_insertion(text, with_key(entry, key))
        where = range_in(text, span.start, span.end, str(server.encoding.value))
        target = server.projects.uri(bib)
        edits[target] = (document.version if document is not None else None, [T.TextEdit(where, span.new)])
    _cite(server, params, key, edits)
    if edits and (refused := await apply_edit(server, edits, f"Cite {key}")):
        raise Conflict(f"The editor did not apply the edit: {refused}", hint="Try again.")
    return {"key": key, "added": not known, "file": target}


def _cite(server: Server, params: BibInsert, key: str, edits: dict[str, tuple[int | None, list[T.TextEdit]]]) -> None:
    document = server.documents.get(params.text_document.uri)
    if params.position is None or document is None:
        return
    position = T.Position(int(params.position.get("line", 0)), int(params.position.get("character", 0)))
    span = cite_insertion(document.text, document.offset(position), key, preferred_style(document.text))
    if span.new or span.start != span.end:
        edit = T.TextEdit(document.range(span.start, span.end), span.new)
        edits[document.uri] = (document.version, [edit])


def _known_key(project: Project, names: list[str]) -> str:
    for name in names:
        if name and (found := project.find(name)) and found[0].entry is not None:
            return found[0].entry.key
    wanted = {name.lower() for name in names[2:] if name}
    for _, _, _, entry in project.entries():
        ids = identifiers(entry)
        if wanted & {name.lower() for name in (ids.bibcode, ids.doi, ids.arxiv) if name}:
            return entry.key
    return ""


def _is_undefined_key(project: Project, name: str) -> bool:
    return name in project.uses and not project.find(name)


def _bib_of(project: Project, path: Path) -> Path:
    if project.bibs:
        return next(iter(project.bibs))
    raise InvalidInput(
        f"{path.name} belongs to no manuscript with a .bib file.",
        hint="Add \\bibliography{refs} (or \\addbibresource{refs.bib}) and an empty refs.bib first.",
    )


def _read(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")

"""Completion: keys by what one remembers of a paper, labels, and what a .bib entry can hold.

Lists are short and incomplete on purpose: the ranking is ours, and each letter asks anew. Documentation comes on resolve.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from lsprotocol import types

from astroresearch.domain.identifiers import looks_like
from astroresearch.domain.paper import Paper
from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host
from astroresearch.lsp.text import TextDocument
from astroresearch.manuscript import latex
from astroresearch.manuscript.bibtex import BibEntry, unquote
from astroresearch.manuscript.check import REQUIRED
from astroresearch.manuscript.citations import render
from astroresearch.manuscript.journals import JOURNALS
from astroresearch.manuscript.latex import Name, caption_near
from astroresearch.manuscript.project import Project
from astroresearch.manuscript.unicode import fold, plain

LIMIT = 50
LIBRARY_LIMIT = 5
THREAD_FROM = 1_000
"Entries from which on a search leaves the event loop."
LIBRARY_S = 0.03
"How long a keystroke waits for the library's papers."
INSERT_COMMAND = "astroresearch.bib.insert"
_FIELD_NAMES = (
    "author title journal year volume number pages doi eprint archivePrefix primaryClass adsurl booktitle editor publisher "
    "school institution month keywords abstract url note ids crossref"
)


async def completion(server: Host, params: types.CompletionParams) -> dict[str, Any] | None:
    """A CompletionList as plain JSON: fifty typed objects would cost more than finding them."""
    uri = params.text_document.uri
    document = server.documents.get(uri)
    if document is None:
        return None
    path = server.projects.path(uri)
    text, offset = document.text, document.offset(params.position)
    at = latex.cursor(text, offset)
    if is_bib(path) and (at is None or at.kind == "other"):
        return await _in_bib(server, document, path, text, offset)
    if at is None or at.kind == "other":
        return {"isIncomplete": False, "items": []}
    project = await server.projects.project(uri, fresh=False)
    items = (
        await _keys(server, project, document, at, offset)
        if at.kind == "cite"
        else _labels(project, document, at, offset)
    )
    return {"isIncomplete": True, "items": items}


def _place(server: Host, document: TextDocument, at: latex.Cursor, offset: int) -> dict[str, Any]:
    start, cursor, end = (_json(document.position(o)) for o in (at.start, offset, at.end))
    if server.supports("text_document", "completion", "completion_item", "insert_replace_support"):
        return {"insert": {"start": start, "end": cursor}, "replace": {"start": start, "end": end}}
    return {"range": {"start": start, "end": cursor}}


def _json(position: types.Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}


async def _keys(
    server: Host, project: Project, document: TextDocument, at: latex.Cursor, offset: int
) -> list[dict[str, Any]]:
    index = await server.projects.index(project)
    query = at.typed
    if len(index) > THREAD_FROM:
        found = await anyio.to_thread.run_sync(index.search, query, LIMIT)
    else:
        found = index.search(query, LIMIT)
    place = _place(server, document, at, offset)
    taken = set(at.others)
    items: list[dict[str, Any]] = []
    for entry in (e for e in found if e.key not in taken):
        detail = _detail(entry)
        items.append(_item(entry.key, types.CompletionItemKind.Reference, query, place, len(items), detail))
        items[-1]["data"] = {"uri": document.uri, "key": entry.key}
    bibitems = sorted({b.name for file in project.tex.values() for b in file.bibitems} - taken)
    for key in bibitems:
        if fold(query) in fold(key):
            items.append(_item(key, types.CompletionItemKind.Reference, query, place, len(items), "\\bibitem"))
    if len(query) >= 3:
        items += await _from_elsewhere(server, project, document, query, place, len(items))
    return items


def _item(label: str, kind: int, query: str, place: dict[str, Any], rank: int, detail: str = "") -> dict[str, Any]:
    item = {"label": label, "kind": int(kind), "sortText": f"{rank:03}", "textEdit": {"newText": label, **place}}
    if detail:
        item["detail"] = detail
    if not label.startswith(query):
        # The editor would drop what does not begin like the typed text, such as a title's word.
        item["filterText"] = query
    return item


def _detail(entry: BibEntry) -> str:
    """`Smith+ 2019: Title…`, cheap: no name is parsed."""
    values = entry.body.values
    who = plain(re.split(r"\sand\s|,", unquote(values.get("author") or values.get("editor") or ""), maxsplit=1)[0])
    year = plain(unquote(values.get("year") or values.get("date") or ""))[:4]
    title = plain(unquote(values.get("title", "")))
    return f"{who[:30]} {year}: {title[:70]}".strip()


async def _from_elsewhere(
    server: Host, project: Project, document: TextDocument, query: str, place: dict[str, Any], rank: int
) -> list[dict[str, Any]]:
    """Papers of the library below the .bib's own; choosing one also adds its entry. Never waits long."""
    papers: Sequence[Paper] = ()
    ask = getattr(server, "library_candidates", None)
    if ask is not None:
        with anyio.move_on_after(LIBRARY_S):
            papers = await ask(query) or ()
    items: list[dict[str, Any]] = []
    if looks_like(query) == "bibcode" and not project.find(query):
        items.append(_inserting(document, query, query, "Add this paper's entry to the .bib", place, rank, query))
    for paper in papers:
        code = paper.identifiers.bibcode
        if not code or len(items) >= LIBRARY_LIMIT or _has(project, paper):
            continue
        detail = f"{paper.authors[0].split(',')[0] if paper.authors else ''} {paper.year or ''}: {paper.title[:60]}"
        said = f"From your library, adds the entry: {detail}"
        items.append(_inserting(document, code, query, said, place, rank + len(items), code))
    return items


def _inserting(
    document: TextDocument, label: str, query: str, detail: str, place: dict[str, Any], rank: int, paper: str
) -> dict[str, Any]:
    item = _item(label, types.CompletionItemKind.File, query, place, rank + 100, detail)
    item["command"] = {
        "title": "Add the entry",
        "command": INSERT_COMMAND,
        "arguments": [{"paper": paper, "textDocument": {"uri": document.uri}}],
    }
    return item


def _has(project: Project, paper: Paper) -> bool:
    names = [n for n in (paper.identifiers.bibcode, paper.identifiers.doi, paper.identifiers.arxiv) if n]
    return any(name in bib.text for bib in project.bibs.values() for name in names)


def _labels(project: Project, document: TextDocument, at: latex.Cursor, offset: int) -> list[dict[str, Any]]:
    query = fold(at.typed)
    start, end = _json(document.position(at.start)), _json(document.position(offset))
    place = {"range": {"start": start, "end": end}}
    found: list[tuple[int, str, str]] = []
    for name, places in project.labels.items():
        if name in at.others:
            continue
        caption = caption_near(project.tex[places[0].path], Name(name, places[0].start, places[0].end))
        folded = fold(name)
        score = 0 if folded.startswith(query) else 1 if query in folded else 2 if query in fold(caption) else 3
        if score < 3:
            found.append((score, name, plain(caption)[:80]))
    found.sort()
    kind = types.CompletionItemKind.Reference
    return [_item(n, kind, at.typed, place, rank, detail) for rank, (_, n, detail) in enumerate(found[:LIMIT])]


async def _in_bib(server: Host, document: TextDocument, path: Path, text: str, offset: int) -> dict[str, Any] | None:
    begin = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    line = text[begin:offset]
    if match := re.search(r"^\s*@([A-Za-z]*)$", line):
        return _words(document, sorted(REQUIRED), match[1], offset, types.CompletionItemKind.Class)
    if match := re.search(r"journal\w*\s*=\s*[{\"]?\s*\\?([A-Za-z]*)$", line, re.I):
        words = [(f"\\{macro}", name) for macro, name in JOURNALS.items()]
        typed = line[match.end() - len(match[1]) - (line[match.start(1) - 1 : match.start(1)] == "\\") :]
        return _pairs(document, words, typed, offset, types.CompletionItemKind.Constant)
    if match := re.search(r"(?:crossref|xref|xdata|related|entryset)\s*=\s*[{\"]([^{}\"]*)$", line, re.I):
        project = await server.projects.project(document.uri, fresh=False)
        typed = match[1].rsplit(",", 1)[-1].strip()
        index = await server.projects.index(project)
        words = [(entry.key, _detail(entry)) for entry in index.search(typed, LIMIT)]
        return _pairs(document, words, typed, offset, types.CompletionItemKind.Reference, every=True)
    if match := re.search(r"^\s*([A-Za-z]*)$", line):
        project = await server.projects.project(document.uri, fresh=False)
        bib = project.bibs.get(path)
        entry = bib.at(offset) if bib is not None else None
        if entry is not None:
            words_left = [
                name for name in _FIELD_NAMES.split() if name.lower() not in entry.body.values or name == match[1]
            ]
            return _words(document, words_left, match[1], offset, types.CompletionItemKind.Field)
    return {"isIncomplete": False, "items": []}


def _words(document: TextDocument, words: Sequence[str], typed: str, offset: int, kind: int) -> dict[str, Any]:
    return _pairs(document, [(word, "") for word in words], typed, offset, kind)


def _pairs(
    document: TextDocument,
    words: Sequence[tuple[str, str]],
    typed: str,
    offset: int,
    kind: int,
    *,
    every: bool = False,
) -> dict[str, Any]:
    start, end = _json(document.position(offset - len(typed))), _json(document.position(offset))
    place = {"range": {"start": start, "end": end}}
    query = typed.lower()
    fitting = [(w, d) for w, d in words if every or query in w.lower() or (len(query) > 2 and query in d.lower())]
    items = [_item(word, kind, typed, place, rank, detail) for rank, (word, detail) in enumerate(fitting[:100])]
    return {"isIncomplete": every, "items": items}


async def resolve(server: Host, item: types.CompletionItem) -> types.CompletionItem:
    """Adds the reference and abstract of a key."""
    data = item.data if isinstance(item.data, dict) else {}
    uri, key = data.get("uri"), data.get("key")
    if not isinstance(uri, str) or not isinstance(key, str):
        return item
    project = await server.projects.project(uri, fresh=False)
    found = project.find(key)
    entry = found[0].entry if found else None
    if entry is not None:
        shown = render(entry, project.strings, project.parent(entry))
        abstract = shown.abstract if len(shown.abstract) < 1200 else shown.abstract[:1200].rsplit(" ", 1)[0] + " …"
        parts = [shown.reference, abstract]
        item.documentation = types.MarkupContent(
            types.MarkupKind.PlainText, "\n\n".join(part for part in parts if part)
        )
    return item

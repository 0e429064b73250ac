"""Symbols and folding: sections, labels and floats of .tex files, entries of .bib files."""

from __future__ import annotations

import re
from typing import Any

import anyio.to_thread
from lsprotocol import types

from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host
from astroresearch.lsp.text import TextDocument
from astroresearch.manuscript.bibtex import BibFile
from astroresearch.manuscript.citations import render
from astroresearch.manuscript.latex import Name, Section, TexFile, caption_near
from astroresearch.manuscript.unicode import fold, plain

MAX_SYMBOLS = 200
_FOLDED = re.compile(r"document$")


async def document_symbol(
    server: Host, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol] | list[dict[str, Any]] | None:
    """The outline of one file."""
    project = await server.projects.project(params.text_document.uri)
    path = server.projects.path(params.text_document.uri)
    if path in project.bibs and is_bib(path):
        bib = project.bibs[path]
        return await anyio.to_thread.run_sync(lambda: _bib_symbols(bib, server.projects.view(path, bib.text)))
    if path not in project.tex:
        return None
    file = project.tex[path]
    return await anyio.to_thread.run_sync(lambda: _tex_symbols(file, server.projects.view(path, file.text)))


def _bib_symbols(bib: BibFile, view: TextDocument) -> list[dict[str, Any]]:
    """As plain JSON: thousands of typed objects would take the event loop too long to write."""

    def where(start: int, end: int) -> dict[str, Any]:
        one, two = view.position(start), view.position(end)
        return {
            "start": {"line": one.line, "character": one.character},
            "end": {"line": two.line, "character": two.character},
        }

    return [
        {
            "name": entry.key or f"@{entry.kind}",
            "detail": entry.kind,
            "kind": int(types.SymbolKind.Constant),
            "range": where(entry.start, entry.end),
            "selectionRange": where(*entry.key_range),
        }
        for entry in bib.entries
    ]


def _tex_symbols(file: TexFile, view: TextDocument) -> list[types.DocumentSymbol]:
    top: list[types.DocumentSymbol] = []
    stack: list[tuple[int, types.DocumentSymbol]] = []
    marks: list[Section | Name] = sorted([*file.sections, *file.labels], key=lambda mark: mark.start)
    ends = _section_ends(file)
    for mark in marks:
        if isinstance(mark, Section):
            level, end = ends[mark.start]
            symbol = types.DocumentSymbol(
                plain(mark.title) or "(no title)", types.SymbolKind.Module, view.range(mark.start, end),
                view.range(mark.start, mark.end), children=[],
            )  # fmt: skip
            while stack and stack[-1][0] >= level:
                stack.pop()
            _place(top, stack, symbol)
            stack.append((level, symbol))
        else:
            where = view.range(mark.start, mark.end)
            detail = plain(caption_near(file, mark))[:80] if len(marks) < 500 else ""
            _place(top, stack, types.DocumentSymbol(mark.name or "label", types.SymbolKind.Key, where, where, detail))
    return top


def _place(
    top: list[types.DocumentSymbol], stack: list[tuple[int, types.DocumentSymbol]], symbol: types.DocumentSymbol
) -> None:
    children = stack[-1][1].children if stack else top
    if isinstance(children, list):
        children.append(symbol)


def _section_ends(file: TexFile) -> dict[int, tuple[int, int]]:
    """Start of a section → its level and where it ends: before the next one that is as high or higher."""
    ends: dict[int, tuple[int, int]] = {}
    for number, section in enumerate(file.sections):
        after = (s.start for s in file.sections[number + 1 :] if s.level <= section.level)
        ends[section.start] = (section.level, next(after, len(file.masked.rstrip())))
    return ends


async def workspace_symbol(server: Host, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    """Entries, labels and sections of the open manuscripts that hold the query."""
    query = fold(params.query)
    found: list[types.SymbolInformation] = []
    for project in await server.projects.roots():
        for path, file in project.tex.items():
            for kind, name, start, end in _names(file):
                if query in fold(name) and len(found) < MAX_SYMBOLS:
                    where = server.projects.location(project, path, start, end)
                    found.append(types.SymbolInformation(where, name, kind, container_name=path.name))
        index = await server.projects.index(project)
        keys = {entry.key for entry in index.search(params.query, 50)}
        for path, base, _, entry in project.entries():
            if entry.key in keys and len(found) < MAX_SYMBOLS:
                start, end = entry.key_range
                where = server.projects.location(project, path, base + start, base + end)
                detail = render(entry, project.strings).short
                found.append(
                    types.SymbolInformation(where, entry.key, types.SymbolKind.Constant, container_name=detail)
                )
    return found


def _names(file: TexFile) -> list[tuple[types.SymbolKind, str, int, int]]:
    sections = [(types.SymbolKind.Module, plain(s.title), s.start, s.end) for s in file.sections]
    return sections + [(types.SymbolKind.Key, n.name, n.start, n.end) for n in file.labels]


async def folding_range(server: Host, params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
    """Sections, environments and entries of more than one line."""
    project = await server.projects.project(params.text_document.uri)
    path = server.projects.path(params.text_document.uri)
    if is_bib(path) and path in project.bibs:
        spans = [(e.start, e.end) for e in (*project.bibs[path].entries, *project.bibs[path].specials)]
        text = project.bibs[path].text
    elif path in project.tex:
        file = project.tex[path]
        text = file.text
        spans = [(start, end) for start, (_, end) in _section_ends(file).items()]
        spans += [(e.start, e.end) for e in file.environments if not _FOLDED.match(e.name)]
    else:
        return None

    def fold_all() -> list[types.FoldingRange]:
        view = server.projects.view(path, text)
        lines = [(view.position(start).line, view.position(max(start, end - 1)).line) for start, end in spans]
        return [types.FoldingRange(a, b) for a, b in sorted(set(lines)) if b > a]

    return await anyio.to_thread.run_sync(fold_all)

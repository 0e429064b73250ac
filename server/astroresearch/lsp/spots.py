"""What stands under the cursor: a citation key or a label, and the manuscript that it belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from lsprotocol import types

from astroresearch.lsp.projects import Projects, is_bib
from astroresearch.lsp.text import Documents, TextDocument
from astroresearch.manuscript import latex
from astroresearch.manuscript.bibtex import BibFile
from astroresearch.manuscript.latex import Name
from astroresearch.manuscript.project import KEY_FIELDS, Project, alias_range


class Host(Protocol):
    """The part of the server that features of the text use."""

    documents: Documents
    projects: Projects

    def client_declares(self, name: str) -> bool:
        """Whether the client has this capability of ours."""
        ...

    def supports(self, *path: str) -> bool:
        """Whether the client declares a standard capability."""
        ...

    async def paper_marks(self, identifiers: Any) -> dict[str, Any] | None:
        """What the library has of a paper."""
        ...


_SETS = re.compile(r"\\(label|bibitem)\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Spot:
    """A name under the cursor, in offsets of the buffer."""

    kind: Literal["key", "label"]
    name: str
    start: int
    end: int
    path: Path
    document: TextDocument
    project: Project

    @property
    def range(self) -> types.Range:
        """For the editor."""
        return self.document.range(self.start, self.end)


async def spot_at(server: Host, uri: str, position: types.Position, *, fresh: bool = True) -> Spot | None:
    """The key or label at a position; None where there is none or the buffer is not open."""
    document = server.documents.get(uri)
    if document is None:
        return None
    project = await server.projects.project(uri, fresh=fresh)
    path = server.projects.path(uri)
    text, offset = document.text, document.offset(position)
    found = _in_bib(project, path, offset) if is_bib(path) else _in_tex(project, path, text, offset)
    if found is None:
        return None
    kind, name = found
    return Spot(kind, name.name, name.start, name.end, path, document, project)


def _in_tex(project: Project, path: Path, text: str, offset: int) -> tuple[Literal["key", "label"], Name] | None:
    at = latex.cursor(text, offset)
    if at is not None and at.kind in ("cite", "ref"):
        word = text[at.start : at.end]
        name = Name(word.strip(), at.start, at.start + len(word.rstrip()))
        return ("key" if at.kind == "cite" else "label", name) if name.name else None
    begin = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    line = text[begin : text.find("\n", offset) if "\n" in text[offset:] else len(text)]
    for match in _SETS.finditer(line):
        if begin + match.start() <= offset <= begin + match.end() and "%" not in line[: match.start()]:
            name = Name(match[2].strip(), begin + match.start(2), begin + match.end(2))
            return "label" if match[1] == "label" else "key", name
    for where, base, bib in project.embedded:
        if where == path and base <= offset <= base + len(bib.text):
            inner = key_in(bib, offset - base)
            return ("key", Name(inner.name, inner.start + base, inner.end + base)) if inner else None
    return None


def _in_bib(project: Project, path: Path, offset: int) -> tuple[Literal["key"], Name] | None:
    bib = project.bibs.get(path)
    name = key_in(bib, offset) if bib is not None else None
    return ("key", name) if name is not None else None


def key_in(bib: BibFile, offset: int) -> Name | None:
    """The entry key, alias or key in `crossref` and the like at an offset; on the entry's `@type{`, its key."""
    entry = bib.at(offset)
    if entry is None or not entry.key:
        return None
    start, end = entry.key_range
    if offset <= end:
        return Name(entry.key, start, end)
    for one in entry.body.fields:
        if entry.start + one.value_start <= offset <= entry.start + one.value_end:
            if one.name == "ids":
                for alias in entry.body.aliases:
                    place = alias_range(entry, alias)
                    if place[0] <= offset <= place[1]:
                        return Name(alias, *place)
            if one.name in KEY_FIELDS:
                from astroresearch.manuscript.project import key_fields

                return next((n for n in key_fields(entry) if n.start <= offset <= n.end), None)
    return None

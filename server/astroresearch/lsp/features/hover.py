"""Hover: the paper behind a key, what a label names, what a journal macro stands for."""

from __future__ import annotations

import re

import anyio
from lsprotocol import types

from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host, Spot, spot_at
from astroresearch.manuscript.citations import Rendered, identifiers, render
from astroresearch.manuscript.journals import JOURNALS
from astroresearch.manuscript.latex import Name, caption_near
from astroresearch.manuscript.project import Definition

_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|])")
_MACRO = re.compile(r"\\([A-Za-z]+)")
MARKS_S = 0.05
"How long a hover waits for the library."


def escape(text: str) -> str:
    """Text of a .bib can't become Markdown: no links, no images, no HTML."""
    return _MARKDOWN.sub(r"\\\1", text)


async def hover(server: Host, params: types.HoverParams) -> types.Hover | None:
    """The hover at a position; None where there is nothing to say."""
    uri = params.text_document.uri
    document = server.documents.get(uri)
    if document is None:
        return None
    macro = _journal(document.lines, params.position) if is_bib(server.projects.path(uri)) else ""
    if macro:
        return types.Hover(_markup(server, macro))
    spot = await spot_at(server, uri, params.position, fresh=False)
    if spot is None:
        return None
    text = _label(spot) if spot.kind == "label" else await _key(server, spot)
    return types.Hover(_markup(server, text), spot.range) if text else None


def _markup(server: Host, text: str) -> types.MarkupContent:
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def _journal(lines: list[str], position: types.Position) -> str:
    line = lines[position.line] if position.line < len(lines) else ""
    for match in _MACRO.finditer(line):
        if match.start() <= position.character <= match.end() and match[1].lower() in JOURNALS:
            return f"`\\{match[1]}` — {JOURNALS[match[1].lower()]}"
    return ""


def _label(spot: Spot) -> str:
    places = spot.project.labels.get(spot.name, [])
    if not places:
        return ""
    place = places[0]
    file = spot.project.tex[place.path]
    line = file.text.count("\n", 0, place.start) + 1
    caption = caption_near(file, Name(spot.name, place.start, place.end))
    shown = escape(caption[:600]) if caption else "no caption"
    return f"**{escape(spot.name)}** — {shown}\n\n{escape(place.path.name)}, line {line}"


async def _key(server: Host, spot: Spot) -> str:
    found = spot.project.find(spot.name)
    if not found:
        return ""
    entry = found[0].entry
    if entry is None:
        return _bibitem(spot, found[0])
    shown = render(entry, spot.project.strings, spot.project.parent(entry))
    parts = [_reference(shown)]
    if shown.abstract:
        cut = shown.abstract if len(shown.abstract) <= 1500 else shown.abstract[:1500].rsplit(" ", 1)[0] + " …"
        parts.append(escape(cut))
    parts.append(" · ".join([*_links(shown), *await _marks(server, spot)]))
    return "\n\n".join(part for part in parts if part)


def _bibitem(spot: Spot, definition: Definition) -> str:
    text = spot.project.tex[definition.path].masked[definition.end + 1 :]
    return escape(" ".join(text.split("\\bibitem")[0].split("\\end{")[0].split())[:600])


def _reference(shown: Rendered) -> str:
    authors = "; ".join(shown.authors[:4]) + (" et al." if len(shown.authors) > 4 else "")
    lines = [f"**{escape(shown.title)}**" if shown.title else ""]
    lines.append(escape(f"{authors} ({shown.year})" if shown.year else authors))
    lines.append(f"*{escape(shown.where)}*" if shown.where else "")
    return "  \n".join(line for line in lines if line)


def _links(shown: Rendered) -> list[str]:
    links = []
    if shown.bibcode:
        links.append(f"[ADS](https://ui.adsabs.harvard.edu/abs/{shown.bibcode.replace('&', '%26')}/abstract)")
    if shown.doi:
        links.append(f"[doi:{escape(shown.doi)}](https://doi.org/{_safe(shown.doi)})")
    if shown.arxiv:
        links.append(f"[arXiv:{escape(shown.arxiv)}](https://arxiv.org/abs/{_safe(shown.arxiv)})")
    return links


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9./:_;-]", lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode()), name)


async def _marks(server: Host, spot: Spot) -> list[str]:
    count = len(spot.project.citations_of(spot.name))
    marks = [f"cited {count}× here"] if count else []
    entry = spot.project.find(spot.name)[0].entry
    ask = getattr(server, "paper_marks", None)
    if entry is None or ask is None:
        return marks
    with anyio.move_on_after(MARKS_S):
        state = await ask(identifiers(entry))
        if state and state.get("inLibrary"):
            marks.append("in your library")
        if state and state.get("notes"):
            marks.append(f"{state['notes']} note{'s' if state['notes'] != 1 else ''}")
    return marks

"""What an answer quotes and cites is looked up before the turn ends: by rules, in the library's text and in what was read.

Nothing is taken out of the answer, which the user has seen by then: quotes join the turn's citations as found or not found,
and one notice names what has no source.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import anyio.to_thread

from astroresearch.domain import identifiers
from astroresearch.domain.passage import Citation, Retrieval
from astroresearch.domain.plain import plain
from astroresearch.engine.messages import Message
from astroresearch.errors import AstroResearchError
from astroresearch.library import quotes

MIN_WORDS = 5
"Shorter strings in quotation marks are names and emphasis as often as quotes."
MAX_QUOTES = 12
PAPERS_A_QUOTE = 6
_ECHOES = frozenset({"ask_user", "file_edit", "save_note", "subagent", "todo_write"})
"Tools whose results repeat what a model wrote, which proves nothing."

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_MARKS = re.compile(r"“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|(?<![\w\"])\"(?=\S)([^\"]+?)(?<=\S)\"(?!\w)")
_SOURCE = re.compile(r"\s*(?:[—–]\s[^—–]*|[(\[][^()\[\]]*(?:\b[12]\d{3}\b|\bpp?\.)[^()\[\]]*[)\]])\.?\s*\Z")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~$])")
_EMPHASIS = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
_CAPITAL = re.compile(r"\[(\w)\](?=\w)")
_LEFT_OUT = re.compile(r"\s*(?:\[[^\]]{0,60}\]|…|\.\.\.)\s*")
_NAME = r"[A-Z][^\W\d_]+(?:[-'’][A-Z]?[^\W\d_]+)*"
_AUTHOR_YEAR = re.compile(
    rf"\b({_NAME}) (?:et al\.?|(?:&|and) {_NAME}),? \(?((?:19|20)\d\d)|\(({_NAME}),? ((?:19|20)\d\d)[a-z]?\b"
)


class Passages(Protocol):
    """Of tools.ports.PassageSearch, what is needed here."""

    async def passages(self, query: str, *, limit: int = 8) -> Retrieval:
        """Passages that fit the query, best first."""
        ...

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        """Looks a quote up in a paper's own text."""
        ...


class Records(Protocol):
    """Of tools.ports.PaperCatalogue, what is needed here."""

    async def get(self, paper: str, *, online: bool = True) -> Any:
        """A paper by any identifier. Raises `NotFound`."""
        ...


@dataclass(frozen=True, slots=True)
class Checked:
    """The turn's citations with the answer's own, and what the user must be told (empty: nothing)."""

    citations: tuple[Mapping[str, Any], ...]
    notice: str = ""


async def check(
    answer: str,
    messages: Sequence[Message],
    citations: Sequence[Mapping[str, Any]],
    *,
    library: Passages,
    papers: Records,
) -> Checked:
    """Looks up the quotes and the papers that an answer names.

    Args:
        answer: Markdown.
        messages: The conversation; text that a tool gave or the user wrote counts as read.
        citations: Of the turn's tools, papers first looked into.
    """
    read = [m for m in messages if m.role == "user" or _is_source(m)]
    text = await anyio.to_thread.run_sync(quotes.fold, "\f".join(m.content for m in read))
    known = {quotes.fold_quote(str(c.get("quote", ""))) for c in citations if c.get("verified")}
    near = list(dict.fromkeys([*(str(c.get("paperId", "")) for c in citations), *_papers_of(read)]))
    found: list[Mapping[str, Any]] = []
    missing: list[str] = []
    for quote in quotes_of(answer)[:MAX_QUOTES]:
        parts = parts_of(quote)
        if not parts or all(quotes.fold_quote(part) in known for part in parts):
            continue
        citation = await _look_up(quote, parts, near, library)
        if citation is not None:
            found.append(plain(citation))
        elif any(quotes.find(part, text) is None for part in parts):
            missing.append(quote)
            found.append(plain(Citation("", 0, quote, verified=False)))
    strangers = await _strangers(answer, read, papers)
    return Checked((*citations, *found), _notice(missing, strangers))


def quotes_of(answer: str) -> list[str]:
    """The quotes in Markdown: block quotes and text in quotation marks of five words or more, each once."""
    out: list[str] = []
    for is_block, text in _paragraphs(_CODE.sub(" ", answer)):
        marked = [next(g for g in m.groups() if g) for m in _MARKS.finditer(text)]
        if is_block and not marked and not text.startswith(("—", "–", "-", "[!", "**")):
            marked = [_SOURCE.sub("", text)]
        out += [_bare(quote) for quote in marked if len(quote.split()) >= MIN_WORDS]
    return list(dict.fromkeys(out))


def parts_of(quote: str) -> list[str]:
    """What must stand in the text: the quote without what it leaves out or adds, `…` and `[…]`."""
    return [part for part in _LEFT_OUT.split(_CAPITAL.sub(r"\1", quote)) if len(part.split()) >= 3]


def _bare(quote: str) -> str:
    return " ".join(_EMPHASIS.sub("", _ESCAPED.sub(r"\1", quote)).split())


def _paragraphs(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it is a block quote, its text) of each paragraph."""
    lines: list[str] = []
    was_block = False
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        is_block = bare.startswith(">")
        bare = bare.lstrip("> ").strip()
        if lines and (not bare or is_block != was_block):
            yield was_block, " ".join(lines)
            lines = []
        if bare:
            lines.append(bare)
        was_block = is_block


def _is_source(message: Message) -> bool:
    return message.role == "tool" and message.status in ("", "completed") and message.name not in _ECHOES


def _papers_of(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        metadata = message.meta.get("metadata") or {}
        if isinstance(metadata.get("paperId"), str):
            yield metadata["paperId"]
        if isinstance(metadata.get("paper"), Mapping):
            yield str(metadata["paper"].get("id", ""))
        for citation in metadata.get("citations", ()):
            yield str(citation.get("paperId", ""))


async def _look_up(quote: str, parts: Sequence[str], near: Sequence[str], library: Passages) -> Citation | None:
    """The quote in a paper of the library: those of the conversation first, then those that a search for it finds."""
    seen: set[str] = set()
    for paper in near:
        if paper and paper not in seen:
            seen.add(paper)
            if (citation := await _in_paper(paper, quote, parts, library)) is not None:
                return citation
    try:
        hits = (await library.passages(max(parts, key=len)[:400], limit=PAPERS_A_QUOTE)).hits
    except AstroResearchError:
        return None
    for hit in hits:
        if hit.passage.paper_id not in seen:
            seen.add(hit.passage.paper_id)
            if (citation := await _in_paper(hit.passage.paper_id, quote, parts, library)) is not None:
                return citation
    return None


async def _in_paper(paper: str, quote: str, parts: Sequence[str], library: Passages) -> Citation | None:
    found: list[Citation] = []
    for part in parts:
        try:
            found.append(await library.verify(paper, part))
        except AstroResearchError:  # not in the library, or without text
            return None
        if not found[-1].verified:
            return None
    return dataclasses.replace(found[0], quote=quote, rects=tuple(r for c in found for r in c.rects))


async def _strangers(answer: str, read: Sequence[Message], papers: Records) -> list[str]:
    """Papers that the answer names though nothing that was read does, nor the library."""
    prose = _CODE.sub(" ", answer)
    text = "\n".join(
        f"{m.content}\n{json.dumps(plain(m.meta.get('metadata') or {}), default=str, ensure_ascii=False)}" for m in read
    )
    known = {name for ids in identifiers.find_all(text) for name in identifiers.names(ids)}
    out: list[str] = []
    for ids in identifiers.find_all(prose):
        name = identifiers.primary(ids)
        if not identifiers.names(ids) & known and not await _is_held(name, papers):
            out.append(name)
    low = text.casefold()
    for match in _AUTHOR_YEAR.finditer(prose):
        author, year = match[1] or match[3], match[2] or match[4]
        if author.casefold() not in low or year not in low:
            out.append(match[0].lstrip("("))
    return list(dict.fromkeys(out))


async def _is_held(name: str, papers: Records) -> bool:
    try:
        await papers.get(name, online=False)
    except AstroResearchError:
        return False
    return True


def _notice(missing: Sequence[str], strangers: Sequence[str]) -> str:
    said = []
    if missing:
        listed = "; ".join(f"“{_short(quote)}”" for quote in missing)
        said.append(f"Quoted, but found word for word neither in the library nor in what was read: {listed}.")
    if strangers:
        listed = ", ".join(strangers)
        said.append(f"Cited, but neither in the library nor among what was read: {listed}.")
    return " ".join([*said, "Check before you use it."]) if said else ""


def _short(quote: str) -> str:
    return quote if len(quote) <= 160 else quote[:157].rstrip() + "…"

"""Sentences, sections and passages of a paper's text. Pure functions over the pages joined by form feeds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from astroresearch.domain.passage import Passage
from astroresearch.library.layout import HEADING

TARGET, LONGEST = 1150, 1500
"Characters of a passage: about 200-300 tokens."
_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9\u0370-\u03ff])")
_NO_END = re.compile(
    r"(?:\b(?:al|Fig|Figs|Eq|Eqs|Sec|Sect|Secs|Ref|Refs|Tab|App|Chap|vs|cf|ca|e\.g|i\.e|viz|approx|resp|Dr|Prof|St|no|No|Nos|Vol|pp|p|"
    r"eds|Ed|Jr|Mt|et|etc|Ser|Suppl|Astron|Astrophys|Phys|Rev|Lett|Mon|Not|Obs|Univ|Inst|Inc)|\b[A-Z]|\d)\.$"
)
_REFERENCES = re.compile(r"(?i)(?:\d+\.?\s+)?(?:references|bibliography)\b")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text, by offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Section:
    """A section and its body, without its heading."""

    title: str
    start: int
    end: int

    @property
    def is_references(self) -> bool:
        """A list of references: of no use as an answer."""
        return _REFERENCES.match(self.title) is not None


def sentences(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Sentences of text[start:end]; abbreviations and initials do not end one, a new line after a full stop does."""
    end = len(text) if end is None else end
    out: list[Span] = []
    begin = start
    for match in _END.finditer(text, start, end):
        stop = match.start() + 1
        full_stop = text[match.start()] == "." and "\n" not in match[0]
        if (
            full_stop
            and _NO_END.search(text, max(begin, stop - 12), stop)
            and not _after_number(text, stop, match.end())
        ):
            continue
        _append(out, text, begin, match.end())
        begin = match.end()
    _append(out, text, begin, end)
    return out


def _after_number(text: str, stop: int, following: int) -> bool:
    """A full stop behind a digit ends a sentence if a capital follows."""
    return text[stop - 2].isdigit() and text[following].isupper()


def _append(out: list[Span], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        out.append(Span(start, end))


def sections(text: str) -> list[Section]:
    """Sections in order; what stands before the first heading has no title."""
    out: list[Section] = []
    title, begin, at = "", 0, 0
    for paragraph in re.split(r"([\n\f])", text):
        if 3 < len(paragraph) < 80 and HEADING.match(paragraph):
            if text[begin:at].strip():
                out.append(Section(title, begin, at))
            title, begin = paragraph.strip().rstrip(".:"), at + len(paragraph)
        at += len(paragraph)
    if text[begin:].strip():
        out.append(Section(title, begin, len(text)))
    return out


def passages(page_texts: Sequence[str], numbers: Sequence[int]) -> list[Passage]:
    """Passages of a document without the list of references; ids are 0 and papers empty until they are stored.

    Args:
        page_texts: The pages' texts in order.
        numbers: Their page numbers.
    """
    text = "\f".join(page_texts)
    starts = [0]
    for own in page_texts:
        starts.append(starts[-1] + len(own) + 1)
    all_sections = sections(text)
    useful = [s for s in all_sections if not s.is_references] or all_sections
    out: list[Passage] = []
    page = 0
    for section in useful:
        for span in _chunks(text, section):
            while starts[page + 1] <= span.start:
                page += 1
            last = page
            while starts[last + 1] < span.end:
                last += 1
            body = text[span.start : span.end].translate({10: " ", 12: " "})
            out.append(
                Passage(0, "", len(out), section.title, numbers[page], numbers[last], body, span.start, span.end)
            )
    return out


def _chunks(text: str, section: Section) -> Iterator[Span]:
    begin = end = -1
    for sentence in _short(sentences(text, section.start, section.end)):
        if begin < 0:
            begin, end = sentence.start, sentence.end
        elif sentence.end - begin > LONGEST or end - begin >= TARGET:
            yield Span(begin, end)
            begin, end = sentence.start, sentence.end
        else:
            end = sentence.end
    if begin >= 0:
        yield Span(begin, end)


def _short(spans: Sequence[Span]) -> Iterator[Span]:
    """Cuts what is too long to be a sentence: tables and lists of names."""
    for span in spans:
        start = span.start
        while span.end - start > LONGEST:
            yield Span(start, start + TARGET)
            start += TARGET
        yield Span(start, span.end)

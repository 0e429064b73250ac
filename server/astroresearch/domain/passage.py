"""Text of papers, its place on the page, and quotes that were checked against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rect = tuple[float, float, float, float]
"x0, y0, x1, y1 in PDF points, origin at the top left of the page."


@dataclass(frozen=True, slots=True)
class PageRect:
    """A rectangle on a page; `page` counts from 1."""

    page: int
    rect: Rect


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of one page in reading order, as a model may see it: hidden text is left out."""

    page: int
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """About 200-300 tokens of one paper."""

    id: int
    paper_id: str
    ordinal: int
    "Position in the paper, from 0."
    section: str
    page: int
    "Page on which it starts, from 1."
    page_end: int
    text: str
    start: int
    "Offset in the paper's text (its pages joined by one form feed each), in code points."
    end: int


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage that a query found."""

    passage: Passage
    score: float
    "Reciprocal rank fusion; comparable within one answer only."
    via: Literal["text", "vector", "both"]
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and where it stands. `verified` is the result of the deterministic check against the page's text."""

    paper_id: str
    page: int
    quote: str
    verified: bool
    section: str = ""
    rects: tuple[PageRect, ...] = ()
    bibcode: str = ""
    doi: str = ""
    arxiv: str = ""
    key: str = ""
    "Cite key in the open manuscript, where it has one."
    title: str = ""
    "The paper's title, for people."
    label: str = ""
    "Author and year, for people: `Fabian et al. 2011`."


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages that a query found; `mode` says whether vectors took part."""

    hits: tuple[PassageHit, ...]
    mode: str
    "hybrid, text."
    notice: str = ""


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page as it is stored: its text and where each word stands."""

    page: int
    text: str
    words: bytes
    "Boxes of the words, packed by library/parse.py."
    hidden: str = ""
    "Text left out because nobody sees it (white, tiny, off the page, invisible)."

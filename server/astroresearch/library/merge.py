"""When two records are one paper, and what their union is.

By a shared identifier first; else by title, first author and year, with care: parts of a series, errata and notices that carry
the same title stay apart, and so do two published papers with different bibcodes or DOIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from rapidfuzz import fuzz

from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.people import ascii_fold, key_name

_NOTICE = re.compile(
    r"^\W*(?:publisher'?s? |author'?s? )?(errat(?:um|a)|corrigend(?:um|a)|addend(?:um|a)|correction|retraction|"
    r"note|comment|reply|response|editorial)\b(?:\s+(?:to|on|note)\b|\s*[:.\-–])",
    re.IGNORECASE,
)
_ROMAN = re.compile(r"^(?:i|ii|iii|iv|v|vi|vii|viii|ix|x|xi|xii|xiii|xiv|xv|xvi|xvii|xviii|xix|xx)$")
_MIN_TITLE = 12
"Shorter titles (`Book reviews`) say nothing about identity."
_ALIKE = 95.0


def same_work(a: Paper, b: Paper) -> bool:
    """Whether two records are one paper."""
    if identifiers.names(a.identifiers) & identifiers.names(b.identifiers):
        return True
    if _conflict(a.identifiers, b.identifiers) or _notice(a) != _notice(b):
        return False
    return _same_people_and_time(a, b) and _same_title(a.title, b.title)


def join(a: Paper, b: Paper) -> Paper:
    """The union of two records of one paper. The published record's fields win, then `a`'s; what is ours (id, file, state) stays."""
    first, second = (b, a) if _rank(b) > _rank(a) else (a, b)
    ours = next((paper for paper in (a, b) if paper.id), first)
    filled = {
        name: getattr(first, name) or getattr(second, name)
        for name in ("title", "authors", "year", "pubdate", "journal", "volume", "issue", "pages", "abstract", "keywords", "doctype")
    }  # fmt: skip
    count = first.citation_count if first.citation_count is not None else second.citation_count
    return replace(
        ours,
        **filled,
        identifiers=identifiers.union(first.identifiers, second.identifiers),
        citation_count=count,
        comment=_comment(first, second),
        sources=tuple(dict.fromkeys((*a.sources, *b.sources))),
        raw={**second.raw, **first.raw},
    )


def merge(papers: Iterable[Paper]) -> list[Paper]:
    """Records of the same paper joined, in the order of first appearance."""
    out: list[Paper | None] = []
    by_name: dict[str, int] = {}
    by_author: dict[str, list[int]] = {}
    for paper in papers:
        author = key_name(paper.authors[0]).lower() if paper.authors else ""
        places = {by_name[name] for name in identifiers.names(paper.identifiers) if name in by_name}
        for place in by_author.get(author, ()):
            other = out[place]
            if other is not None and place not in places and same_work(other, paper):
                places.add(place)
        at = min(places, default=len(out))
        if at == len(out):
            out.append(paper)
        for place in sorted(places):
            other = out[place]
            if other is not None:
                paper = join(other, paper)
                out[place] = None
        out[at] = paper
        by_name |= dict.fromkeys(identifiers.names(paper.identifiers), at)
        by_author.setdefault(author, []).append(at)
    return [paper for paper in out if paper is not None]


def title_key(title: str) -> tuple[str, ...]:
    """A title's words for comparing: without case, accents, markup and punctuation."""
    text = re.sub(r"</?[A-Za-z][^<>]*>|\\[A-Za-z]+|[{}$^_]", " ", title)
    return tuple(re.findall(r"[a-z0-9]+", ascii_fold(text).lower()))


def _same_title(a: str, b: str) -> bool:
    words_a, words_b = title_key(a), title_key(b)
    text_a, text_b = " ".join(words_a), " ".join(words_b)
    if len(text_a) < _MIN_TITLE or len(words_a) < 3 or _marks(words_a) != _marks(words_b):
        return False
    return text_a == text_b or fuzz.ratio(text_a, text_b) >= _ALIKE


def _marks(words: tuple[str, ...]) -> list[str]:
    """What tells the papers of a series apart: numbers and Roman numerals."""
    return sorted(word for word in words if any(c.isdigit() for c in word) or _ROMAN.match(word))


def _same_people_and_time(a: Paper, b: Paper) -> bool:
    if not a.authors or not b.authors or not a.year or not b.year:
        return False
    if key_name(a.authors[0]).lower() != key_name(b.authors[0]).lower():
        return False
    gap = 2 if "eprint" in (a.doctype, b.doctype) else 1
    return abs(a.year - b.year) <= gap


def _conflict(a: Identifiers, b: Identifiers) -> bool:
    """Whether they carry different names of one kind, which one paper has only once."""
    published = [
        {code for code in (ids.bibcode, *ids.alternates) if code and not identifiers.is_eprint_bibcode(code)}
        for ids in (a, b)
    ]
    return (
        bool(a.arxiv and b.arxiv and a.arxiv != b.arxiv)
        or bool(a.doi and b.doi and a.doi.lower() != b.doi.lower())
        or bool(published[0] and published[1] and not published[0] & published[1])
    )


def _notice(paper: Paper) -> str:
    if paper.doctype == "erratum":
        return "erratum"
    match = _NOTICE.match(paper.title)
    return match.group(1).lower()[:6] if match else ""


def _rank(paper: Paper) -> int:
    """How much a record says about the published paper."""
    published = bool(paper.identifiers.bibcode) and not identifiers.is_eprint_bibcode(paper.identifiers.bibcode)
    return 4 * published + 2 * ("ads" in paper.sources) + (paper.doctype not in ("", "eprint"))


def _comment(first: Paper, second: Paper) -> str:
    """arXiv's own comment where there is one: it says when a paper was withdrawn."""
    for paper in (first, second):
        if "arxiv" in paper.sources and paper.comment:
            return paper.comment
    return first.comment or second.comment

"""What a paper is: one work with many names, versions and perhaps a file of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PaperState = Literal[
    "known",  # metadata only
    "downloaded",  # a file is here, its text is not
    "searchable",  # text, passages and full-text index are in
    "failed",  # the file can't be used; `state_reason` says why
]


@dataclass(frozen=True, slots=True)
class Identifiers:
    """The names of one paper, each in canonical form (see `domain.identifiers`)."""

    bibcode: str = ""
    "Canonical ADS bibcode, 19 characters."
    doi: str = ""
    "Without a resolver's prefix, case kept as given; compare in lower case."
    arxiv: str = ""
    "Without `arXiv:` and without version: `2405.01234`, `astro-ph/0601001`."
    arxiv_version: int = 0
    "Newest version known, 0 if unknown."
    alternates: tuple[str, ...] = ()
    "Other bibcodes of the same work."
    file_hash: str = ""
    "SHA-256 of the imported file, hexadecimal."


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper's record."""

    id: str
    "Ours: a short safe name for files and links, stable once given. Empty until stored."
    title: str
    authors: tuple[str, ...] = ()
    "`Last, First`; a collaboration is one name without a comma."
    year: int = 0
    "0 if unknown."
    pubdate: str = ""
    "YYYY-MM-DD, with 00 where the month or day is unknown."
    journal: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    abstract: str = ""
    keywords: tuple[str, ...] = ()
    doctype: str = ""
    "ADS's word: article, eprint, inproceedings, …"
    identifiers: Identifiers = Identifiers()
    citation_count: int | None = None
    comment: str = ""
    "What the author says of it (arXiv's comment; holds `withdrawn`)."
    sources: tuple[str, ...] = ()
    "Where the record comes from: ads, arxiv, file, sample."
    state: PaperState = "known"
    state_reason: str = ""
    "For people: why it failed, or what is partial about it."
    file: str = ""
    "Path of the file relative to the data folder, posix separators."
    pages_count: int = 0
    warnings: tuple[str, ...] = ()
    "Findings of the parser, such as hidden text."
    raw: Mapping[str, Any] = field(default_factory=dict)
    "The source's own record (ADS's JSON), kept for an exact export."
    added: str = ""
    "ISO 8601 in UTC."


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A paper found online or here, with what we know of it."""

    paper: Paper
    in_library: bool = False
    cited_here: bool = False
    "The open manuscript cites it."
    has_notes: bool = False


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Merged hits and, for each source that failed or could not translate the query, a sentence."""

    hits: tuple[SearchHit, ...]
    notices: tuple[str, ...] = ()
    from_cache: bool = False

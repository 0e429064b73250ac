"""The names of papers: finding them in text, canonical forms, names for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from astroresearch.domain.paper import Identifiers

Kind = Literal["bibcode", "doi", "arxiv"]


def parse(text: str) -> Identifiers | None:
    """The one identifier that the whole text is: bare, with a prefix (`doi:`, `arXiv:`), or as a URL."""
    raise NotImplementedError


def looks_like(text: str) -> Kind | None:
    """What kind of identifier the whole text is."""
    raise NotImplementedError


def find_all(text: str) -> list[Identifiers]:
    """Every identifier in running text, in order of appearance, each once."""
    raise NotImplementedError


def from_fields(fields: Mapping[str, str], key: str = "") -> Identifiers:
    """The identifiers in a BibTeX entry's fields (doi, eprint, adsurl, url, journal, pages, …) and key."""
    raise NotImplementedError


def is_bibcode(text: str) -> bool:
    """Whether the text is a 19-character bibcode."""
    raise NotImplementedError


def safe_name(ids: Identifiers) -> str:
    """A name for files and links out of [A-Za-z0-9._-]; empty when there is no identifier."""
    raise NotImplementedError


def primary(ids: Identifiers) -> str:
    """The identifier to show: bibcode, else DOI, else `arXiv:…`."""
    raise NotImplementedError

"""BibTeX as ADS writes it, from the stored record, without network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from astroresearch.domain.paper import Paper

KeyFormat = Literal["bibcode", "author_year"]


def bibtex(papers: Sequence[Paper], *, keys: KeyFormat = "bibcode") -> str:
    """Entries as ADS writes them, in the given order, one blank line after each."""
    raise NotImplementedError


def cite_key(paper: Paper, keys: KeyFormat = "bibcode") -> str:
    """The key of one paper, without the letter that tells two of the same author and year apart."""
    raise NotImplementedError

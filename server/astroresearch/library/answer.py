"""Answers that can be checked (fits tools.ports.PassageSearch)."""

from __future__ import annotations

from collections.abc import Sequence

from astroresearch.domain.passage import Citation, Retrieval
from astroresearch.library.retrieve import Retriever
from astroresearch.store.papers import PaperStore
from astroresearch.store.passages import PassageStore


class Answerer:
    """Passages, citations, verification."""

    def __init__(self, retriever: Retriever, papers: PaperStore, passages: PassageStore) -> None: ...

    async def passages(self, query: str, *, limit: int = 8, papers: Sequence[str] = (), per_paper: int = 3) -> Retrieval:
        """Hybrid search; `papers` narrows it to these (any identifiers)."""
        raise NotImplementedError

    async def citations(self, query: str, retrieval: Retrieval, *, limit: int = 5) -> Sequence[Citation]:
        """The sentences of these passages that answer best, each checked against its page."""
        raise NotImplementedError

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        """Looks a quote up in the paper's own text."""
        raise NotImplementedError

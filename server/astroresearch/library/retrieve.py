"""Hybrid search over passages."""

from __future__ import annotations

from collections.abc import Sequence

from astroresearch.domain.passage import Retrieval
from astroresearch.library.index import Embedder
from astroresearch.store.passages import PassageStore


class Retriever:
    """Full text and vectors, fused."""

    def __init__(self, passages: PassageStore, embedder: Embedder | None, *, vector_wait_s: float = 0.15) -> None: ...

    async def search(
        self, query: str, *, limit: int = 8, paper_ids: Sequence[str] = (), per_paper: int = 3
    ) -> Retrieval:
        """The best passages; `paper_ids` are ours."""
        raise NotImplementedError

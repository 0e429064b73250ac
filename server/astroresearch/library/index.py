"""Putting text into the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from astroresearch.domain.paper import Paper
from astroresearch.library.parse import ParsedDocument
from astroresearch.store.passages import PassageStore


class Embedder(Protocol):
    """What turns text into vectors (models.local_embed.LocalEmbedder)."""

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> list[bytes]: ...


class Indexer:
    """Stores text at once and vectors in the background."""

    def __init__(self, passages: PassageStore, embedder: Embedder | None) -> None: ...

    async def add(self, paper: Paper, document: ParsedDocument) -> Paper:
        """Text, passages and the new state of the paper in one transaction."""
        raise NotImplementedError

    async def run(self) -> None:
        """The background task: start it in the app's task group; it ends by a cancel only."""
        raise NotImplementedError

    def wake(self) -> None:
        """There may be passages without a vector."""

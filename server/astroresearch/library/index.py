"""Putting text into the index: a paper in one transaction at once, its vectors in the background."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import anyio

from astroresearch.domain.paper import Paper
from astroresearch.errors import AstroResearchError
from astroresearch.library.parse import ParsedDocument
from astroresearch.store.passages import PassageStore

_log = logging.getLogger(__name__)

BATCH = 16
"Vectors that one transaction stores."
AHEAD = 64
"Passages fetched at once."
RETRY_S = 60.0


class Embedder(Protocol):
    """What turns text into vectors: models.local_embed.LocalEmbedder, or another one by setting."""

    @property
    def name(self) -> str:
        """Stored with each vector: vectors of different models are never compared."""
        ...

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        ...

    @property
    def problem(self) -> str:
        """Why it can't be used on this machine; empty while it can."""
        ...

    async def wanted(self) -> None:
        """Waits until a query came while it was not ready."""
        ...

    async def warm(self) -> None:
        """Makes it ready."""
        ...

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> list[bytes]:
        """Unit vectors of 32-bit floats; urgent ones overtake others and raise instead of waiting for the start."""
        ...


@dataclass(frozen=True, slots=True)
class IndexState:
    """For people: how far the vectors are."""

    running: bool
    done: int
    "Vectors stored since the server started."
    problem: str = ""


class Indexer:
    """Stores text at once and vectors in the background. A kill between two batches loses at most one batch of work."""

    def __init__(self, passages: PassageStore, embedder: Embedder | None) -> None:
        self._passages = passages
        self._embedder = embedder
        self._work = anyio.Event()
        self._running = False
        self._done = 0
        self._problem = ""

    @property
    def state(self) -> IndexState:
        """How far the vectors are."""
        return IndexState(self._running, self._done, self._problem)

    async def add(self, paper: Paper, document: ParsedDocument) -> Paper:
        """Text, passages and the new state of the paper in one transaction; its vectors follow when `run` gets to them."""
        reason = "" if document.pages_count == len(document.pages) else "Some pages could not be read."
        ready = replace(
            paper,
            state="searchable",
            state_reason=reason,
            pages_count=document.pages_count,
            warnings=document.warnings,
        )
        stored = await self._passages.replace(ready, document.pages, document.passages)
        self.wake()
        return replace(ready, id=stored[0].paper_id) if stored else ready

    def wake(self) -> None:
        """There may be passages without a vector."""
        self._work.set()

    async def run(self) -> None:
        """The background task, for the app's task group; only a cancel ends it.

        Starts the embedder when there is something to embed, or when a query asks for it.
        """
        embedder = self._embedder
        if embedder is None:
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._warm_when_wanted, embedder)
            self.wake()
            while True:
                await self._work.wait()
                self._work = anyio.Event()
                try:
                    await self.embed_pending()
                    self._problem = ""
                except AstroResearchError as error:
                    self._problem = error.message
                    if embedder.problem:
                        _log.warning("%s", error.message)
                        group.cancel_scope.cancel()
                        return
                    await anyio.sleep(RETRY_S)
                    self.wake()

    async def embed_pending(self) -> int:
        """Gives every passage that lacks one its vector; returns how many. Goes on where an earlier run was stopped.

        Raises:
            AstroResearchError: The embedder or the store failed.
        """
        embedder = self._embedder
        if embedder is None:
            return 0
        total = after = 0
        try:
            while todo := await self._passages.pending(embedder.name, AHEAD, after):
                self._running = True
                for start in range(0, len(todo), BATCH):
                    total += await self._batch(embedder, todo[start : start + BATCH])
                after = todo[-1][0]
        finally:
            self._running = False
        return total

    async def _batch(self, embedder: Embedder, todo: Sequence[tuple[int, str]]) -> int:
        vectors = await embedder.embed([text for _, text in todo])
        pairs = [(number, vector) for (number, _), vector in zip(todo, vectors, strict=True)]
        added = await self._passages.add_vectors(embedder.name, embedder.dim, pairs)
        self._done += added
        return added

    async def _warm_when_wanted(self, embedder: Embedder) -> None:
        while True:
            await embedder.wanted()
            try:
                await embedder.warm()
            except AstroResearchError as error:
                self._problem = error.message
                if embedder.problem:
                    return
                await anyio.sleep(1)

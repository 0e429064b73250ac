"""The default embedder: MiniLM in a child process that texts are sent to one by one, so that a query never waits long."""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio

from astroresearch.errors import AstroResearchError
from astroresearch.models.child import Child, ChildGone

MODULE = "astroresearch.models.embed_child"
CRASHES = 3


class EmbedderUnavailable(AstroResearchError):
    """The embedder can't be used (now, or on this machine); full-text search goes on without it."""

    code = "embedder_unavailable"


class LocalEmbedder:
    """all-MiniLM-L6-v2 (int8, 384 dimensions). Fits `library.index.Embedder`.

    The child starts with `warm()`; urgent texts (queries) never start it and overtake others between two texts.
    """

    name = "all-MiniLM-L6-v2-int8"
    dim = 384

    def __init__(self) -> None:
        self._child: Child | None = None
        self._ready = False
        self._problem = ""
        self._crashes = 0
        self._next = 0
        self._lock = anyio.Lock()
        self._urgent = 0
        self._calm = anyio.Event()
        self._calm.set()
        self._wanted = anyio.Event()

    @property
    def ready(self) -> bool:
        """Whether a text would be answered at once."""
        return self._ready and self._child is not None and self._child.alive

    @property
    def problem(self) -> str:
        """Why it can't be used on this machine; empty while it can."""
        return self._problem

    @property
    def pid(self) -> int | None:
        """Process id of the child, if one runs."""
        return self._child.pid if self._child and self._child.alive else None

    async def wanted(self) -> None:
        """Waits until a query came while the child was not ready."""
        await self._wanted.wait()
        self._wanted = anyio.Event()

    async def warm(self) -> None:
        """Starts the child and loads the model, if that has not happened. Raises `EmbedderUnavailable`."""
        async with self._lock:
            await self._start()

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> list[bytes]:
        """Unit vectors, 32-bit floats in this machine's order. A cancel leaves the child as it is.

        Raises:
            EmbedderUnavailable: It can't be used on this machine, or, for an urgent text, not yet.
        """
        if urgent and not self.ready:
            self._wanted.set()
            raise EmbedderUnavailable(self._problem or "Search by meaning is still starting.")
        if not urgent:
            return [await self._in_turn(text) for text in texts]
        self._urgent += 1
        if self._urgent == 1:
            self._calm = anyio.Event()
        try:
            async with self._lock:
                return [await self._one(text) for text in texts]
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._calm.set()

    async def aclose(self) -> None:
        """Ends the child."""
        child, self._child, self._ready = self._child, None, False
        if child is not None:
            await child.aclose()

    async def _in_turn(self, text: str) -> bytes:
        while True:
            await self._calm.wait()
            async with self._lock:
                if not self._urgent:
                    return await self._one(text)

    async def _start(self) -> None:
        if self.ready:
            return
        if self._problem:
            raise EmbedderUnavailable(self._problem)
        await self.aclose()
        child = await Child.start(MODULE)
        try:
            first = json.loads(await child.receive())
        except (ChildGone, ValueError):
            await child.aclose()
            self._crashed()
            raise EmbedderUnavailable("The embedding model did not start.") from None
        except BaseException:  # a cancel: nobody would end the child
            await child.aclose()
            raise
        if not first.get("ready"):
            await child.aclose()
            self._problem = f"Search by meaning is not available here ({first.get('why', '')})."
            raise EmbedderUnavailable(self._problem)
        self._child, self._ready = child, True

    def _crashed(self) -> None:
        self._crashes += 1
        if self._crashes >= CRASHES:
            self._problem = "Search by meaning is off: the embedding model crashed three times."

    async def _one(self, text: str) -> bytes:
        await self._start()
        child = self._child
        assert child is not None
        self._next = (self._next + 1) & 0xFFFFFFFF
        wanted = self._next
        try:
            await child.send(json.dumps({"id": wanted, "texts": [text]}).encode())
            while True:
                answer = await child.receive()
                if int.from_bytes(answer[:4], "big") == wanted:  # others belong to texts whose caller was cancelled
                    break
        except ChildGone:
            self._crashed()
            await self.aclose()
            raise EmbedderUnavailable("The embedding model ended unexpectedly.") from None
        if len(answer) != 4 + 4 * self.dim:
            await self.aclose()
            raise EmbedderUnavailable("The embedding model gave no vector.")
        return answer[4:]

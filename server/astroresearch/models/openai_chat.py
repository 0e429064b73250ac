"""The model client: one streamed answer of an OpenAI-compatible endpoint, whatever the endpoint gets wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from astroresearch.engine.model import ModelItem, ModelRequest
from astroresearch.models.profiles import ModelProfile


class OpenAIChat:
    """Fits `engine.model.Model`. One object serves many turns at once; it opens no connection before the first."""

    def __init__(self, profile: ModelProfile, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        self.profile = profile
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""
        return self.profile.name

    @property
    def context_window(self) -> int:
        """Tokens that fit into one request."""
        return self.profile.context_window

    async def warm(self) -> None:
        """Imports the client library in a thread, so that the first answer does not wait for it."""

    async def aclose(self) -> None:
        """Closes idle connections."""

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelItem]]:
        """Opens one streamed answer; see `engine.model.Model.stream`."""
        raise NotImplementedError
        yield

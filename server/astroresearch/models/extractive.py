"""Answers without a language model: quotes from the library, chosen by rules (an engine.model.Model)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from astroresearch.engine.model import ModelItem, ModelRequest


class Extractive:
    """Plans by rules and answers with quotes."""

    name = "extractive"
    context_window = 1_000_000

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelItem]]:
        """One step: calls first, the quoted answer after their results."""
        raise NotImplementedError

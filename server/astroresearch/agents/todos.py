"""A session's plan, stored and shown: `tools.ports.TodoList`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astroresearch.agents.running import Running
from astroresearch.engine.events import PlanChanged
from astroresearch.engine.tool import ToolContext
from astroresearch.store.sessions import SessionStore


class Todos:
    """The plans of all sessions; a resumed session finds its own again."""

    def __init__(self, sessions: SessionStore, running: Running) -> None:
        self._sessions = sessions
        self._running = running

    async def load(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Items {id, content, status, blockedBy}."""
        return await self._sessions.todos(session_id)

    async def save(self, session_id: str, items: Sequence[Mapping[str, Any]], context: ToolContext[Any]) -> None:
        """Stores them whole and emits the `plan` event."""
        await self._sessions.set_todos(session_id, items)
        turn = self._running.find(session_id)
        if turn is not None:
            turn.emit(PlanChanged(tuple(dict(item) for item in items)))

"""The write-ahead log of one agent's turn: `engine.turn.TurnLog` on the store's sessions."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from astroresearch.agents.redact import Redactor
from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.tool import Effect
from astroresearch.store.sessions import SessionStore


class SessionLog:
    """Stores what an agent says and does, without secrets, as safely as each row needs.

    User messages and the start of calls with an effect are on disk when a method returns; the rest survives a crash of
    this process. What was shown up to then is stored before each row (`save_shown`), so that a timeline that is replayed
    never knows less than the history.
    """

    def __init__(
        self,
        sessions: SessionStore,
        session_id: str,
        turn_id: str,
        agent: str,
        redactor: Redactor,
        save_shown: Callable[[], Awaitable[None]],
    ) -> None:
        self._save_shown = save_shown
        self._sessions = sessions
        self._session_id = session_id
        self._turn_id = turn_id
        self._agent = agent
        self._redactor = redactor

    async def append(self, message: Message) -> None:
        """Stores a message; a user's durably."""
        await self._save_shown()
        await self._sessions.append(self._session_id, self._clean(message), durable=message.role == "user")

    async def tool_started(self, call: ToolCall, arguments: Mapping[str, Any], effect: Effect) -> None:
        """Stores that a call begins."""
        await self._save_shown()
        clean = self._redactor.plain(dict(arguments))
        await self._sessions.tool_started(self._session_id, call, clean, effect, self._turn_id, self._agent)

    async def tool_finished(self, call: ToolCall, result: Message) -> None:
        """Stores a call's end and its result."""
        await self._save_shown()
        await self._sessions.tool_finished(self._session_id, call, self._clean(result))

    def _clean(self, message: Message) -> Message:
        return dataclasses.replace(
            message,
            content=self._redactor.text(message.content),
            reasoning=self._redactor.text(message.reasoning),
            tool_calls=tuple(
                dataclasses.replace(call, arguments=self._redactor.text(call.arguments)) for call in message.tool_calls
            ),
            turn_id=message.turn_id or self._turn_id,
            meta=self._redactor.plain(dict(message.meta)),
        )

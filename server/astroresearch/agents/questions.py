"""Questions to the user, permissions included: asked once, answered from wherever the answer comes, withdrawn on a cancel."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from astroresearch.agents.frontend import FrontEnd
from astroresearch.agents.running import Running
from astroresearch.engine.events import QuestionAsked
from astroresearch.engine.tool import ToolContext
from astroresearch.engine.turn import PermissionAnswer, PermissionRequest

_CHOICES = frozenset({"once", "session", "workspace", "deny", "deny_reason"})
Answer = tuple[str, str]
"(choice, text)."


@dataclass
class _Pending:
    """A question that waits. The first answer counts; withdrawn ones have None."""

    root_id: str
    choices: frozenset[str] = frozenset()
    "For a permission: the only words that are an answer. Empty: any text is."
    answer: Answer | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)

    def settle(self, answer: Answer | None) -> bool:
        if self.settled.is_set():
            return False
        self.answer = answer
        self.settled.set()
        return True


class QuestionDesk:
    """Fits `tools.ports.Questions`, and gives each agent its `engine.turn.Asker`."""

    def __init__(self, running: Running, front_end: FrontEnd, *, timeout_s: float = 300.0) -> None:
        self._running = running
        self.front_end = front_end
        self.timeout_s = timeout_s
        self._pending: dict[str, _Pending] = {}

    def asker(self, root_id: str) -> SessionAsker:
        """What asks for the permissions of one conversation, its subagents included."""
        return SessionAsker(self, root_id)

    def answer(self, question_id: str, choice: str = "", text: str = "") -> bool:
        """An answer from the timeline. False: nothing waits under this id, or it is no answer."""
        pending = self._pending.get(question_id)
        if pending is None or (choice not in pending.choices if pending.choices else not (choice or text)):
            return False
        return pending.settle((choice, text))

    def withdraw(self, root_id: str) -> None:
        """Ends all questions of a conversation unanswered: its turn is being cancelled."""
        for pending in list(self._pending.values()):
            if pending.root_id == root_id:
                pending.settle(None)

    async def ask(self, text: str, choices: Sequence[str], context: ToolContext[Any]) -> str | None:
        """The user's answer, or None when none came in time or the turn is being cancelled."""
        turn = self._running.find(context.session_id)
        # A call that a cancel does not end may begin just after the questions were withdrawn.
        if turn is None or self.front_end.silent or turn.scope.cancel_called:
            return None
        question_id = secrets.token_hex(6)
        shown = QuestionAsked(question_id, text, tuple(choices))
        turn.emit(shown)

        async def by_request() -> Answer | None:
            reply = await self.front_end.ask(question_id, text, choices, session_id=turn.root_id, turn_id=turn.turn_id)
            return None if reply is None else ("", reply)

        answer: Answer | None = None
        try:
            answer = await self._wait(question_id, _Pending(turn.root_id), by_request)
        finally:
            reply = None if answer is None else answer[1] or answer[0]
            turn.emit(
                QuestionAsked(question_id, text, tuple(choices), resolved="cancelled" if reply is None else reply)
            )
        return reply

    async def permission(self, request: PermissionRequest, root_id: str) -> PermissionAnswer | None:
        """The user's answer to whether a call may run; None is a deny. The gate shows the question in the timeline."""
        turn = self._running.find(root_id)
        if turn is None or self.front_end.silent or turn.scope.cancel_called:
            return None
        words = _CHOICES if request.offer_always else _CHOICES - {"session", "workspace"}

        async def by_request() -> Answer | None:
            reply = await self.front_end.permission(request, session_id=root_id, turn_id=turn.turn_id)
            return None if reply is None or reply.request_id != request.id else (reply.choice, reply.reason)

        answer = await self._wait(request.id, _Pending(root_id, words), by_request)
        return _permission_answer(request.id, answer)

    async def _wait(
        self, question_id: str, pending: _Pending, by_request: Callable[[], Awaitable[Answer | None]]
    ) -> Answer | None:
        """The first answer from either side; the other side's question is withdrawn."""
        self._pending[question_id] = pending

        async def request() -> None:
            answer = await by_request()
            if answer is not None and (not pending.choices or answer[0] in pending.choices):
                pending.settle(answer)
            elif answer is not None or not self.front_end.answers_in_timeline:
                pending.settle(None)

        try:
            with anyio.move_on_after(self.timeout_s):
                async with anyio.create_task_group() as group:
                    group.start_soon(request)
                    await pending.settled.wait()
                    group.cancel_scope.cancel()
        finally:
            pending.settle(None)
            del self._pending[question_id]
        return pending.answer


def _permission_answer(request_id: str, answer: Answer | None) -> PermissionAnswer | None:
    if answer is None:
        return None
    choice, text = answer
    if choice == "once":
        return PermissionAnswer(request_id, "once")
    if choice == "session":
        return PermissionAnswer(request_id, "session")
    if choice == "workspace":
        return PermissionAnswer(request_id, "workspace")
    return PermissionAnswer(request_id, "deny", text)


class SessionAsker:
    """Fits `engine.turn.Asker` for one conversation."""

    def __init__(self, desk: QuestionDesk, root_id: str) -> None:
        self._desk = desk
        self._root_id = root_id

    async def permission(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Asks in the conversation's front end."""
        return await self._desk.permission(request, self._root_id)

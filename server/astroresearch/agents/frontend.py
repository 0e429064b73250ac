"""How agents reach the user: what a front end must offer. lsp/features/chat.py is the real one, tests bring their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from astroresearch.engine.turn import PermissionAnswer, PermissionRequest


class FrontEnd(Protocol):
    """One editor window. A cancelled call withdraws its question there."""

    @property
    def silent(self) -> bool:
        """Nobody can be asked: every ask is a deny, and `ask_user` is refused."""
        ...

    @property
    def answers_in_timeline(self) -> bool:
        """The front end shows questions from their events and answers with `SessionManager.answer`.

        Where it is true, None from the two requests below means "wait for `answer`"; where it is false, None is final.
        """
        ...

    async def permission(self, request: PermissionRequest, *, session_id: str, turn_id: str) -> PermissionAnswer | None:
        """Asks whether a call may run; None where this can't be asked by a request or nobody answered."""
        ...

    async def ask(
        self, question_id: str, text: str, choices: Sequence[str], *, session_id: str, turn_id: str
    ) -> str | None:
        """Asks a question of the agent; None where this can't be asked by a request or nobody answered."""
        ...


class NoFrontEnd:
    """Nobody is there: pipelines and tests."""

    silent = True
    answers_in_timeline = False

    async def permission(self, request: PermissionRequest, *, session_id: str, turn_id: str) -> PermissionAnswer | None:
        """Nobody answers."""
        return None

    async def ask(
        self, question_id: str, text: str, choices: Sequence[str], *, session_id: str, turn_id: str
    ) -> str | None:
        """Nobody answers."""
        return None

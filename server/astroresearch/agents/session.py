"""Sessions and their turns: who may run one, in which order, what is stored when, and how it ends.

`SessionManager` runs every turn inside its own task group (`async with manager:`), so that nothing outlives the server's
scope, and a cancel returns only when no task of the turn is alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from astroresearch.engine.events import StopReason
from astroresearch.engine.hooks import Hooks
from astroresearch.engine.model import Model
from astroresearch.engine.tool import Registry
from astroresearch.engine.turn import Limits, ResultStore, TurnUsage

Sink = Callable[[dict[str, Any]], None]
"Takes one event in its wire shape (stamped, redacted, coalesced). Never blocks, never raises."


@dataclass(frozen=True, slots=True)
class EditorContext:
    """What the editor shows when a question is sent; the LSP layer fills it from its buffers."""

    path: str = ""
    "Of the open file, as tools name it."
    unsaved: bool = False
    start_line: int = 0
    "Of the selection, from 1; 0 for none."
    end_line: int = 0
    selection: str = ""
    cite_keys: tuple[str, ...] = ()
    trusted: bool = True
    "False for files of a workspace that the user has not trusted: the selection is then a stranger's text."


@dataclass(frozen=True, slots=True)
class SendRequest:
    """One message of the user."""

    text: str
    session_id: str | None = None
    "None starts a session."
    mode: Literal["agent", "plan", "coordinator"] = "agent"
    model: str | None = None
    "None: the one that is active."
    thinking: bool = False
    steer: bool = False
    "Hand it to the running turn between two steps; without a running turn it starts one."
    context: EditorContext | None = None


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """How a send ended; `queued` answers at once, and its turn follows."""

    session_id: str
    turn_id: str = ""
    answer: str = ""
    citations: tuple[Mapping[str, Any], ...] = ()
    usage: TurnUsage = TurnUsage()
    stop_reason: StopReason = "end_turn"
    error: str = ""
    queued: bool = False
    position: int = 0
    "In the queue, from 1; 0 for a message that steers the running turn."
    steered: bool = False


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What is the same for all turns."""

    limits: Limits = Limits()
    workspace: str = ""
    "Of new sessions: the path of the first folder."
    prices: tuple[float, float] | None = None
    "A million input tokens, a million output tokens."
    secrets: Sequence[str] = ()
    "Replaced by `…` wherever they turn up."
    extra: Mapping[str, Any] = field(default_factory=dict)


class SessionManager:
    """All sessions of one server: `async with manager:` opens it, leaving it ends every turn.

    Methods raise `NotFound` for an unknown session and `Conflict` for one that another window holds.
    """

    async def __aenter__(self) -> SessionManager:
        """Opens the task group in which turns run."""
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Cancels what runs, waits for its end, releases the leases."""
        raise NotImplementedError

    async def send(self, request: SendRequest, sink: Sink) -> SendOutcome:
        """Runs one turn and returns when it has ended, or queues it behind the running one and returns at once.

        The user's message is on disk before the model is called. Cancelling the caller's scope cancels the turn and
        raises on when it has ended.
        """
        raise NotImplementedError

    async def cancel(self, session_id: str) -> bool:
        """Stops the running turn and returns its queued messages; True if there was one. Returns when it is over."""
        raise NotImplementedError

    def answer(self, question_id: str, *, choice: str = "", text: str = "") -> bool:
        """Answers a permission (`choice`: once, session, workspace, deny) or a question; False if it no longer waits."""
        raise NotImplementedError

    async def list(self, limit: int = 50, offset: int = 0) -> Sequence[dict[str, Any]]:
        """Sessions of the user as plain JSON, newest first, with `running`."""
        raise NotImplementedError

    async def get(self, session_id: str) -> dict[str, Any]:
        """A session as plain JSON with its `messages`."""
        raise NotImplementedError

    async def events(
        self, session_id: str, from_seq: int = 0, limit: int = 5_000, *, last: bool = False
    ) -> tuple[Sequence[dict[str, Any]], int]:
        """The stored timeline and the next `seq`."""
        raise NotImplementedError

    async def rename(self, session_id: str, title: str) -> dict[str, Any]:
        """Gives it a title."""
        raise NotImplementedError

    async def delete(self, session_id: str) -> bool:
        """Cancels what runs and removes it with its subagents' sessions."""
        raise NotImplementedError

    async def export(self, session_id: str) -> str:
        """The conversation as Markdown."""
        raise NotImplementedError

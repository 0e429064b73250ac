"""What a turn needs from outside and what it gives back: the ports that agents/ fits and the loop uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from astroresearch.engine.events import Event, StopReason
from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.tool import Effect

Emit = Callable[[Event], None]
"Takes an event into the timeline; never blocks, never raises."


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may use."""

    max_steps: int = 50
    max_turn_tokens: int = 1_000_000
    max_concurrent_tools: int = 4
    tool_timeout_s: float = 120.0
    max_result_chars: int = 4_000
    "Longer results are persisted and the model gets a stub."
    max_cost: float | None = None
    "In the currency of the prices; None: no limit."


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Sum over the requests of a turn. `cost` is None where no price is known."""

    input: int = 0
    output: int = 0
    cached: int = 0
    estimated: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. The messages are in the log already."""

    answer: str
    stop_reason: StopReason
    usage: TurnUsage
    steps: int
    citations: tuple[Mapping[str, Any], ...] = ()
    "All citations that tools reported in `metadata['citations']`, in order, without repeats."
    error: str = ""
    tainted: bool = False
    calls: tuple[tuple[str, str], ...] = ()
    "(tool, status) of every call, for a subagent's report."


class TurnLog(Protocol):
    """The write-ahead log. Each method returns when the row is as safe as docs/architecture.md says it must be."""

    async def append(self, message: Message) -> None:
        """Stores a message of the history (user, assistant, tool)."""
        ...

    async def tool_started(self, call: ToolCall, arguments: Mapping[str, Any], effect: Effect) -> None:
        """Stored before the side effect. A kill after this makes the call *interrupted, effects unknown*."""
        ...

    async def tool_finished(self, call: ToolCall, result: Message) -> None:
        """Stores a call's end together with its result message, before the model sees it."""
        ...


class ResultStore(Protocol):
    """Keeps results that are too long for the context."""

    async def persist(self, content: str, *, tool: str, call_id: str) -> str:
        """Writes once under a name of our own and returns the `<persisted-output>` stub for the model."""
        ...


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What the user is asked before a call runs."""

    id: str
    tool: str
    call_id: str
    agent: str
    title: str
    detail: str
    rule: str
    "The narrowest rule that an answer for the session would store, `file_edit(sections/a.tex)`."
    offer_always: bool = True
    "False once tainted: only once or deny."
    reason: str = ""
    "Why it asks: the rule, the taint and its source."


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The answer; anything but a matching answer is a deny."""

    request_id: str
    choice: Literal["once", "session", "workspace", "deny"]
    reason: str = ""
    "What the user said to the model along with a deny."


class Asker(Protocol):
    """Asks the user. Withdraws the question when cancelled."""

    async def permission(self, request: PermissionRequest) -> PermissionAnswer | None:
        """None: nobody can be asked, or no answer in time; both are a deny."""
        ...


class Inbox(Protocol):
    """Messages that arrive while a turn runs: a user's steering, results of background tasks."""

    def take(self) -> Sequence[Message]:
        """Everything since the last call, possibly nothing; called between steps."""
        ...


@dataclass(frozen=True, slots=True)
class TurnStart:
    """One turn to run."""

    session_id: str
    turn_id: str
    history: Sequence[Message]
    "System prompt first, the new user message last; already stored."
    agent: str = "main"
    thinking: bool = False
    silent: bool = False
    depth: int = 0
    mode: Literal["agent", "plan", "coordinator"] = "agent"
    "`plan` offers read-only tools only."
    extra: Mapping[str, Any] = field(default_factory=dict)
    known_call_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SubagentReport:
    """What comes back from a subagent."""

    summary: str
    status: str
    steps: int
    calls: tuple[tuple[str, str], ...]
    session_id: str
    tainted: bool

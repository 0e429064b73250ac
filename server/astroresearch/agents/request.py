"""What a front end asks of an agent and what it gets back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from astroresearch.engine.events import StopReason
from astroresearch.engine.permissions import Grant, PermissionRules
from astroresearch.engine.turn import Limits, TurnUsage

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
    usage: TurnUsage = field(default_factory=TurnUsage)
    stop_reason: StopReason = "end_turn"
    error: str = ""
    queued: bool = False
    position: int = 0
    "In the queue, from 1; 0 for a message that steers the running turn."
    steered: bool = False


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What is the same for all turns."""

    limits: Limits = field(default_factory=Limits)
    workspace: str = ""
    "Of new sessions: the path of the first folder."
    prices: tuple[float, float] | None = None
    "A million input tokens, a million output tokens."
    secrets: Sequence[str] = ()
    "Replaced wherever they turn up."
    rules: PermissionRules = field(default_factory=PermissionRules)
    granted: Sequence[str] = ()
    "Rules that the user has allowed in this workspace before."
    on_grant: Callable[[Grant], None] | None = None
    "Told of what the user allows, so that grants for the workspace can be kept."
    question_timeout_s: float = 300.0

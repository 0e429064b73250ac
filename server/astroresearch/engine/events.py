"""The timeline: one closed union of events. A front end is a pure fold over them, live or replayed.

Classes are past tense; the words on the wire are in `WIRE`, the rows of the log in `LOG_KIND`. docs/protocol.md holds the
table of all three, and vscode-extension/src/protocol.ts mirrors it; tests compare them. Events hold no secrets and nothing
that is not plain JSON.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ToolStatus = Literal["completed", "failed", "cancelled", "denied", "interrupted"]
StopReason = Literal["end_turn", "max_steps", "budget", "loop", "interrupted", "refusal", "cancelled", "error"]
PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """Always the first event of a turn."""

    session_id: str
    title: str
    question: str = ""
    "The user's words of this turn, so that a replayed timeline shows them."


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """Some reasoning of the model, or a plan line of the extractive answerer."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageDelta:
    """Some text of the answer, Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call was announced; it may still wait for a permission."""

    id: str
    name: str
    kind: str
    "For icons: read, search, edit, execute, think, fetch, other."
    arguments: Mapping[str, Any]
    step: int
    title: str = ""
    "A line for people: `Search the library for “cooling flow”`."


@dataclass(frozen=True, slots=True)
class ToolProgressed:
    """A running call reports."""

    id: str
    text: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call ended; exactly once per `ToolStarted`."""

    id: str
    status: ToolStatus
    preview: str
    "The head of the result, for people."
    is_error: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The todo list, whole. Items: {id, content, status, blockedBy}."""

    items: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """A question whether a call may run; sent again with `resolved` (the chosen option, or `cancelled`) when it ends."""

    id: str
    tool_id: str
    title: str
    detail: str
    options: tuple[Mapping[str, str], ...]
    "{id, label}: once, session, workspace, deny, deny_reason."
    resolved: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A question of the agent to the user; sent again with `resolved` (the answer) when it ends."""

    id: str
    text: str
    choices: tuple[str, ...] = ()
    resolved: str | None = None


@dataclass(frozen=True, slots=True)
class SubagentStarted:
    """A subagent began; its own events carry its `agent` name."""

    id: str
    name: str
    task: str


@dataclass(frozen=True, slots=True)
class SubagentFinished:
    """A subagent ended."""

    id: str
    status: ToolStatus
    summary: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """The history was shortened; token counts before and after."""

    before: int
    after: int
    kind: Literal["micro", "auto", "manual"]


@dataclass(frozen=True, slots=True)
class UsageReported:
    """Tokens of the turn so far."""

    input: int
    output: int
    cached: int
    estimated: bool
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the user should know that is not part of the answer."""

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn failed; the partial answer is kept."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class TurnDone:
    """Always the last event of a turn, once."""

    stop_reason: StopReason


Event = (
    SessionOpened
    | ThoughtDelta
    | MessageDelta
    | ToolStarted
    | ToolProgressed
    | ToolFinished
    | PlanChanged
    | PermissionAsked
    | QuestionAsked
    | SubagentStarted
    | SubagentFinished
    | Compacted
    | UsageReported
    | Noticed
    | Failed
    | TurnDone
)

WIRE: Mapping[type[Any], str] = {
    SessionOpened: "session",
    ThoughtDelta: "thought.delta",
    MessageDelta: "message.delta",
    ToolStarted: "tool.start",
    ToolProgressed: "tool.progress",
    ToolFinished: "tool.end",
    PlanChanged: "plan",
    PermissionAsked: "permission",
    QuestionAsked: "question",
    SubagentStarted: "subagent.start",
    SubagentFinished: "subagent.end",
    Compacted: "compaction",
    UsageReported: "usage",
    Noticed: "notice",
    Failed: "error",
    TurnDone: "done",
}
LOG_KIND: Mapping[type[Any], str] = {
    SessionOpened: "session_opened",
    ThoughtDelta: "thought_delta",
    MessageDelta: "message_delta",
    ToolStarted: "tool_announced",
    ToolProgressed: "tool_progressed",
    ToolFinished: "tool_ended",
    PlanChanged: "plan_changed",
    PermissionAsked: "permission_asked",
    QuestionAsked: "question_asked",
    SubagentStarted: "subagent_started",
    SubagentFinished: "subagent_finished",
    Compacted: "compacted",
    UsageReported: "usage_reported",
    Noticed: "noticed",
    Failed: "failed",
    TurnDone: "turn_done",
}
EVENT_TYPES: Mapping[str, type[Any]] = {word: cls for cls, word in WIRE.items()}


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event with its place in the session's timeline. `seq` counts per session without gaps, subagents included."""

    seq: int
    turn_id: str
    agent: str
    ts: str
    "ISO 8601 in UTC."
    event: Event


def to_wire(stamped: Stamped) -> dict[str, Any]:
    """`{v, seq, turnId, agent, type, ts, …}` with the event's own fields in camelCase; None fields are left out."""
    body: dict[str, Any] = {
        "v": PROTOCOL_VERSION,
        "seq": stamped.seq,
        "turnId": stamped.turn_id,
        "agent": stamped.agent,
        "type": WIRE[type(stamped.event)],
        "ts": stamped.ts,
    }
    for f in dataclasses.fields(stamped.event):
        value = getattr(stamped.event, f.name)
        if value is not None:
            body[_camel(f.name)] = _plain(value)
    return body


def from_wire(body: Mapping[str, Any]) -> Stamped:
    """The inverse of `to_wire`, for replay.

    Raises:
        KeyError: The type is not one of ours.
    """
    cls = EVENT_TYPES[body["type"]]
    arguments: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        key = _camel(f.name)
        if key in body:
            value = body[key]
            arguments[f.name] = tuple(value) if isinstance(value, list) else value
    return Stamped(body["seq"], body["turnId"], body["agent"], body["ts"], cls(**arguments))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)

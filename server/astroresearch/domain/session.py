"""A conversation as it is kept: its record, and the calls that a crash may have left without an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """Tokens of all turns of a session. `cost` is None where no price was known for any of them."""

    input: int = 0
    output: int = 0
    cached: int = 0
    estimated: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session."""

    id: str
    title: str
    created: str
    "ISO 8601 in UTC."
    updated: str
    turn_count: int = 0
    "Finished turns."
    parent: str = ""
    "The session that spawned this one (a subagent's), else empty."
    agent: str = "main"
    workspace: str = ""
    "The folder that was open when it began, for lists that show this workspace first."
    summary: str = ""
    "The head of the newest answer, for lists."
    usage: SessionUsage = SessionUsage()


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that the model asked for and that has no result yet."""

    id: str
    name: str
    arguments: str
    "JSON text: the checked arguments once it has started, before that as the model wrote them."
    effect: str
    "The tool's effect; empty before the call has started."
    started: bool
    "False: announced only, nothing has run. True: it ran at least in part, its effects are unknown."
    turn_id: str
    agent: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit log."""

    ts: str
    "ISO 8601 in UTC."
    session_id: str
    agent: str
    kind: str
    payload: dict[str, object]

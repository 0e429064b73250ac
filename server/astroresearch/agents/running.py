"""The turns that run now, by session: what questions, plans and subagents need of the turn that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import anyio

from astroresearch.agents.timeline import Timeline
from astroresearch.engine.model import Model
from astroresearch.engine.turn import Emit


@dataclass
class LiveTurn:
    """One agent's part in a running turn; a subagent has its own, on the timeline of its parent's."""

    session_id: str
    "The agent's own session."
    root_id: str
    "The session of the user's conversation, to which the timeline belongs."
    turn_id: str
    agent: str
    timeline: Timeline
    emit: Emit
    model: Model
    scope: anyio.CancelScope
    "Of the user's turn: once it is cancelled nothing is asked any more."
    mode: Literal["agent", "plan", "coordinator"] = "agent"
    thinking: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)
    spawned: int = 0
    names: set[str] = field(default_factory=lambda: {"main"})
    "Agents of this turn: a name is given once."


class Running:
    """All of them."""

    def __init__(self) -> None:
        self._turns: dict[str, LiveTurn] = {}

    def find(self, session_id: str) -> LiveTurn | None:
        """The turn that runs in this session, if any."""
        return self._turns.get(session_id)

    def add(self, turn: LiveTurn) -> None:
        """Registers a turn that begins."""
        self._turns[turn.session_id] = turn

    def remove(self, turn: LiveTurn) -> None:
        """Forgets a turn that ended."""
        if self._turns.get(turn.session_id) is turn:
            del self._turns[turn.session_id]

"""The parts of an engine that all agents of one server share, and how one agent's engine is put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from astroresearch.agents.log import SessionLog
from astroresearch.agents.redact import Redactor
from astroresearch.agents.running import LiveTurn, Running
from astroresearch.engine.hooks import Hooks
from astroresearch.engine.loop import ReactEngine
from astroresearch.engine.permissions import PermissionGate
from astroresearch.engine.tool import ReadState, Registry
from astroresearch.engine.turn import Inbox, Limits, ResultStore
from astroresearch.store.sessions import SessionStore


@dataclass
class EngineParts:
    """`services` is what tools get; app.py joins it when everything that it consists of is there."""

    sessions: SessionStore
    registry: Registry
    hooks: Hooks
    results: ResultStore
    limits: Limits
    redactor: Redactor
    running: Running = field(default_factory=Running)
    prices: tuple[float, float] | None = None
    services: Any = None

    def engine(
        self,
        turn: LiveTurn,
        gate: PermissionGate,
        reads: dict[str, ReadState],
        *,
        registry: Registry | None = None,
        limits: Limits | None = None,
        inbox: Inbox | None = None,
    ) -> ReactEngine:
        """The one engine with one agent's things injected."""
        return ReactEngine(
            model=turn.model,
            registry=registry or self.registry,
            permissions=gate,
            hooks=self.hooks,
            log=SessionLog(self.sessions, turn.session_id, turn.turn_id, turn.agent, self.redactor, turn.timeline.save),
            emit=turn.emit,
            results=self.results,
            limits=limits or self.limits,
            services=self.services,
            inbox=inbox,
            prices=self.prices,
            reads=reads,
        )

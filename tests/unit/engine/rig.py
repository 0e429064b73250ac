"""One engine with everything in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from astroresearch.engine.events import Event, ToolFinished
from astroresearch.engine.hooks import Hook, Hooks
from astroresearch.engine.loop import ReactEngine
from astroresearch.engine.messages import Message
from astroresearch.engine.permissions import PermissionGate, PermissionRules
from astroresearch.engine.tool import AnyTool
from astroresearch.engine.turn import Limits, TurnResult, TurnStart
from astroresearch.models.scripted import Scripted
from tests.fakes.log import Letters, MemoryLog, MemoryResults
from tests.fakes.tools import registry

SYSTEM = Message("system", "You help an astronomer.")


def calls(*wanted: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """A scripted reply that calls tools."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in wanted], **more}


@dataclass
class Rig:
    script: Sequence[Any] | Mapping[str, Any]
    tools: Sequence[AnyTool] = ()
    rules: PermissionRules = field(default_factory=PermissionRules)
    asker: Any = None
    hooks: Sequence[Hook] = ()
    limits: Limits = field(default_factory=Limits)
    prices: tuple[float, float] | None = None
    inbox: Letters = field(default_factory=Letters)
    log: MemoryLog = field(default_factory=MemoryLog)
    results: MemoryResults = field(default_factory=MemoryResults)
    history: list[Message] = field(default_factory=lambda: [SYSTEM])
    events: list[Event] = field(default_factory=list)
    watch: Callable[[Event], object] | None = None
    turns: int = 0

    def __post_init__(self) -> None:
        self.model = Scripted(self.script, record=True)
        self.gate = PermissionGate(self.rules, self.asker)
        self.engine = ReactEngine(
            model=self.model,
            registry=registry(*self.tools),
            permissions=self.gate,
            hooks=Hooks(self.hooks),
            log=self.log,
            emit=self._emit,
            results=self.results,
            limits=self.limits,
            inbox=self.inbox,
            prices=self.prices,
        )

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        if self.watch is not None:
            self.watch(event)

    async def send(self, text: str = "What is known?", **start: Any) -> TurnResult:
        """Runs one turn as a session does: the user's message is stored first, and the log is the next history."""
        self.turns += 1
        turn_id = f"t{self.turns}"
        message = Message("user", text, turn_id=turn_id)
        history = [*self.history, *self.log.messages, message]
        await self.log.append(message)
        return await self.engine.run(TurnStart("s", turn_id, history, **start))

    def results_of(self, index: int = -1) -> list[Message]:
        """The results that the model saw in its last request (or another one)."""
        return [m for m in self.model.requests[index].messages if m.role == "tool"]

    def of(self, kind: type[Any]) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind)]

    def ends(self) -> list[str]:
        return [e.status for e in self.of(ToolFinished)]

"""The engine's ports in memory: a write-ahead log, a store of results, people who answer, an inbox; and what must hold of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from astroresearch.engine.events import Event, MessageDelta, PermissionAsked, ToolFinished, ToolProgressed, ToolStarted
from astroresearch.engine.history import is_object
from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.tool import Effect
from astroresearch.engine.turn import PermissionAnswer, PermissionRequest
from astroresearch.errors import AstroResearchError


@dataclass
class MemoryLog:
    """Keeps everything in the order in which it came; `fail_on` raises instead of storing."""

    messages: list[Message] = field(default_factory=list)
    rows: list[tuple[str, str]] = field(default_factory=list)
    fail_on: str = ""
    error: AstroResearchError | None = None

    async def append(self, message: Message) -> None:
        self._trip("append")
        await anyio.lowlevel.checkpoint()
        self.messages.append(message)
        self.rows.append(("append", message.role))

    async def tool_started(self, call: ToolCall, arguments: Mapping[str, Any], effect: Effect) -> None:
        self._trip("tool_started")
        await anyio.lowlevel.checkpoint()
        self.rows.append(("tool_started", call.id))

    async def tool_finished(self, call: ToolCall, result: Message) -> None:
        self._trip("tool_finished")
        await anyio.lowlevel.checkpoint()
        self.messages.append(result)
        self.rows.append(("tool_finished", call.id))

    def _trip(self, name: str) -> None:
        if self.fail_on == name and self.error is not None:
            raise self.error


@dataclass
class MemoryResults:
    """Keeps long results; `error` raises instead."""

    kept: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None

    async def persist(self, content: str, *, tool: str, call_id: str) -> str:
        if self.error is not None:
            raise self.error
        self.kept[call_id] = content
        return f"<persisted-output size={len(content)}>{content[:20]}</persisted-output>"


@dataclass
class Person:
    """Answers permission questions with `choice`, or as `answer` says; remembers them."""

    choice: str | None = "once"
    answer: Callable[[PermissionRequest], PermissionAnswer | None] | None = None
    asked: list[PermissionRequest] = field(default_factory=list)
    slow: bool = False
    withdrawn: int = 0

    async def permission(self, request: PermissionRequest) -> PermissionAnswer | None:
        self.asked.append(request)
        try:
            if self.slow:
                await anyio.sleep_forever()
            await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            self.withdrawn += 1
            raise
        if self.answer is not None:
            return self.answer(request)
        return PermissionAnswer(request.id, self.choice) if self.choice else None  # type: ignore[arg-type]


@dataclass
class Letters:
    """An inbox: one batch for each time that it is looked into."""

    batches: list[list[Message]] = field(default_factory=list)

    def take(self) -> Sequence[Message]:
        return self.batches.pop(0) if self.batches else ()


def complaints(messages: Sequence[Message]) -> list[str]:
    """What a strict provider would refuse."""
    found: list[str] = []
    seen: set[str] = set()
    due: list[str] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            if not due or message.tool_call_id != due[0]:
                found.append(f"{index}: result {message.tool_call_id!r} where {due[:1]} is due")
            due = due[1:]
            if not message.content:
                found.append(f"{index}: empty result")
            continue
        if due:
            found.append(f"{index}: calls without result: {due}")
        due = [call.id for call in message.tool_calls]
        found += [f"{index}: call id {i!r} twice" for i in due if i in seen or due.count(i) > 1]
        found += [f"{index}: arguments {c.arguments[:40]!r}" for c in message.tool_calls if not is_object(c.arguments)]
        seen |= set(due)
        if not message.content.strip() and not message.tool_calls:
            found.append(f"{index}: empty {message.role}")
        if message.role not in ("system", "user", "assistant"):
            found.append(f"{index}: role {message.role!r}")
    return found + ([f"end: calls without result: {due}"] if due else [])


def unclosed(events: Sequence[Event]) -> list[str]:
    """Items of the timeline that did not begin and end exactly once, in that order (I5)."""
    found: list[str] = []
    open_: set[str] = set()
    counts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ToolStarted):
            open_.add(event.id)
            counts[event.id] += 1
        elif isinstance(event, ToolProgressed) and event.id not in open_:
            found.append(f"progress of {event.id} that does not run")
        elif isinstance(event, ToolFinished):
            if event.id not in open_:
                found.append(f"end of {event.id} that does not run")
            open_.discard(event.id)
        elif isinstance(event, PermissionAsked):
            key = f"question {event.id}"
            if event.resolved is None:
                open_.add(key)
            elif key not in open_:
                found.append(f"{key} ends twice")
            else:
                open_.discard(key)
    return found + [f"{i} never ended" for i in open_] + [f"{i} began {n} times" for i, n in counts.items() if n > 1]


def fold(events: Sequence[Event]) -> tuple[str, dict[str, str]]:
    """The timeline as a front end has it: the text, and the status of each call."""
    text = "".join(e.text for e in events if isinstance(e, MessageDelta))
    return text, {e.id: e.status for e in events if isinstance(e, ToolFinished)}

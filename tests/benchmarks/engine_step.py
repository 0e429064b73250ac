"""What a step of the engine costs by itself: CPU time without model and tools, at short and long histories."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from astroresearch.engine.loop import ReactEngine
from astroresearch.engine.messages import Message, ToolCall, new_call_id
from astroresearch.engine.model import ModelItem, ModelReply, ModelRequest, Usage
from astroresearch.engine.permissions import PermissionGate
from astroresearch.engine.turn import Limits, TurnStart
from tests.fakes.tools import registry, tool

STEPS = 200
SHORT, LONG = 100, 600
GOAL_MS = 10.0
GOAL_RATIO = 1.3


class _Silent:
    """A log and a store of results that cost nothing."""

    async def append(self, message: Message) -> None: ...

    async def tool_started(self, *_: Any) -> None: ...

    async def tool_finished(self, *_: Any) -> None: ...

    async def persist(self, content: str, *, tool: str, call_id: str) -> str:
        return content


class _Asking:
    """A model that asks for three tools in each of `steps` steps, and for nothing then."""

    name = "bench"
    context_window = 1_000_000

    def __init__(self, steps: int) -> None:
        self.left = steps

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelItem]]:
        yield self._items()

    async def _items(self) -> AsyncIterator[ModelItem]:
        self.left -= 1
        usage = Usage(10, 10)
        if self.left < 0:
            yield ModelReply("Done.", (), "stop", usage)
            return
        calls = tuple(ToolCall(new_call_id(), "look", f'{{"text": "{self.left} {i}"}}') for i in range(3))
        yield ModelReply("", calls, "tool_calls", usage)


def _history(length: int) -> list[Message]:
    messages = [Message("system", "You help. " * 200)]
    while len(messages) < length - 1:
        call = ToolCall(new_call_id(), "look", '{"text": "an old question"}')
        messages.append(Message("assistant", "I look.", (call,), turn_id="t0"))
        messages.append(Message("tool", "a result " * 100, tool_call_id=call.id, name="look", status="completed"))
    return [*messages, Message("user", "And now?", turn_id="t1")]


async def _step_ms(length: int, steps: int) -> float:
    """CPU milliseconds a step, the turn's start shared out among its steps."""
    silent = _Silent()
    tools = [tool("look", "seen"), *(tool(f"other{i}", "x") for i in range(15))]
    engine = ReactEngine(
        model=_Asking(steps),
        registry=registry(*tools),
        permissions=PermissionGate(),
        log=silent,
        emit=lambda event: None,
        results=silent,
        limits=Limits(max_steps=steps + 1),
    )
    history = _history(length)
    before = time.process_time()
    await engine.run(TurnStart("s", "t1", history))
    return (time.process_time() - before) * 1_000 / (steps + 1)


def _best(length: int, steps: int) -> float:
    return min(anyio.run(_step_ms, length, steps) for _ in range(5))


def measure() -> list[Mapping[str, Any]]:
    """The figures of this file."""
    short, long = _best(SHORT, 20), _best(LONG, 20)
    ratio = long / short
    return [
        {
            "name": f"engine: CPU of a step with 3 calls, {SHORT} messages",
            "ours": short,
            "reference": None,
            "ratio": None,
            "goal": f"<= {GOAL_MS:g} ms",
            "ok": short <= GOAL_MS,
            "unit": "ms",
        },
        {
            "name": f"engine: the same, {LONG} messages",
            "ours": long,
            "reference": short,
            "ratio": ratio,
            "goal": f"<= {GOAL_RATIO:g}x {SHORT} messages",
            "ok": ratio <= GOAL_RATIO,
            "unit": "ms",
        },
    ]

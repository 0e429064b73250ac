"""What a turn has used, and whether it may go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from astroresearch.engine.messages import Message
from astroresearch.engine.model import ModelReply, Usage
from astroresearch.engine.turn import Limits, TurnUsage

_CHARS_A_TOKEN = 4


class Budget:
    """Steps, tokens and cost of one turn. Checked before each step, so that a limit is passed by one step at most (I8).

    Args:
        limits: Of the turn.
        prices: Of a million input and a million output tokens; None: cost is not known.
    """

    def __init__(self, limits: Limits, prices: tuple[float, float] | None = None) -> None:
        self._limits = limits
        self._prices = prices
        self.steps = 0
        self.usage = TurnUsage(cost=0.0 if prices else None)

    def spent(self) -> Literal["max_steps", "budget"] | None:
        """Why there must be no further step, or None."""
        if self.usage.input + self.usage.output >= self._limits.max_turn_tokens:
            return "budget"
        if self._limits.max_cost is not None and (self.usage.cost or 0.0) >= self._limits.max_cost:
            return "budget"
        return "max_steps" if self.steps >= self._limits.max_steps else None

    def add(self, usage: Usage) -> None:
        """Counts one request."""
        now = self.usage
        cost = now.cost
        if self._prices is not None:
            cost = (cost or 0.0) + (usage.input * self._prices[0] + usage.output * self._prices[1]) / 1e6
        self.usage = TurnUsage(
            now.input + usage.input,
            now.output + usage.output,
            now.cached + usage.cached,
            now.estimated or usage.estimated,
            cost,
        )


def usage_of(reply: ModelReply, messages: Sequence[Message]) -> Usage:
    """What the provider counted, or an estimate where it said nothing: never zero."""
    if reply.usage.input or reply.usage.output:
        return reply.usage
    return estimated(messages, reply.text + reply.reasoning + "".join(c.arguments for c in reply.tool_calls))


def estimated(messages: Sequence[Message], output: str) -> Usage:
    """A guess by length."""
    sent = sum(len(m.content) + sum(len(c.arguments) for c in m.tool_calls) for m in messages)
    return Usage(sent // _CHARS_A_TOKEN + 1, len(output) // _CHARS_A_TOKEN + 1, estimated=True)

"""The ReAct loop: ask the model, run the calls it asks for, and so on until it answers.

`ReactEngine` is the only loop; main agent, subagents and workers are the same class with other things injected. It emits
everything between `SessionOpened` and `TurnDone`, which agents/session emits first and last.
"""

from __future__ import annotations

import re
from typing import Any

from astroresearch.engine import untrusted
from astroresearch.engine.budget import Budget
from astroresearch.engine.duplicates import Duplicates
from astroresearch.engine.events import Failed, Noticed, StopReason
from astroresearch.engine.exchange import Exchange
from astroresearch.engine.executor import Executor, Surroundings
from astroresearch.engine.hooks import Hooks
from astroresearch.engine.model import Model, ModelReply, ToolDefinition
from astroresearch.engine.permissions import PermissionGate, reads_only
from astroresearch.engine.tool import ReadState, Registry
from astroresearch.engine.turn import Emit, Inbox, Limits, ResultStore, TurnLog, TurnResult, TurnStart
from astroresearch.errors import AstroResearchError, ModelError

_WHY = {
    "max_steps": "The limit of steps for one turn is reached",
    "budget": "The limit of tokens or cost for one turn is reached",
    "loop": "The agent is turning in circles",
}
_LAST = "{why}. No more tools can be used: give the best answer you can from what you have, and say what is missing."
_OTHERWISE = "Ask again in other words, or choose another model."
_CALL = re.compile(r"""\s*(?:```(?:json)?|<\w+>)?\s*\{\s*"name"\s*:\s*"\w+"\s*,\s*"(?:arguments|parameters)"\s*:""")
_EMPTY = "Your last answer was empty. Answer the question, or call a tool."


class ReactEngine:
    """Runs turns. Holds nothing of a turn, so that several may run at once.

    Args:
        services: Handed to tools in their context.
        inbox: Steering; taken between steps only while the turn goes on, so that nothing is lost. The loop stores the messages.
        prices: Of a million input and output tokens.
        reads: What was read in this session (see `ReadState`).
    """

    def __init__(
        self,
        *,
        model: Model,
        registry: Registry,
        permissions: PermissionGate,
        log: TurnLog,
        emit: Emit,
        results: ResultStore,
        hooks: Hooks | None = None,
        limits: Limits | None = None,
        services: Any = None,
        inbox: Inbox | None = None,
        prices: tuple[float, float] | None = None,
        reads: dict[str, ReadState] | None = None,
    ) -> None:
        self.model = model
        self.inbox = inbox
        self.prices = prices
        self.around = Surroundings(
            registry,
            permissions,
            hooks or Hooks(),
            log,
            emit,
            results,
            limits or Limits(),
            services,
            {} if reads is None else reads,
        )

    async def run(self, start: TurnStart) -> TurnResult:
        """Runs one turn to its end.

        A cancel of the surrounding scope ends it: what came is stored, every call gets its end, and the cancellation goes on.
        Errors of the model and the store become a `Failed` event and the stop reason `error`.
        """
        turn = _Turn(self, start)
        try:
            reason = await turn.steps()
        except AstroResearchError as error:
            code = f"model_{error.kind}" if isinstance(error, ModelError) else error.code
            turn.fail(code, error.message, error.hint)
            reason = "error"
        return turn.result(reason)


class _Turn:
    """One turn under way."""

    def __init__(self, engine: ReactEngine, start: TurnStart) -> None:
        around = engine.around
        self._inbox = engine.inbox
        self._emit = around.emit
        self._tools = _offered(around.registry, start.mode)
        self._budget = Budget(around.limits, engine.prices)
        self._duplicates = Duplicates()
        self._exchange = Exchange(engine.model, around.log, around.emit, self._budget, start)
        self._executor = Executor(
            around, start, taint=self._exchange.taint, duplicates=self._duplicates, nonce=untrusted.new_nonce()
        )
        self._error = ""

    async def steps(self) -> StopReason:
        """The loop. Every limit is checked here, before each request."""
        while True:
            why: StopReason | None = "loop" if self._duplicates.looping else self._budget.spent()
            if why is not None:
                return await self._last_answer(why)
            await self._steer()
            reply, calls = await self._exchange.ask(self._tools)
            if reply.finish in ("interrupted", "refusal"):
                return self._broken(reply)
            if calls:
                cut = reply.finish == "length"
                self._exchange.take(await self._executor.run(calls, step=self._budget.steps, truncated=cut))
                if self._executor.ends_turn:
                    return "end_turn"
            elif not reply.text.strip():
                self._duplicates.silence()
                await self._exchange.say(_EMPTY)
            elif not await self._steer():
                if reply.finish == "length":
                    self._emit(Noticed("warning", "The answer was cut by the model's output limit."))
                return "end_turn"

    async def _last_answer(self, why: StopReason) -> StopReason:
        self._emit(Noticed("warning", f"{_WHY[why]}; the answer is the best so far."))
        await self._exchange.say(_LAST.format(why=_WHY[why]))
        reply, _ = await self._exchange.ask(())
        if reply.finish in ("interrupted", "refusal"):
            self._broken(reply)
        elif not reply.text.strip():
            self.fail("model_empty", "The model gave no answer.", _OTHERWISE)
        elif _is_call(reply.text):
            self.fail("model_empty", "The model asked for one more tool instead of answering.", _OTHERWISE)
        return why

    async def _steer(self) -> bool:
        """Takes what arrived meanwhile into the history; True if something did."""
        arrived = self._inbox.take() if self._inbox is not None else ()
        for message in arrived:  # `keep` is shielded, so that nothing that is out of the inbox gets lost
            await self._exchange.keep(message)
            self._duplicates.heard()
        return bool(arrived)

    def _broken(self, reply: ModelReply) -> StopReason:
        if reply.finish == "refusal":
            said = reply.problem or "The model declined to answer."
            self.fail("model_refusal", said, "Ask in other words, or choose another model.")
            return "refusal"
        said = reply.problem or "The model's answer broke off."
        self.fail("model_interrupted", said, "What came is kept; ask again to go on.")
        return "interrupted"

    def fail(self, code: str, message: str, hint: str) -> None:
        """Tells the user what ended the turn."""
        self._error = f"{message} {hint}".strip()
        self._emit(Failed(code, message, hint))

    def result(self, reason: StopReason) -> TurnResult:
        """The turn as it ended."""
        return TurnResult(
            answer=self._exchange.answer,
            stop_reason=reason,
            usage=self._budget.usage,
            steps=self._budget.steps,
            citations=tuple(self._executor.citations),
            error=self._error,
            tainted=self._exchange.taint.turn,
            calls=tuple(self._executor.calls),
        )


def _is_call(text: str) -> bool:
    """Whether an answer is a call written as text, as small models go on to write when they were given no tools."""
    return _CALL.match(text) is not None


def _offered(registry: Registry, mode: str) -> tuple[ToolDefinition, ...]:
    if mode != "plan":
        return registry.definitions()
    names = [n for n in registry.names() if (tool := registry.get(n)) is not None and not reads_only(tool)]
    return registry.without(*names).definitions()

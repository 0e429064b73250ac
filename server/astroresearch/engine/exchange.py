"""One turn's exchange with the model: what it is sent, what it says, and that both are stored before anything else happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio

from astroresearch import crash
from astroresearch.engine import untrusted
from astroresearch.engine.budget import Budget, estimated, usage_of
from astroresearch.engine.events import MessageDelta, Noticed, ThoughtDelta, UsageReported
from astroresearch.engine.history import normalise
from astroresearch.engine.messages import Message, ToolCall, new_call_id
from astroresearch.engine.model import Model, ModelNotice, ModelReply, ModelRequest, TextDelta, ToolDefinition
from astroresearch.engine.model import ThoughtDelta as ModelThought
from astroresearch.engine.turn import Emit, TurnLog, TurnStart
from astroresearch.errors import ModelError


class Exchange:
    """The history of a turn under way. Each request is the one before plus what came since (I3); all of it is stored."""

    def __init__(self, model: Model, log: TurnLog, emit: Emit, budget: Budget, start: TurnStart) -> None:
        self._model = model
        self._log = log
        self._emit = emit
        self._budget = budget
        self._start = start
        self._messages = list(normalise(start.history))
        self._ids = {call.id for m in self._messages for call in m.tool_calls} | start.known_call_ids
        self.taint = untrusted.Taint.of(self._messages, start.turn_id)
        self.answer = ""
        "The text of the last reply that had one."

    async def keep(self, message: Message) -> None:
        """Stores a message and takes it into the history, mended as the history of the next turn will have it.

        A cancel waits for it: what was shown is never lost.
        """
        message = replace(message, turn_id=message.turn_id or self._start.turn_id)
        with anyio.CancelScope(shield=True):
            await self._log.append(message)
        self.taint.see(message, self._start.turn_id)
        self._messages += normalise([message])[:1]

    def take(self, results: Sequence[Message]) -> None:
        """Takes the results of the last reply's calls, which the executor has stored."""
        self._messages += results

    async def say(self, text: str) -> None:
        """Tells the model something in the user's place."""
        await self.keep(Message("user", text, meta={"synthetic": True}))

    async def ask(self, tools: Sequence[ToolDefinition]) -> tuple[ModelReply, tuple[ToolCall, ...]]:
        """One request. What comes is shown at once; the reply is stored before its calls are handed out.

        Calls of a reply that broke off, or that was given no tools, are left out.

        Raises:
            ModelError: What had come is stored as an interrupted message; likewise on a cancel.
        """
        request = ModelRequest(tuple(self._messages), tools, self._start.thinking)
        self._budget.steps += 1
        shown: list[str] = []
        thoughts: list[str] = []
        try:
            reply = await self._stream(request, shown, thoughts)
        except (ModelError, anyio.get_cancelled_exc_class()):
            await self._keep_partial(request, "".join(shown), "".join(thoughts))
            raise
        self._budget.add(usage_of(reply, request.messages))
        self._report_usage()
        wanted = reply.tool_calls if tools and reply.finish not in ("interrupted", "refusal") else ()
        calls = tuple(self._own(call) for call in wanted)
        text = untrusted.sane(reply.text)
        if text and not shown:
            self._emit(MessageDelta(text))
        if text.strip() or calls:
            self.answer = text
            await self.keep(self._message(text, reply, calls))
        return reply, calls

    async def _stream(self, request: ModelRequest, shown: list[str], thoughts: list[str]) -> ModelReply:
        reply: ModelReply | None = None
        async with self._model.stream(request) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    shown.append(item.text)
                    self._emit(MessageDelta(untrusted.sane(item.text)))
                    crash.point("turn.streaming")
                elif isinstance(item, ModelThought):
                    thoughts.append(item.text)
                    self._emit(ThoughtDelta(untrusted.sane(item.text)))
                elif isinstance(item, ModelNotice):
                    self._emit(Noticed(item.level, item.text))
                else:
                    reply = item
        if reply is None:
            raise ModelError("The model's answer has no end.", kind="broken_stream", shown=bool(shown))
        return reply

    def _own(self, call: ToolCall) -> ToolCall:
        """The call under an id that is unique in the session, with text that can be stored."""
        ident = call.id if call.id and call.id not in self._ids else new_call_id()
        self._ids.add(ident)
        return replace(call, id=ident, name=untrusted.sane(call.name), arguments=untrusted.sane(call.arguments))

    def _message(self, text: str, reply: ModelReply, calls: tuple[ToolCall, ...]) -> Message:
        return Message(
            "assistant",
            text,
            calls,
            reasoning=untrusted.sane(reply.reasoning),
            reasoning_field=reply.reasoning_field,
            status="interrupted" if reply.finish == "interrupted" else "",
            meta={"model": reply.model or self._model.name},
        )

    async def _keep_partial(self, request: ModelRequest, text: str, thoughts: str) -> None:
        if not text and not thoughts:
            return
        self._budget.add(estimated(request.messages, text + thoughts))
        self._report_usage()
        if text.strip():
            self.answer = untrusted.sane(text)
            await self.keep(Message("assistant", self.answer, status="interrupted"))

    def _report_usage(self) -> None:
        used = self._budget.usage
        self._emit(UsageReported(used.input, used.output, used.cached, used.estimated, used.cost))

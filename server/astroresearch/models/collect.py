"""From chunks to what is shown and, at the end, the verdict on how the answer ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from astroresearch.engine.messages import ToolCall
from astroresearch.engine.model import FinishReason, ModelItem, ModelReply, TextDelta, ThoughtDelta, Usage
from astroresearch.models.accumulate import (
    CallSlots,
    Joiner,
    first_choice,
    is_json,
    reasoning_of,
    split_content,
    usage_of,
)
from astroresearch.models.thinking import ThinkSplitter, split_orphan
from astroresearch.models.written_calls import may_be_call, written_calls

_FINISH: Mapping[str, FinishReason] = {
    **dict.fromkeys(("stop", "end_turn", "end", "eos", "eos_token", "stop_sequence", "complete", "completed"), "stop"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(
        ("content_filter", "refusal", "safety", "recitation", "prohibited_content", "sensitive"), "refusal"
    ),
}
"""What the reasons of all providers come to; whether there are calls is judged by the calls."""


class Collector:
    """Takes the chunks of one answer. Never raises: the verdict is asked for at the end."""

    def __init__(self, *, tools: Collection[str] = (), origin: str = "", thinks_first: bool = False) -> None:
        self.chunks = 0
        self.done = False
        "The server said [DONE]."
        self.finish = ""
        "The provider's own word, empty until it came."
        self.usage: Usage | None = None
        self.shown = False
        self.orphan = False
        "The reasoning's opening tag was missing."
        self.text = ""
        self.reasoning = ""
        self.reasoning_field = ""
        self._tools = tools
        self._origin = origin
        self._thinks_first = thinks_first
        self._slots = CallSlots()
        self._splitter = ThinkSplitter(inside=thinks_first)
        self._text_joiner, self._thought_joiner = Joiner(), Joiner()
        self._held: str | None = "" if tools else None
        "Text that may be a written call; None once it can't be."
        self._recovered: tuple[ToolCall, ...] = ()
        self._refused = False

    def take(self, chunk: Mapping[str, Any]) -> list[ModelItem]:
        """What a chunk adds to what is shown. A whole completion counts as one chunk."""
        self.chunks += 1
        self.usage = usage_of(chunk) or self.usage
        choice = first_choice(chunk)
        delta = choice.get("delta") or choice.get("message")
        items = self._delta(delta) if isinstance(delta, Mapping) else []
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.finish = reason
        return self._note(items)

    def end(self) -> list[ModelItem]:
        """The rest that was held back, when no more will come."""
        items = self._text(self._text_joiner.feed("\ufffd") if self._text_joiner.waiting else "")
        for kind, piece in self._splitter.finish():
            items += self._piece(kind, piece)
        if self._thinks_first and not self.text and self.finish != "length":
            items += self._answer_after_all(items)
        held, self._held = self._held, None
        if held and not self._slots.slots:
            self._recovered = written_calls(held, self._tools)
        if held and not self._recovered:
            items.append(TextDelta(held))
        return self._note(items)

    def reply(self, usage: Usage, *, model: str) -> ModelReply:
        """The whole answer, for a stream whose `trouble` is empty."""
        calls = self.calls()
        finish = _FINISH.get(self.finish.lower(), "stop")
        if finish == "stop" and calls:
            finish = "tool_calls"
        if self._refused and not calls:
            finish = "refusal"
        text, reasoning = self.text, self.reasoning
        if not reasoning and (parts := split_orphan(text)) is not None:
            self.orphan = True
            reasoning, text = parts
        return ModelReply(text, calls, finish, usage, reasoning, self.reasoning_field, model=model)

    def interrupted(self, usage: Usage, problem: str, *, model: str) -> ModelReply:
        """What came of an answer that broke off; its calls are not to be run, so there are none."""
        return ModelReply(self.text, (), "interrupted", usage, self.reasoning, self.reasoning_field, problem, model)

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls so far."""
        return self._recovered or self._slots.calls(self._origin)

    def trouble(self) -> str:
        """Why the stream is not a whole answer, for people; empty if it is one."""
        if self.finish:
            return "" if self.finish.lower() in _FINISH else f"It ended with the reason “{self.finish[:60]}”."
        if not self.done:
            return "The stream ended before the answer did."
        slots = self._slots.slots
        if slots and all(is_json(slot.arguments or "{}") for slot in slots):
            return ""
        return "" if self.text and not slots else "The stream ended with no answer."

    def _delta(self, delta: Mapping[str, Any]) -> list[ModelItem]:
        items: list[ModelItem] = []
        text, thought = split_content(delta.get("content"))
        field_text, field = reasoning_of(delta)
        if field:
            self.reasoning_field = self.reasoning_field or field
        items += self._thought(self._thought_joiner.feed(field_text or thought))
        items += self._text(self._text_joiner.feed(text))
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refused = True
            items += self._text(self._text_joiner.feed(refusal))
        for call in delta.get("tool_calls") or ():
            self._slots.add(call)
        return items

    def _text(self, text: str) -> list[ModelItem]:
        if not text:
            return []
        if self._thinks_first and self.reasoning_field:
            return self._piece("text", text)
        return [item for kind, piece in self._splitter.feed(text) for item in self._piece(kind, piece)]

    def _piece(self, kind: str, piece: str) -> list[ModelItem]:
        if kind == "thought":
            return self._thought(piece)
        if self._held is not None:
            self._held += piece
            if may_be_call(self._held):
                return []
            piece, self._held = self._held, None
        return [TextDelta(piece)]

    def _answer_after_all(self, items: list[ModelItem]) -> list[ModelItem]:
        """The text of a model that usually thinks first and did not this time, so that it passed for reasoning."""
        if self._held or self.reasoning_field or self._slots.slots or any(isinstance(i, TextDelta) for i in items):
            return []
        text = self.reasoning + "".join(i.text for i in items if isinstance(i, ThoughtDelta))
        return [TextDelta(text)] if text else []

    def _thought(self, text: str) -> list[ModelItem]:
        return [ThoughtDelta(text)] if text else []

    def _note(self, items: list[ModelItem]) -> list[ModelItem]:
        for item in items:
            if isinstance(item, TextDelta):
                self.text += item.text
            elif isinstance(item, ThoughtDelta):
                self.reasoning += item.text
        self.shown = self.shown or bool(items)
        return items

"""Puts a reply together from the pieces of a stream: text, reasoning, calls, usage, reason of the end.

Works on plain dicts and judges by what is there, since providers get every part of this wrong somewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from astroresearch.engine.messages import ToolCall, new_call_id
from astroresearch.engine.model import Usage

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_CALL_FIELDS = frozenset({"index", "id", "type", "function"})
ORIGIN = "_origin"
"Key in `ToolCall.extra` that names the model whose unknown fields these are; never sent."


@dataclass
class Slot:
    """One call that is being written."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the arguments are JSON already."""
        return is_json(self.arguments)


class CallSlots:
    """Assigns pieces of calls to calls: a new id starts one, a seen id continues it, neither means the current one."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._by_index: dict[int, Slot] = {}

    def add(self, delta: Any) -> None:
        """Takes one element of `delta.tool_calls`; what is not an object is passed over."""
        if not isinstance(delta, Mapping):
            return
        function = delta.get("function")
        function = function if isinstance(function, Mapping) else {}
        name, ident, index = _text(function.get("name")), _text(delta.get("id")), delta.get("index")
        slot = self._slot(index if isinstance(index, int) else None, ident, name)
        slot.id = slot.id or ident
        slot.name = slot.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            slot.arguments += arguments
        elif arguments is not None:
            slot.arguments = json.dumps(arguments)
        slot.extra |= {key: value for key, value in delta.items() if key not in _CALL_FIELDS and value is not None}

    def calls(self, origin: str) -> tuple[ToolCall, ...]:
        """The calls, with ids of our own. `origin` names the model that their unknown fields belong to."""
        return tuple(
            ToolCall(
                id=new_call_id(),
                name=clean(slot.name),
                arguments=clean(slot.arguments),
                provider_id=clean(slot.id),
                extra={**slot.extra, ORIGIN: origin} if slot.extra else {},
            )
            for slot in self.slots
            if slot.name or slot.arguments.strip()
        )

    def _slot(self, index: int | None, ident: str, name: str) -> Slot:
        seen = next((slot for slot in reversed(self.slots) if ident and slot.id == ident), None)
        if index is not None:
            known = self._by_index.get(index)
            if known is not None and (not ident or not known.id or known.id == ident):
                return known
            slot = seen if seen is not None and not name else self._new()
            self._by_index[index] = slot
            return slot
        if seen is not None:
            return self._new() if name and seen.complete else seen
        if ident or not self.slots or (name and self.slots[-1].name and self.slots[-1].complete):
            return self._new()
        return self.slots[-1]

    def _new(self) -> Slot:
        self.slots.append(Slot())
        return self.slots[-1]


class Joiner:
    """Joins UTF-16 halves that a server cut apart, and replaces what SQL and JSON refuse."""

    def __init__(self) -> None:
        self._half = ""

    @property
    def waiting(self) -> bool:
        """Whether half a character waits for its other half."""
        return bool(self._half)

    def feed(self, text: str) -> str:
        """The clean text; a high surrogate at its end waits for the next piece."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean(text)


def clean(text: str) -> str:
    """Joins surrogate pairs, and puts U+FFFD in place of lone surrogates and NUL."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def split_content(content: Any) -> tuple[str, str]:
    """(text, reasoning) of a delta's content, which may be a string or a list of typed parts."""
    if isinstance(content, str):
        return content, ""
    text, reasoning = "", ""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            text += part
        elif isinstance(part, Mapping):
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                reasoning += inner if isinstance(inner, str) else split_content(inner)[0]
            else:
                text += _text(part.get("text"))
    return text, reasoning


def reasoning_of(delta: Mapping[str, Any]) -> tuple[str, str]:
    """(text, field) of the first reasoning field that holds something; some servers send two copies."""
    for name in REASONING_FIELDS:
        if text := _text(delta.get(name)):
            return text, name
    return "", ""


def usage_of(chunk: Mapping[str, Any]) -> Usage | None:
    """The usage in a chunk, wherever the provider puts it; None where there is none or it is all zero."""
    choice = first_choice(chunk)
    groq = chunk.get("x_groq")
    for holder in (chunk, choice, groq if isinstance(groq, Mapping) else {}):
        usage = holder.get("usage")
        if isinstance(usage, Mapping):
            details = usage.get("prompt_tokens_details")
            cached = _number(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
            cached = cached or _number(usage.get("prompt_cache_hit_tokens")) or _number(usage.get("cached_tokens"))
            found = Usage(_number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens")), cached)
            if found.input or found.output:
                return found
    return None


def first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice, or an empty one: `choices` may be missing, null or empty."""
    choices = chunk.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def is_json(text: str) -> bool:
    """Whether the text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0

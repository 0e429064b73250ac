"""Mends a damaged history, so that no provider refuses it.

Invariants of what comes out: every call of an assistant message has exactly one result, in call order, right after that
message (I1); there is no result without a call (I2); ids of calls are unique; arguments are the text of a JSON object; no
message is empty. The function is pure, deterministic and idempotent, and leaves a sound history as it is, object for object,
so that a request stays a prefix of the next one (I3).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from astroresearch.engine.messages import Message, ToolCall

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_REMEMBERED_CHARS = 1_000
_ROLES = ("system", "user", "assistant", "tool")
Missing = Literal["interrupted", "not_run", "cancelled", "denied"]
_TEXTS: dict[Missing, tuple[str, str]] = {
    "interrupted": (
        "interrupted",
        "Interrupted: `{name}` was started, but its result was lost. Its side effects are unknown; check before you retry.",
    ),
    "not_run": ("cancelled", "Interrupted before `{name}` was started: it did not run and changed nothing."),
    "cancelled": ("cancelled", "The user stopped the turn before `{name}` was started: it did not run."),
    "denied": ("denied", "The user denied this call: `{name}` did not run."),
}


def missing_result(call: ToolCall, kind: Missing = "interrupted", *, turn_id: str = "") -> Message:
    """The result of a call that left none: what is known of it, in words that a model understands."""
    status, text = _TEXTS[kind]
    return Message(
        "tool", text.format(name=call.name), tool_call_id=call.id, name=call.name, status=status, turn_id=turn_id
    )


def normalise(messages: Sequence[Message]) -> list[Message]:
    """A history that holds the invariants above. A sound list comes back itself; copy it before you change it.

    Missing results become *interrupted, effects unknown* (see `missing_result` for what else can be known), results without
    a call are dropped, of two results the one that tells more stays, results that stand elsewhere are moved to their call,
    empty messages are dropped, repeated call ids get new ones.
    """
    results = _results_by_call(messages)
    out: list[Message] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "assistant" and message.tool_calls:
            calls = tuple(_sound_call(call, seen) for call in message.tool_calls)
            same = all(a is b for a, b in zip(calls, message.tool_calls, strict=True))
            out.append(message if same else replace(message, tool_calls=calls))
            for position, call in enumerate(calls):
                out.append(_sound_result(results.get((index, position)), call, message.turn_id))
        elif message.role != "tool" and message.role in _ROLES and message.content.strip():
            out.append(message)
    unchanged = len(out) == len(messages) and all(a is b for a, b in zip(out, messages, strict=True))
    return messages if unchanged and isinstance(messages, list) else out


def _results_by_call(messages: Sequence[Message]) -> dict[tuple[int, int], Message]:
    """For each call (index of its message, position in it) the result that belongs to it."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, message in enumerate(messages):
        if message.role == "assistant":
            for position, call in enumerate(message.tool_calls):
                places[call.id].append((index, position))
    found: dict[tuple[int, int], list[Message]] = defaultdict(list)
    for index, message in enumerate(messages):
        if message.role == "tool" and (candidates := places.get(message.tool_call_id)):
            found[_nearest(candidates, index, found)].append(message)
    return {place: min(given, key=_worth) for place, given in found.items()}


def _nearest(
    candidates: list[tuple[int, int]], index: int, found: dict[tuple[int, int], list[Message]]
) -> tuple[int, int]:
    """The last message before the result, or the first one after it; in it the first call that still lacks a result."""
    before = [place for place in candidates if place[0] < index]
    chosen = before[-1][0] if before else candidates[0][0]
    here = [place for place in candidates if place[0] == chosen]
    return next((place for place in here if place not in found), here[0])


def _worth(result: Message) -> int:
    """A real end tells more than a denial or a cancel, and these more than *unknown*."""
    return {"completed": 0, "failed": 0, "": 0, "denied": 1, "cancelled": 2, "interrupted": 3}.get(result.status, 4)


def _sound_call(call: ToolCall, seen: set[str]) -> ToolCall:
    ident = call.id
    turn = 0
    while not ident or ident in seen:
        turn += 1
        digest = hashlib.sha256(f"{call.id}/{turn}".encode("utf-8", "replace")).digest()
        ident = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:9])
    seen.add(ident)
    arguments = call.arguments if is_object(call.arguments) else "{}"
    if ident == call.id and arguments == call.arguments:
        return call
    return replace(call, id=ident, arguments=arguments)


def _sound_result(result: Message | None, call: ToolCall, turn_id: str) -> Message:
    if result is None:
        return missing_result(call, turn_id=turn_id)
    content = result.content if result.content.strip() else "(no output)"
    if result.tool_call_id == call.id and content is result.content:
        return result
    return replace(result, tool_call_id=call.id, content=content)


def is_object(text: str) -> bool:
    """Whether a text is one strict JSON object, and nothing else."""
    return _parses(text) if len(text) > _REMEMBERED_CHARS else _remembered(text)


def _parses(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


_remembered = lru_cache(maxsize=8_192)(_parses)  # a session's history is looked through at the start of each turn


def _refuse(constant: str) -> None:
    raise ValueError(constant)

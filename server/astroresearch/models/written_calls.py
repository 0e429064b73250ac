"""Calls that a model wrote as text, which small local models do behind some servers.

Only a message that is nothing but calls of known tools counts; such text is held back while it may still become one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from astroresearch.engine.messages import ToolCall, new_call_id

_OPENER = r"(?:```(?:json|tool_call|tool_code)?\s*|<tool_call>\s*|<tools>\s*|\[TOOL_CALLS?\]\s*)?"
_WHOLE = re.compile(
    rf"\s*{_OPENER}(\{{.*\}})\s*(?:```|</tool_call>|</tools>|\[/TOOL_CALLS?\]|\[END_TOOL_REQUEST\])?\s*", re.DOTALL
)
_BETWEEN = re.compile(r"\A(?:\s|,|;|```(?:json|tool_call|tool_code)?|</?tool_call>)+")
_START = re.compile(rf"\s*{_OPENER}\{{\s*\"(?:name|arguments|parameters|function|type|id)\"")
_OPENERS = ("```json", "```tool_call", "```tool_code", "```", "<tool_call>", "<tools>", "[TOOL_CALL]", "[TOOL_CALLS]")
_HOLD_MAX = 20_000


def may_be_call(text: str) -> bool:
    """Whether text that goes on may yet turn out to be a written call."""
    if len(text) > _HOLD_MAX:
        return False
    if _START.match(text):
        return True
    bare = text.lstrip()
    if not bare:
        return True
    for opener in _OPENERS:
        if opener.startswith(bare):
            return True
        if bare.startswith(opener):
            bare = bare[len(opener) :].lstrip()
            break
    key = bare[1:].lstrip()
    return not bare or (
        bare[0] == "{"
        and any(f'"{name}"'.startswith(key) for name in ("name", "arguments", "function", "type", "parameters", "id"))
    )


def written_calls(text: str, known: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls that the whole text is, one or several in a row, if each names a known tool; else none.

    They still pass every check.
    """
    match = _WHOLE.fullmatch(text)
    if match is None:
        return ()
    bodies = _objects(match[1])
    found = [call for body in bodies if (call := _call(body, known)) is not None]
    return tuple(found) if len(found) == len(bodies) else ()


def _objects(text: str) -> list[Any]:
    """The JSON objects that follow one another in a text; none if it is anything else."""
    decoder = json.JSONDecoder()
    out: list[Any] = []
    at = 0
    while at < len(text):
        try:
            body, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        out.append(body)
        at += len(text[at:]) - len(_BETWEEN.sub("", text[at:], count=1))
    return out


def _call(body: Any, known: Collection[str]) -> ToolCall | None:
    if not isinstance(body, Mapping):
        return None
    if isinstance(body.get("function"), Mapping):
        body = body["function"]
    name = body.get("name")
    arguments = body.get("arguments", body.get("parameters"))
    if not isinstance(name, str) or name not in known or not isinstance(arguments, (Mapping, str)):
        return None
    text_arguments = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=new_call_id(), name=name, arguments=text_arguments, recovered=True)

"""Our messages as a strict provider wants them: plain dicts, encoded once per message.

Valid histories come in; what is seen to here is the wire alone: ids unique and in the provider's form, arguments always a
JSON string, `content` never null, text without what JSON or a provider refuses.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.model import ToolDefinition
from astroresearch.models.accumulate import ORIGIN, clean
from astroresearch.models.profiles import Lessons, ModelProfile

_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}\Z")
_PLAIN_ID = re.compile(r"[\x21-\x7e]{1,40}\Z")
NO_OUTPUT = "(no output)"
BRIDGE = "Noted."
"The assistant's words between a tool result and a user message, for providers that demand some."


def origin_of(profile: ModelProfile) -> str:
    """Names the model that unknown fields of a call belong to: they mean nothing to another."""
    return f"{profile.host}/{profile.name}"


class Encoder:
    """Encodes histories for one profile. Messages that were encoded before cost a look-up."""

    CACHE = 8192

    def __init__(self, profile: ModelProfile) -> None:
        self._origin = origin_of(profile)
        self._mistral = profile.is_mistral
        self._reasoning_back = profile.wants_reasoning_back
        self._cache: OrderedDict[int, tuple[Message, dict[str, Any]]] = OrderedDict()
        self._tools: tuple[Sequence[ToolDefinition], list[dict[str, Any]]] = ((), [])

    def messages(self, history: Sequence[Message], lessons: Lessons) -> list[dict[str, Any]]:
        """The history as the body's `messages`."""
        out: list[dict[str, Any]] = []
        used: set[str] = set()
        wire_ids: dict[str, str] = {}
        bridge = lessons.answer_before_user or self._mistral
        for message in history:
            if message.role == "assistant" and not message.tool_calls and not message.content.strip():
                continue
            body = dict(self._plain(message))
            if message.tool_calls:
                ids = [self._wire_id(call, used) for call in message.tool_calls]
                wire_ids.update((call.id, wire) for call, wire in zip(message.tool_calls, ids, strict=True))
                body["tool_calls"] = [{**call, "id": wire} for call, wire in zip(body["tool_calls"], ids, strict=True)]
                self._finish_calling(body, message, lessons)
            elif message.role == "tool":
                body["tool_call_id"] = wire_ids.get(message.tool_call_id, message.tool_call_id)
            if bridge and message.role == "user" and out and out[-1]["role"] == "tool":
                out.append({"role": "assistant", "content": BRIDGE})
            out.append(body)
        return list(_without_tools(out)) if lessons.no_tools else out

    def tools(self, tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
        """The tools as the body's `tools`."""
        if tools is not self._tools[0]:
            encoded = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
                }
                for t in tools
            ]
            self._tools = (tools, encoded)
        return self._tools[1]

    def _plain(self, message: Message) -> dict[str, Any]:
        key = id(message)
        found = self._cache.get(key)
        if found is not None and found[0] is message:
            self._cache.move_to_end(key)
            return found[1]
        body = _encode(message, self._origin)
        self._cache[key] = (message, body)
        if len(self._cache) > self.CACHE:
            self._cache.popitem(last=False)
        return body

    def _finish_calling(self, body: dict[str, Any], message: Message, lessons: Lessons) -> None:
        if not message.content and lessons.omit_empty_content:
            del body["content"]
        wanted = self._reasoning_back if lessons.reasoning_back is None else lessons.reasoning_back
        if wanted:
            body[message.reasoning_field or "reasoning_content"] = clean(message.reasoning)

    def _wire_id(self, call: ToolCall, used: set[str]) -> str:
        form = _MISTRAL_ID if self._mistral else _PLAIN_ID
        wire = call.provider_id if form.match(call.provider_id) and call.provider_id not in used else call.id
        used.add(wire)
        return wire


def _encode(message: Message, origin: str) -> dict[str, Any]:
    content = clean(message.content)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content or NO_OUTPUT}
    if message.tool_calls:
        calls = [_encode_call(call, origin) for call in message.tool_calls]
        return {"role": "assistant", "content": content, "tool_calls": calls}
    return {"role": message.role, "content": content or "(empty)"}


def _encode_call(call: ToolCall, origin: str) -> dict[str, Any]:
    function = {"name": _BAD_NAME.sub("_", call.name)[:64] or "unknown", "arguments": _arguments(call.arguments)}
    body: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if call.extra.get(ORIGIN, origin) == origin:
        body |= {key: value for key, value in call.extra.items() if key != ORIGIN}
    return body


def _arguments(text: str) -> str:
    """Always the text of a JSON object: some servers parse it and fail as a whole on anything else."""
    if not text.strip():
        return "{}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return clean(text) if isinstance(value, dict) else json.dumps({"not_valid_json": clean(text)}, ensure_ascii=False)


def _without_tools(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same history for a model that knows no tools: calls and results as text."""
    for message in messages:
        if message["role"] == "tool":
            yield {"role": "user", "content": f"Result of the tool:\n{message['content']}"}
        elif "tool_calls" in message:
            calls = "\n".join(
                f"Called {c['function']['name']} with {c['function']['arguments']}" for c in message["tool_calls"]
            )
            yield {"role": "assistant", "content": f"{message.get('content', '')}\n{calls}".strip()}
        else:
            yield dict(message)

"""A conversation as plain JSON for front ends, and as Markdown to keep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from astroresearch.domain.session import SessionRecord
from astroresearch.engine.messages import Message


def shown(message: Message) -> dict[str, Any]:
    """A message for front ends: the user's own words, without what was added for the model."""
    body: dict[str, Any] = {"role": message.role, "content": words_of(message), "turnId": message.turn_id}
    if message.tool_calls:
        body["toolCalls"] = [
            {"id": c.id, "name": c.name, "arguments": _arguments(c.arguments)} for c in message.tool_calls
        ]
    if message.role == "tool":
        body |= {"toolCallId": message.tool_call_id, "name": message.name}
    if message.status:
        body["status"] = message.status
    return body


def words_of(message: Message) -> str:
    """What was said; for the user's messages without the context that was added."""
    return str(message.meta.get("text", message.content)) if message.role == "user" else message.content


def to_markdown(record: SessionRecord, messages: Sequence[Message]) -> str:
    """The whole conversation: questions, calls on one line each, answers, and the quotes with their places."""
    lines = [f"# {record.title}", "", f"{record.created[:10]}, {record.turn_count} turns", ""]
    names = {call.id: call for message in messages for call in message.tool_calls}
    for message in messages:
        if message.role == "user" and "text" in message.meta:
            lines += [f"## {first_line(words_of(message))}", ""]
            rest = words_of(message).strip().partition("\n")[2].strip()
            lines += [rest, ""] if rest else []
        elif message.role == "assistant" and message.content.strip():
            lines += [message.content.strip(), ""]
        elif message.role == "tool":
            call = names.get(message.tool_call_id)
            arguments = f" `{call.arguments[:200]}`" if call is not None and call.arguments else ""
            lines += [f"- *{message.name}*{arguments}: {message.status or 'completed'}", *_quotes(message), ""]
    return "\n".join(lines).rstrip() + "\n"


def first_line(text: str) -> str:
    """The first line, for a heading."""
    return text.strip().partition("\n")[0].lstrip("# ") or "…"


def _quotes(message: Message) -> list[str]:
    metadata = message.meta.get("metadata")
    citations = metadata.get("citations", ()) if isinstance(metadata, dict) else ()
    return [
        f"  - “{c.get('quote', '')}” ({c.get('label') or c.get('title') or c.get('paperId', '')}, p. {c.get('page', '?')}"
        f"{'' if c.get('verified') else ', not found in the text'})"
        for c in citations
        if isinstance(c, dict)
    ]


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text

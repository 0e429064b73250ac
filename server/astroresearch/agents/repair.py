"""What a crash left open, brought to an end: calls without a result, and a timeline without its `done`.

Pure functions; `agents.session` stores what they give. Nothing that had an effect is ever run again by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from astroresearch.domain.session import OpenCall
from astroresearch.engine.events import PROTOCOL_VERSION
from astroresearch.engine.history import missing_result
from astroresearch.engine.messages import Message, ToolCall

_READ_ONLY = "Interrupted: AstroResearch ended while `{name}` ran. It only reads; call it again if it is still needed."


def answered(found: OpenCall) -> tuple[ToolCall, Message]:
    """The call and the result that stands in for the one that never came."""
    call = ToolCall(found.id, found.name, found.arguments)
    result = missing_result(call, "interrupted" if found.started else "not_run", turn_id=found.turn_id)
    if found.started and found.effect in ("none", "egress"):
        result = replace(result, content=_READ_ONLY.format(name=found.name))
    return call, result


def closing_events(events: Sequence[Mapping[str, Any]], next_seq: int) -> list[dict[str, Any]]:
    """The events that a dead turn did not live to send: the end of every open item, then `done`.

    Args:
        events: The timeline's newest events, at least those of its last turn.
        next_seq: The `seq` of the first new one.

    Returns:
        Nothing where the last turn ended by itself; the same list for the same timeline, whenever it is asked.
    """
    if not events or events[-1]["type"] == "done":
        return []
    last = events[-1]
    turn_id, ts = last["turnId"], last["ts"]
    own = [event for event in events if event["turnId"] == turn_id]
    bodies = [*_open_items(own), {"agent": "main", "type": "done", "stopReason": "interrupted"}]
    return [
        {"v": PROTOCOL_VERSION, "seq": seq, "turnId": turn_id, "ts": ts, **body}
        for seq, body in enumerate(bodies, next_seq)
    ]


def _open_items(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    begun: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events:
        kind, name = str(event["type"]), str(event.get("id", ""))
        if kind in ("permission", "question"):
            begun.pop((kind, name), None)
            if event.get("resolved") is None:
                begun[kind, name] = {**_own(event), "resolved": "cancelled"}
        elif kind == "tool.start":
            begun["tool", name] = {
                "agent": event["agent"], "type": "tool.end", "id": name, "status": "interrupted",
                "preview": "AstroResearch ended while this call was open.", "isError": True, "metadata": {}, "durationMs": 0,
            }  # fmt: skip
        elif kind == "subagent.start":
            begun["subagent", name] = {
                "agent": event["agent"], "type": "subagent.end", "id": name, "status": "interrupted", "summary": "",
            }  # fmt: skip
        elif kind in ("tool.end", "subagent.end"):
            begun.pop((kind.split(".")[0], name), None)
    return list(begun.values())[::-1]


def _own(event: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in ("v", "seq", "turnId", "ts")}

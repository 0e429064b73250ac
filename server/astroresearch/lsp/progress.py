"""Timeline events as `$/progress`: `begin`, `report`…, `end`, each with a message for people and the event for front ends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types as T
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


class ProgressStream:
    """One token's life: exactly one `begin`, then reports, exactly one `end`."""

    def __init__(self, server: Server, token: str | int | None, title: str, on_cancel: Callable[[], None]) -> None:
        self._server = server
        self.token = token
        self._title = title
        self._begun = False
        self._ended = False
        self._on_cancel = on_cancel

    @classmethod
    async def open(
        cls, server: Server, token: str | int | None, title: str, on_cancel: Callable[[], None]
    ) -> ProgressStream:
        """With the client's token, or one of ours where the client can show it; else a stream that says nothing."""
        if token is None and server.supports("window", "work_done_progress"):
            mine = f"astroresearch-{uuid.uuid4()}"
            try:
                await server.protocol.ask_client(
                    T.WINDOW_WORK_DONE_PROGRESS_CREATE, T.WorkDoneProgressCreateParams(mine), timeout_s=5
                )
                token = mine
            except (TimeoutError, JsonRpcException):
                token = None
        return cls(server, token, title, on_cancel)

    def __enter__(self) -> ProgressStream:
        if self.token is not None:
            self._server.progress_cancels[self.token] = self._on_cancel
        return self

    def __exit__(self, *_: object) -> None:
        self.end("")
        if self.token is not None:
            self._server.progress_cancels.pop(self.token, None)

    def report(self, message: str, fraction: float | None = None) -> None:
        """Something for people; `fraction` from 0 to 1."""
        body: dict[str, Any] = {"message": message[:200]}
        if fraction is not None:
            body["percentage"] = max(0, min(100, round(fraction * 100)))
        self._report(body)

    def event(self, event: Mapping[str, Any]) -> None:
        """One event of the timeline: `session` begins, `done` ends, everything else reports."""
        if event["type"] == "done" and event.get("agent", "main") == "main":
            self.end(message_of(event), event)
        else:
            self._report({"message": message_of(event)[:200], "event": event})

    def end(self, message: str, event: Mapping[str, Any] | None = None) -> None:
        """Ends it, once."""
        if self._ended:
            return
        self._begin(None)
        self._ended = True
        self._send({"kind": "end", "message": message} | ({"event": event} if event is not None else {}))

    def _report(self, body: dict[str, Any]) -> None:
        if self._ended:
            return
        if not self._begun:
            self._begin(body)
        else:
            self._send({"kind": "report", **body})

    def _begin(self, body: dict[str, Any] | None) -> None:
        if not self._begun:
            self._begun = True
            self._send({"kind": "begin", "title": self._title, "cancellable": True, **(body or {})})

    def _send(self, value: dict[str, Any]) -> None:
        if self.token is not None:
            self._server.send_notification(T.PROGRESS, T.ProgressParams(self.token, value))


def message_of(event: Mapping[str, Any]) -> str:
    """A line for editors that know nothing of our events."""
    kind = event["type"]
    if kind in ("thought.delta", "message.delta", "notice", "tool.progress", "question"):
        return " ".join(str(event.get("text", "")).split())
    if kind == "tool.start":
        return str(event.get("title") or event["name"])
    if kind == "tool.end":
        return f"{event['status']}: {' '.join(str(event.get('preview', '')).split())}"
    if kind == "error":
        return str(event["message"])
    words = {
        "session": str(event.get("title", "")),
        "plan": "Plan changed",
        "permission": str(event.get("title", "")),
        "subagent.start": f"{event.get('name', '')}: {event.get('task', '')}",
        "subagent.end": str(event.get("summary", "")),
        "compaction": "Shortened the conversation",
        "usage": f"{event.get('input', 0)} + {event.get('output', 0)} tokens",
        "done": str(event.get("stopReason", "")),
    }
    return words.get(kind, str(kind))

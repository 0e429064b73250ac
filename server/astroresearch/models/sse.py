"""Server-sent events from bytes: our own, since the client library hides comments, `error:` fields and what was no event.

Keep-alive comments yield nothing, so that a time-out around `anext` counts payload only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

MAX_LINE = 32 * 1024 * 1024
HEAD = 600


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; `name` is `message` unless the server said otherwise."""

    name: str
    data: str


class TooLong(ValueError):
    """A line that no server of this protocol sends."""


class EventReader:
    """Turns the bytes of a response into events; `head` keeps the first ones for messages about what was no event."""

    def __init__(self) -> None:
        self.head = b""
        self._buffer = bytearray()
        self._name = ""
        self._data: list[str] = []

    async def events(self, source: AsyncIterator[bytes]) -> AsyncGenerator[ServerEvent]:
        """All events of the source; what an EOF cuts off is still tried as one.

        Raises:
            TooLong: A line beyond 32 MB.
        """
        async for block in source:
            for event in self.feed(block):
                yield event
        for event in self.feed(b"\n\n"):
            yield event

    def feed(self, block: bytes) -> list[ServerEvent]:
        """The events that end within this block. Lines end with LF or CRLF."""
        if len(self.head) < HEAD:
            self.head += block[: HEAD - len(self.head)]
        self._buffer += block
        if b"\n" not in block:
            if len(self._buffer) > MAX_LINE:
                raise TooLong(f"more than {MAX_LINE} bytes without a line end")
            return []
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        events = []
        for line in lines:
            if (event := self._take(line.removesuffix(b"\r").decode("utf-8", "replace"))) is not None:
                events.append(event)
        return events

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            name, data = self._name or "message", "\n".join(self._data)
            self._name, self._data = "", []
            return ServerEvent(name, data) if data.strip() else None
        key, _, value = line.removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if key == "data":
            self._data.append(value)
        elif key == "event":
            self._name = value
        elif key == "error":  # llama.cpp up to 2025
            self._name = "error"
            self._data.append(value)
        return None

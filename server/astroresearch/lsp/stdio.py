"""Standard input and output as a channel that nothing else can write to, with a thread for each direction."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

MAX_MESSAGE = 64 * 1024 * 1024
"A larger message is skipped: no editor sends one, and a wrong length must not eat the memory."


def claim_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Moves the editor's channel away from descriptors 0 and 1, before anything that might print is imported.

    What prints to standard output afterwards lands on standard error; child processes inherit an empty standard input.
    """
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    incoming = os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return incoming, out


class WriterThread:
    """Sends from a thread of its own, so that an editor that stops reading never blocks the event loop."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="lsp-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queues one framed message."""
        self._queue.put(data)

    def close(self) -> None:
        """Sends what is queued, for two seconds at most."""
        self._queue.put(None)
        self._thread.join(2)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                self._out.write(data)
                if self._queue.empty():
                    self._out.flush()
            except (OSError, ValueError):
                return


def start_reader(incoming: BinaryIO, deliver: Callable[[bytes | None], None]) -> threading.Thread:
    """Reads frames in a thread and delivers each body, then None at the end of the stream."""
    thread = threading.Thread(target=_read, args=(incoming, deliver), name="lsp-reader", daemon=True)
    thread.start()
    return thread


def _read(incoming: BinaryIO, deliver: Callable[[bytes | None], None]) -> None:
    try:
        while (length := _header(incoming)) is not None:
            if length > MAX_MESSAGE:
                _skip(incoming, length)
                continue
            body = incoming.read(length)
            if len(body) < length:
                break
            deliver(body)
    except (OSError, ValueError):
        pass
    deliver(None)


def _header(incoming: BinaryIO) -> int | None:
    """The next body's length; lines that are no header are skipped, so that one bad frame costs one message only."""
    length: int | None = None
    while line := incoming.readline(65_536):
        if line in (b"\r\n", b"\n"):
            if length is not None:
                return length
            continue
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    return None


def _skip(incoming: BinaryIO, length: int) -> None:
    while length > 0 and (chunk := incoming.read(min(length, 1 << 20))):
        length -= len(chunk)

"""A child process that is spoken to in frames: for code that may crash, hang or leak, and for code that holds the GIL.

A frame is a length (4 bytes, big-endian) and that many bytes. The child's standard output is the pipe; whatever libraries print
goes to the null device. The child gets a scrubbed environment, ends at EOF of its input, and is killed, never asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from astroresearch.errors import AstroResearchError

MAX_FRAME = 256 * 1024 * 1024
_KEPT = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
"What of our environment a child sees: enough to find Python and its libraries, no key and no address."
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


class ChildGone(AstroResearchError):
    """The child ended; `returncode` is negative for a signal, None if it broke the framing."""

    code = "child_gone"

    def __init__(self, message: str, returncode: int | None) -> None:
        super().__init__(message)
        self.returncode = returncode


class Child:
    """One child process. Not for two requests at once: its owner holds a lock."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._frames = BufferedByteReceiveStream(process.stdout)
        self._length: int | None = None

    @classmethod
    async def start(cls, module: str, env: Mapping[str, str] = {}) -> Child:
        """Starts `python -m module`."""
        environment = {k: v for k in _KEPT if (v := os.environ.get(k)) is not None}
        environment |= {"PYTHONPATH": str(_PACKAGE_PARENT), "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8", **env}
        with anyio.CancelScope(shield=True):  # a cancel between fork and return would leave an orphan
            process = await anyio.open_process(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=_PACKAGE_PARENT,
                start_new_session=True,
            )
        return cls(process)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet, as far as we know."""
        return self._process.returncode is None

    async def send(self, payload: bytes) -> None:
        """Sends one frame. Raises `ChildGone`."""
        try:
            await self._stdin.send(len(payload).to_bytes(4, "big") + payload)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            raise await self._gone() from None

    async def receive(self) -> bytes:
        """The next frame. After a cancel the next call goes on where this one was. Raises `ChildGone`."""
        try:
            if self._length is None:
                length = int.from_bytes(await self._frames.receive_exactly(4), "big")
                if length > MAX_FRAME:
                    self.kill()
                    raise ChildGone("A helper process sent a frame that is too large.", None)
                self._length = length
            frame = await self._frames.receive_exactly(self._length) if self._length else b""
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise await self._gone() from None
        self._length = None
        return frame

    def kill(self) -> None:
        """Kills it at once, if it runs."""
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                return

    async def aclose(self) -> None:
        """Kills it and reaps it; also works within a cancelled scope."""
        self.kill()
        with anyio.CancelScope(shield=True):
            await self._process.wait()
            await self._process.aclose()

    async def _gone(self) -> ChildGone:
        with anyio.move_on_after(2, shield=True) as scope:
            await self._process.wait()
        if scope.cancelled_caught:
            self.kill()
        return ChildGone("A helper process ended unexpectedly.", self._process.returncode)

"""Results that are too long for the context: written once, named by us, shown to the model as a stub."""

from __future__ import annotations

import os
from pathlib import Path

import anyio.to_thread

from astroresearch.engine.messages import new_call_id
from astroresearch.errors import StoreUnavailable

HEAD = 1_500
TAIL = 500
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class FileResults:
    """Fits `engine.turn.ResultStore`. Files are readable by this user only, and by `read_file`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def persist(self, content: str, *, tool: str, call_id: str) -> str:
        """Writes the content and returns the stub with path, size, head and tail.

        Raises:
            StoreUnavailable: The file could not be written.
        """
        try:
            path = await anyio.to_thread.run_sync(self._write, content.encode("utf-8", "replace"))
        except OSError as error:
            raise StoreUnavailable(
                f"The long result of {tool} could not be saved: {error.strerror}.", path=str(self._folder)
            ) from error
        return stub(path, content)

    def _write(self, data: bytes) -> Path:
        # Models and providers choose call ids and reuse them, so the name is ours.
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            path = self._folder / f"{new_call_id()}.txt"
            try:
                handle = os.open(path, _FLAGS, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            return path


def stub(path: Path, content: str) -> str:
    """What the model sees instead of a long result."""
    left_out = len(content) - HEAD - TAIL
    return (
        f'<persisted-output path="{path}" characters="{len(content)}">\n{content[:HEAD]}\n'
        f"[… {left_out} characters left out; read_file the path above for the rest …]\n{content[-TAIL:]}\n</persisted-output>"
    )

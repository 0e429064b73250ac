"""Named points at which a test may kill this process as the kernel would: at once, with nothing cleaned up.

`ASTRORESEARCH_CRASH_AT=name:n` kills at the n-th pass (from 1) of the point of that name. Unset, `point` does nothing. Every name
stands in `POINTS`; a test proves that each one can be hit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

VARIABLE = "ASTRORESEARCH_CRASH_AT"

POINTS: Mapping[str, str] = {
    "note.before_commit": "a note is written, not committed",
    "note.committed": "a note is committed, its caller does not know yet",
    "message.before_commit": "a message of a session is written, not committed",
    "message.committed": "a message of a session is committed",
    "tool.started": "the start of a call is committed, the call has not run",
    "tool.before_finish": "the end of a call is written with its result, not committed",
    "tool.finished": "the end of a call is committed, the model has not seen it",
    "event.before_commit": "events of the timeline are written, not committed",
    "turn.finished": "the end of a turn is committed",
    "index.before_commit": "a paper's pages and passages are written, not committed",
    "index.committed": "a paper's pages and passages are committed",
    "vectors.before_commit": "vectors are written, not committed",
    "migrate.before_commit": "a migration step has run, not committed",
    "migrate.committed": "a migration step is committed, the next has not begun",
    "backup.before_rename": "a backup is complete under its temporary name",
    "download.before_rename": "a download is complete under its temporary name",
    "parse.started": "a PDF is handed to the child process",
    "turn.streaming": "part of an answer has been streamed",
    "tool.running": "a call runs",
}


class _Trigger:
    """Counts the passes of one point and kills at the n-th."""

    def __init__(self, value: str) -> None:
        name, _, count = value.partition(":")
        self.name = name
        self.left = int(count) if count.isdigit() else 1

    def hit(self, name: str) -> None:
        if name != self.name:
            return
        self.left -= 1
        if self.left <= 0:
            die()


def die() -> None:
    """Ends this process at once: no handler, no flush, no `finally`."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


_trigger = _Trigger(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def point(name: str) -> None:
    """Marks a place where a crash must be harmless; `name` is one of `POINTS`."""
    if _trigger is not None:
        _trigger.hit(name)

"""Notices a model that turns in circles.

The same call with the same result: at the third time a nudge, at the fifth a refusal, after which the turn ends. Other calls
in between do not help (so A-B-A-B counts), a changed result does, and so does a new call that changed something: the world
is another one then. Three answers in a row that say nothing count as a circle too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

NUDGE_AT = 3
REFUSE_AT = 5
MONOLOGUES = 3


def canonical(arguments: Mapping[str, Any] | str) -> str:
    """One text for equal arguments, whatever their order; broken ones stand for themselves."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)


class Duplicates:
    """The calls of one turn."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}
        self._silent = 0
        self.looping = False
        "The turn should end."

    def refuses(self, tool: str, arguments: str) -> bool:
        """Whether this call must not run once more."""
        _, count = self._seen.get(_digest(tool, arguments), ("", 0))
        if count >= REFUSE_AT - 1:
            self.looping = True
        return count >= REFUSE_AT - 1

    def record(self, tool: str, arguments: str, result: str, *, changes: bool = False) -> str:
        """Takes a result into account; returns what to tell the model, mostly nothing.

        changes: the call did something, so that looking again makes sense.
        """
        key, value = _digest(tool, arguments), _digest(result)
        before, count = self._seen.get(key, ("", 0))
        if changes and count == 0:
            self._seen.clear()
        count = count + 1 if before == value else 1
        self._seen[key] = (value, count)
        self._silent = 0
        if count >= REFUSE_AT:  # a call that could not even be refused, since it never got so far as to run
            self.looping = True
        if count < NUDGE_AT:
            return ""
        return (
            f"This is time {count} that the same call gave the same result. Use what you have, or try something else; "
            f"it is refused at time {REFUSE_AT}."
        )

    def silence(self) -> None:
        """The model answered with neither text nor a call."""
        self._silent += 1
        if self._silent >= MONOLOGUES:
            self.looping = True

    def heard(self) -> None:
        """Somebody said something new: what came before is no circle."""
        self._silent = 0


def _digest(*parts: str) -> str:
    text = "\x00".join(parts)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()

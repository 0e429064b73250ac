"""Keeping secrets out of events, the log and results: known values are replaced wherever they turn up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MARK = "[secret]"
_SHORTEST = 6
"Shorter values would hit ordinary words."


class Redactor:
    """Replaces known secrets in text and plain JSON."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Sequence[str]) -> None:
        """Adds secrets, such as one that the editor hands over later."""
        found = {*self._secrets, *(s for s in secrets if len(s) >= _SHORTEST)}
        self._secrets = tuple(sorted(found, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MARK)
        return text

    def plain(self, value: Any) -> Any:
        """The same for JSON; the very object where nothing had to change is not promised."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.plain(v) for v in value]
        return value

    def held(self, text: str) -> int:
        """How many characters at the end may be the beginning of a secret that the next delta completes."""
        best = 0
        for secret in self._secrets:
            for size in range(min(len(secret) - 1, len(text)), best, -1):
                if text.endswith(secret[:size]):
                    best = size
                    break
        return best

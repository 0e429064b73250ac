"""Reasoning that arrives inside the answer's text: splits `<think>…</think>` off, however the stream cuts the tags."""

from __future__ import annotations

import re

OPENING = ("<think>", "<thinking>")
CLOSING = {"<think>": "</think>", "<thinking>": "</thinking>"}
_ORPHAN = re.compile(r"</think(?:ing)?>[ \t]*(?:\r?\n|\Z)")


class ThinkSplitter:
    """Stateful; tags count only at the very start of a message, so that literal ones later in the text stay."""

    def __init__(self, *, inside: bool = False) -> None:
        self._state = "thought" if inside else "start"
        self._closing = CLOSING["<think>"]
        self._held = ""

    def feed(self, text: str) -> list[tuple[str, str]]:
        """What can be said of the text so far, as (`thought` | `text`, piece); what may be half a tag is held back."""
        if self._state == "gap":
            text = text.lstrip()
            self._state = "text" if text else "gap"
        if self._state in ("text", "gap"):
            return [("text", text)] if text else []
        self._held += text
        if self._state == "start":
            return self._start()
        return self._thought()

    def finish(self) -> list[tuple[str, str]]:
        """The rest, when the stream ends."""
        kind = "thought" if self._state == "thought" else "text"
        rest, self._held = self._held, ""
        return [(kind, rest)] if rest else []

    def _start(self) -> list[tuple[str, str]]:
        bare = self._held.lstrip()
        for tag in OPENING:
            if bare.startswith(tag):
                self._state, self._closing = "thought", CLOSING[tag]
                self._held = bare[len(tag) :]
                return self._thought()
            if tag.startswith(bare):
                return []
        self._state, text, self._held = "text", self._held, ""
        return [("text", text)]

    def _thought(self) -> list[tuple[str, str]]:
        head, tag, tail = self._held.partition(self._closing)
        if tag:
            self._state, self._held = "gap", ""
            return [*([("thought", head)] if head else []), *self.feed(tail)]
        keep = _tail_like(self._held, self._closing)
        thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return [("thought", thought)] if thought else []


def split_orphan(text: str) -> tuple[str, str] | None:
    """(reasoning, answer) of a text whose opening tag was missing since the template had written it; else None.

    The closing tag must end a line and must not stand in code, where it is a literal one.
    """
    match = _ORPHAN.search(text)
    if match is None or "<think" in text[: match.start()] or text.count("`", 0, match.start()) % 2:
        return None
    return text[: match.start()].strip(), text[match.end() :].lstrip()


def _tail_like(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the start of the tag."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if tag.startswith(text[-length:]):
            return length
    return 0

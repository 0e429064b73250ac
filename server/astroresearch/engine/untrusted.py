"""Text of strangers: cleaned of what people can't see, wrapped so that a model can tell it from instructions, and remembered.

The wrapper's name holds a random nonce of the turn, so that text written before the turn can't close it.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from astroresearch.engine.messages import Message

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # soft hyphen, fillers, joiners
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, bidi, annotations
    "\ufe00-\ufe0f\U000e0000-\U000e0fff"  # variation selectors and tag characters: text hidden in text
    "]"
)
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\x85]")
_TAG = re.compile(r"<(?=\s*/?\s*untrusted)", re.IGNORECASE)


def sane(text: str) -> str:
    """Text that SQL, JSON and UTF-8 can hold: halves of surrogate pairs joined or replaced, NUL replaced."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\x00", "\ufffd")


def plain(value: Any) -> Any:
    """A value as JSON that every encoder and database takes: sane text, no NaN, lists for tuples."""
    if isinstance(value, str):
        return sane(value)
    if isinstance(value, Mapping):
        return {sane(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def clean(text: str) -> str:
    """Text without control, bidi, zero-width and tag characters; line ends become line feeds."""
    return _INVISIBLE.sub("", _LINE_ENDS.sub("\n", sane(text)))


def new_nonce() -> str:
    """Eight hexadecimal digits, for one turn."""
    return secrets.token_hex(4)


def wrap(text: str, nonce: str, source: str = "") -> str:
    """Marks a stranger's text as data. Whatever looks like a mark of ours inside is escaped."""
    where = clean(source).replace("\n", " ").replace('"', "'").replace("<", "&lt;")[:200]
    tag = f"untrusted-{nonce}"
    head = f'<{tag} source="{where}">' if where else f"<{tag}>"
    return f"{head}\n{_TAG.sub('&lt;', clean(text))}\n</{tag}>"


_WRAPPED = re.compile(r"<(untrusted-\w+)(?: source=\"[^\"]*\")?>\n(.*)\n</\1>", re.DOTALL)


def unwrap(text: str) -> str:
    """The text without its marks, for showing it to people."""
    return _WRAPPED.sub(lambda match: match[2], text)


@dataclass
class Taint:
    """What a turn has seen of strangers' text. Grows, never shrinks."""

    turn: bool = False
    "Some came in during this turn: edits of manuscripts ask from now on."
    context: bool = False
    "Some is in the context at all, perhaps from an earlier turn: exec, memory and egress ask."
    sources: list[str] = field(default_factory=list)
    "For people, without repeats."

    @classmethod
    def of(cls, messages: Iterable[Message], turn_id: str) -> Taint:
        """The taint of a history at the start of the turn `turn_id`."""
        taint = cls()
        for message in messages:
            if message.tainted:
                taint.see(message, turn_id)
        return taint

    def see(self, message: Message, turn_id: str) -> None:
        """Takes one message into account."""
        if message.tainted:
            self.add(str(message.meta.get("taintSource", "")), this_turn=message.turn_id == turn_id)

    def add(self, source: str, *, this_turn: bool = True) -> None:
        """A stranger's text came in."""
        self.context = True
        self.turn = self.turn or this_turn
        if source and source not in self.sources:
            self.sources.append(source)

    def named(self) -> str:
        """The sources in a phrase."""
        if not self.sources:
            return "text from outside"
        more = len(self.sources) - 3
        return ", ".join(self.sources[-3:]) + (f" and {more} more" if more > 0 else "")

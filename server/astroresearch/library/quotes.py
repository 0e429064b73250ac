"""Whether a quote stands in a text, decided by rules alone: no model, no similarity.

Folded: Unicode compatibility forms and ligatures, white space, hyphens within words (line breaks), the look of quotation marks and
dashes, the case of the first letter. Kept: everything else, so digits, signs, decimal points, units and negations. A quote that
begins or ends within a number, a unit or a word of the text is not a quote of it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from astroresearch.domain.passage import PageRecord, PageRect, Rect
from astroresearch.library.parse import unpack_words

_LOOKS = {
    **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
    "\u00ad": "",
    "œ": "oe",
    "Œ": "OE",
    "æ": "ae",
    "Æ": "AE",
    "…": "...",
    "∼": "~",
    "˜": "~",
}
_SPACE = re.compile(r"\s+")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\s?(?=[^\W\d_])")
_BROKEN = re.compile(r"[^\W\d_]-\Z")
"A quote that ends where a line breaks a word."
_STRIP = " \"'"
_TIGHT = re.compile(r" (?=[,;:.!?)\]}](?:\W|\Z))|(?<=[(\[{]) ")
_MAX_QUOTE = 5_000


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text; `origin[i]` is where its i-th character came from."""

    text: str
    origin: Sequence[int]


@dataclass(frozen=True, slots=True)
class Found:
    """Where a quote stands: offsets in the text that was searched."""

    start: int
    end: int


def _fold_char(char: str) -> str:
    look = _LOOKS.get(char)
    if look is not None:
        return look
    kind = unicodedata.decomposition(char)
    if kind.startswith("<super>"):
        return "^" + unicodedata.normalize("NFKC", char)
    if kind.startswith("<sub>"):
        return "_" + unicodedata.normalize("NFKC", char)
    if kind.startswith("<fraction>"):
        return char
    folded = unicodedata.normalize("NFKC", char) if kind else char
    if folded != char and len(folded) < 8:
        return "".join(_LOOKS.get(c, c) for c in folded)
    if unicodedata.category(char) in ("Cf", "Cc") and not char.isspace():
        return ""
    return char


_TABLE: dict[str, str] = {}


def fold(text: str) -> Folded:
    """Folds a text and remembers where each character came from."""
    text, origin = _compose(text)
    if not text.isascii():
        parts = [_TABLE[c] if c in _TABLE else _TABLE.setdefault(c, _fold_char(c)) for c in text]
        if any(len(p) != 1 for p in parts):
            origin = [o for o, p in zip(origin, parts, strict=True) for _ in p]
        text = "".join(parts)
    text, origin = _cut(_SPACE, text, origin, " ")
    text, origin = _cut(_HYPHEN, text, origin, "")
    return Folded(*_cut(_TIGHT, text, origin, ""))


def _compose(text: str) -> tuple[str, Sequence[int]]:
    """NFC where a letter and its marks stand apart; a range where they don't."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text, range(len(text))
    out: list[str] = []
    origin: list[int] = []
    start = 0
    for i in range(1, len(text) + 1):
        if i == len(text) or not unicodedata.combining(text[i]):
            piece = unicodedata.normalize("NFC", text[start:i])
            out.append(piece)
            origin.extend([start] * len(piece))
            start = i
    return "".join(out), origin


def _cut(pattern: re.Pattern[str], text: str, origin: Sequence[int], by: str) -> tuple[str, Sequence[int]]:
    out: list[str] = []
    kept: list[int] = []
    last = 0
    for match in pattern.finditer(text):
        if match[0] == by:
            continue
        out.append(text[last : match.start()] + by)
        kept.extend(origin[last : match.start() + len(by)])
        last = match.end()
    if not last:
        return text, origin
    out.append(text[last:])
    kept.extend(origin[last:])
    return "".join(out), kept


def fold_quote(quote: str) -> str:
    """A quote as it is looked for: folded, without quotation marks around it and without a closing full stop or comma."""
    text = fold(quote[: _MAX_QUOTE + 1]).text.strip(_STRIP)
    text = re.sub(r"(?<=[^.\d])[.,;:]+\Z|(?<=\d)[.,;:]\Z", "", text)
    return text.strip(_STRIP)


def find(quote: str, text: Folded) -> Found | None:
    """The first place where the quote stands whole, or None."""
    wanted = fold_quote(quote)
    if not wanted or len(quote) > _MAX_QUOTE or not any(c.isalnum() for c in wanted):
        return None
    broken = _BROKEN.search(wanted) is not None
    for candidate in _cases(wanted[:-1] if broken else wanted):
        at = text.text.find(candidate)
        while at >= 0:
            end = at + len(candidate)
            if _whole(text.text, at, end, broken):
                return Found(text.origin[at], text.origin[end - 1] + 1)
            at = text.text.find(candidate, at + 1)
    return None


def _cases(quote: str) -> Iterable[str]:
    """As it is, and with the other case of its first letter where it begins a word of letters."""
    yield quote
    if re.match(r"[^\W\d_][a-z]{3,}|(?:[Ww]e|[Tt]he|[Oo]ur|[Ii]ts|[Ff]or) ", quote):
        yield quote[0].swapcase() + quote[1:]


def _whole(text: str, start: int, end: int, broken: bool) -> bool:
    """Whether text[start:end] begins and ends where a word or number does; `broken`: it may end at a hyphen within a word."""
    before, first = text[max(0, start - 2) : start], text[start]
    if before and before[-1] != " ":
        previous = before[-1]
        if first.isalnum() and (previous.isalnum() or previous in "^_"):
            return False
        if first.isdigit() and (previous in "+-±~<>=≤≥≲≳/\\∓≈" or (previous in ".," and before[0].isdigit())):
            return False
        if first in ".," and previous.isdigit():
            return False
    if broken and text[end : end + 1].isalpha():
        return True
    after, last = text[end : end + 2], text[end - 1]
    if after and after[0] != " ":
        following = after[0]
        if last.isalnum() and (following.isalnum() or following in "^_" or (last.isdigit() and following in "%‰°\"'")):
            return False
        if last.isalnum() and following in ".,-+±" and after[1:].isdigit():
            return False
        if last in "+-±~<>=^_." and following.isdigit():
            return False
    return True


class PaperText:
    """A paper's pages, ready for quotes to be looked up. Folding is done once; use one object for many quotes of a paper."""

    def __init__(self, pages: Sequence[PageRecord]) -> None:
        self._pages = {p.page: p for p in pages}
        self._numbers = sorted(self._pages)
        self._folded: dict[tuple[int, ...], Folded] = {}
        self.joined = "\f".join(p.text for p in pages)
        "The text that offsets of passages count in."

    def find(self, quote: str, page: int | None = None) -> tuple[int, tuple[PageRect, ...]] | None:
        """The page on which the quote begins and the rectangles that it covers; the given page is looked at first.

        A quote may run on to the next page.
        """
        order = [page, *self._numbers] if page in self._pages else self._numbers
        for number in order:
            assert number is not None
            if (found := find(quote, self._fold((number,)))) is not None:
                return number, self._rects((number,), found)
        for pair in pairwise(self._numbers):
            if (found := find(quote, self._fold(pair))) is not None:
                return pair[0], self._rects(pair, found)
        return None

    def _fold(self, numbers: tuple[int, ...]) -> Folded:
        if numbers not in self._folded:
            self._folded[numbers] = fold("\f".join(self._pages[n].text for n in numbers))
        return self._folded[numbers]

    def _rects(self, numbers: tuple[int, ...], found: Found) -> tuple[PageRect, ...]:
        out: list[PageRect] = []
        offset = 0
        for number in numbers:
            page = self._pages[number]
            out += [PageRect(number, r) for r in rects(page, found.start - offset, found.end - offset)]
            offset += len(page.text) + 1
        return tuple(out)


def rects(page: PageRecord, start: int, end: int) -> list[Rect]:
    """The rectangles of page.text[start:end], one a line of print."""
    starts, lengths, boxes = unpack_words(page.words)
    first, last = bisect_left(starts, start), bisect_right(starts, end - 1)
    if first and starts[first - 1] + lengths[first - 1] > start:
        first -= 1
    out: list[list[float]] = []
    for i in range(max(first, 0), last):
        x0, y0, x1, y1 = boxes[4 * i : 4 * i + 4]
        if out and _same_line(out[-1], y0, y1, x0):
            row = out[-1]
            row[0], row[1], row[2], row[3] = min(row[0], x0), min(row[1], y0), max(row[2], x1), max(row[3], y1)
        else:
            out.append([x0, y0, x1, y1])
    return [(round(a, 2), round(b, 2), round(c, 2), round(d, 2)) for a, b, c, d in out]


def _same_line(row: list[float], y0: float, y1: float, x0: float) -> bool:
    overlap = min(row[3], y1) - max(row[1], y0)
    return overlap > 0.4 * min(row[3] - row[1], y1 - y0) and x0 >= row[0] - 1 and x0 - row[2] < 60

"""From the words of a page to the text that people would read: pure functions, run in the PDF child.

Ligatures and compatibility letters are spelled out, words broken at the end of a line are joined, line numbers of referee
versions and running heads are left out. Superscript digits stay what they are: `10²` is not `102`.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby, pairwise
from operator import itemgetter

Word = tuple[float, float, float, float, str, int, int, int]
"x0, y0, x1, y1, text, block, line, number; as MuPDF gives them."

_HYPHENS = ("-", "\u00ad", "\u2010")
_COMPOUND = re.compile(r"[a-z]{2,}-[a-z]{2,}")
_DIGITS = re.compile(r"\d+")
_NAMED = (
    r"abstract|introduction|conclusions?|discussions?|results?|methods?|methodology|references|bibliography|"
    r"acknowledge?ments?|summary(?: and conclusions?)?|observations?(?: and data reduction)?|data availability|software|"
    r"discussion and conclusions?|appendix(?: [a-z0-9])?"
)
HEADING = re.compile(
    rf"(?:(?:1?\d(?:\.\d{{1,2}}){{0,3}}\.?|[IVX]{{1,5}}\.|[A-Z]\d?\.)\s+(?=[A-Z][A-Za-z]*[a-zA-Z]{{2}})[^.,;:=]{{3,70}}"
    rf"|(?i:{_NAMED})\s*[.:]?)\Z"
)
"A line that heads a section: numbered and capitalised, or one of the usual names."


@dataclass(slots=True)
class RawPage:
    """A page as MuPDF gives it; `words` without what nobody sees."""

    number: int
    words: Sequence[Word]
    height: float
    hidden: str = ""


@dataclass(slots=True)
class CleanPage:
    """A page's text and, for each of its words, where it stands in the text and on the page."""

    number: int
    text: str
    starts: array[int]
    lengths: array[int]
    boxes: array[float]
    hidden: str = ""


@dataclass(slots=True)
class _Line:
    words: list[Word]
    texts: list[str]
    block: int
    text: str = ""


@dataclass(slots=True)
class _Builder:
    parts: list[str] = field(default_factory=list)
    position: int = 0
    starts: array[int] = field(default_factory=lambda: array("I"))
    lengths: array[int] = field(default_factory=lambda: array("H"))
    boxes: array[float] = field(default_factory=lambda: array("f"))

    def add(self, line: _Line) -> None:
        sizes = [len(t) for t in line.texts]
        self.lengths.extend([min(n, 65535) for n in sizes])
        self.starts.extend(accumulate([n + 1 for n in sizes[:-1]], initial=self.position))
        self.boxes.extend(chain.from_iterable([w[:4] for w in line.words]))
        text = " ".join(line.texts)
        self.parts.append(text)
        self.position += len(text)

    def glue(self, separator: str) -> None:
        self.parts.append(separator)
        self.position += len(separator)


def spell_out(text: str) -> str:
    """NFKC, except where it would turn a superscript, subscript or fraction into plain digits; control characters go."""
    if text.isascii() and text.isprintable():
        return text
    out = []
    for char in text:
        kind = unicodedata.decomposition(char)
        if kind.startswith(("<super>", "<sub>", "<fraction>")):
            out.append(char)
        elif unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn") and char not in "\u00ad\n\f":
            continue
        else:
            out.append(unicodedata.normalize("NFKC", char) if kind.startswith("<") else char)
    return unicodedata.normalize("NFC", "".join(out))


def clean_pages(pages: Sequence[RawPage]) -> list[CleanPage]:
    """Cleans pages that belong together: what repeats on them is a running head, what is spelled elsewhere tells a hyphen."""
    lines = [_lines(page) for page in pages]
    heads = _running_heads(pages, lines)
    compounds = frozenset(
        chain.from_iterable(_COMPOUND.findall(line.text.lower()) for p in lines for line in p if "-" in line.text)
    )
    return [
        _build(page, [line for i, line in enumerate(own) if (n, i) not in heads], compounds)
        for n, (page, own) in enumerate(zip(pages, lines, strict=True))
    ]


def _lines(page: RawPage) -> list[_Line]:
    out = []
    cache: dict[str, str] = {}
    for (block, _), group in groupby(page.words, key=itemgetter(5, 6)):
        words = list(group)
        texts = [w[4] for w in words]
        text = " ".join(texts)
        if not (text.isascii() and text.isprintable()):
            texts = [cache[t] if t in cache else cache.setdefault(t, spell_out(t)) for t in texts]
            if not all(texts):
                words = [w for w, t in zip(words, texts, strict=True) if t]
                texts = [t for t in texts if t]
            text = " ".join(texts)
        if texts:
            out.append(_Line(words, texts, block, text))
    return _without_line_numbers(out)


def _without_line_numbers(lines: list[_Line]) -> list[_Line]:
    """Leaves out numbers in a margin that count the lines of a referee version."""
    numbered = [line for line in lines if line.texts[0].isdecimal() and len(line.texts[0]) <= 4]
    closing = [
        line for line in lines if len(line.texts) > 1 and line.texts[-1].isdecimal() and len(line.texts[-1]) <= 4
    ]
    if len(numbered) < 10 and len(closing) < 10:
        return lines
    body = [line for line in lines if len(line.texts) >= 5]
    if not body:
        return lines
    inner = sorted(line.words[1][0] for line in body if line.texts[0].isdecimal()) or [1e9]
    left = min(
        min((line.words[0][0] for line in body if not line.texts[0].isdecimal()), default=1e9), inner[len(inner) // 2]
    )
    right = max(line.words[-2][2] if line.texts[-1].isdecimal() else line.words[-1][2] for line in body)
    first = _counting(
        [(line.words[0][1], int(line.texts[0]), line) for line in numbered if line.words[0][2] <= left + 1]
    )
    last = _counting(
        [(line.words[-1][1], int(line.texts[-1]), line) for line in closing if line.words[-1][0] >= right - 1]
    )
    for line in first:
        del line.words[0], line.texts[0]
    for line in last:
        del line.words[-1:], line.texts[-1:]
    for line in chain(first, last):
        line.text = " ".join(line.texts)
    return [line for line in lines if line.texts] if first or last else lines


def _counting(found: list[tuple[float, int, _Line]]) -> list[_Line]:
    """The lines, if their numbers count upwards down the page by ones or fives; else none."""
    if len(found) < 10:
        return []
    found.sort(key=lambda f: f[0])
    steps = Counter(b[1] - a[1] for a, b in pairwise(found))
    step, times = steps.most_common(1)[0]
    return [line for _, _, line in found] if step in (1, 5) and times >= 0.8 * (len(found) - 1) else []


def _running_heads(pages: Sequence[RawPage], lines: Sequence[Sequence[_Line]]) -> set[tuple[int, int]]:
    where: dict[str, list[tuple[int, int]]] = {}
    for n, (page, own) in enumerate(zip(pages, lines, strict=True)):
        for i, line in enumerate(own):
            top, bottom = line.words[0][1], line.words[0][3]
            if bottom < 0.09 * page.height or top > 0.915 * page.height:
                where.setdefault(_DIGITS.sub("#", line.text), []).append((n, i))
    enough = max(3, len(pages) // 5)
    return set(chain.from_iterable(v for v in where.values() if len({n for n, _ in v}) >= enough))


def _build(page: RawPage, lines: Sequence[_Line], compounds: frozenset[str]) -> CleanPage:
    out = _Builder()
    before: _Line | None = None
    after_heading = False
    for i, line in enumerate(lines):
        first_of_block = before is None or before.block != line.block
        heading = first_of_block and len(line.text) < 80 and HEADING.match(line.text) is not None
        if before is not None:
            if first_of_block or heading or after_heading:
                out.glue("\n")
            elif before.text.endswith(_HYPHENS):
                out.glue(_after_hyphen(before, line, compounds))
            else:
                out.glue(" ")
        following = lines[i + 1] if i + 1 < len(lines) else None
        if following is not None and line.text.endswith(_HYPHENS) and following.block == line.block:
            _drop_hyphen(line, following, compounds)
        out.add(line)
        before, after_heading = line, heading
    return CleanPage(page.number, "".join(out.parts), out.starts, out.lengths, out.boxes, page.hidden)


def _breaks(line: _Line, following: _Line) -> bool:
    """Whether the word at the end of the line goes on in the next one."""
    left, right = line.texts[-1], following.texts[0]
    return len(left) > 1 and left[-2].isalpha() and right[:1].islower()


def _is_compound(line: _Line, following: _Line, compounds: frozenset[str]) -> bool:
    left = re.search(r"[a-z]*\Z", line.texts[-1][:-1].lower())
    right = re.match(r"[a-z]*", following.texts[0].lower())
    assert left is not None
    assert right is not None
    return f"{left[0]}-{right[0]}" in compounds


def _drop_hyphen(line: _Line, following: _Line, compounds: frozenset[str]) -> None:
    soft = line.texts[-1].endswith("\u00ad")
    if _breaks(line, following) and (soft or not _is_compound(line, following, compounds)):
        line.texts[-1] = line.texts[-1][:-1]


def _after_hyphen(before: _Line, line: _Line, compounds: frozenset[str]) -> str:
    """Nothing, where the hyphen was dropped or belongs to the word; a space where it is a dash."""
    last = before.texts[-1]
    if not last.endswith(_HYPHENS):
        return ""
    return "" if len(last) > 1 and last[-2].isalpha() and line.texts[0][:1].isalpha() else " "


def join_hidden(parts: Iterable[str]) -> str:
    """Hidden text as it is reported: cleaned, at most 2,000 characters a page."""
    return spell_out(" ".join(" ".join(parts).split()))[:2000]

"""BibTeX in two tiers: an index of entries for the whole file, fields only where they are wanted.

Nothing here raises on any text: a half-typed file is the normal case. Offsets are indices into the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from astroresearch.manuscript.unicode import fold, plain

_START = re.compile(r"^[ \t\ufeff]*@[ \t]*[A-Za-z]+\s*[{(]", re.M)
_HEAD = re.compile(r"@[ \t]*([A-Za-z]+)\s*([{(])")
_INNER = re.compile(r"[})\s]@[ \t]*[A-Za-z]+\s*[{(]")
_KEY = re.compile(r"\s*([^\s,{}()\"=#%]?[^\s,{}\"=#%]*)[ \t]*(?:[\r\n]\s*)?([,}=)]?)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_:.+/-]*")
_BARE = re.compile(r"[^\s,{}#\"=%()]+")
_BRACE = re.compile(r"[{}]")
_QUOTE = re.compile(r"[{}\"]")
_PAREN = re.compile(r"[{}()]")
_SPACE = re.compile(r"(?:\s|%[^\r\n]*)*")
_FIELD_START = re.compile(r"[\r\n][ \t]*([A-Za-z][A-Za-z0-9_-]*)[ \t]*=")
SPECIAL = frozenset({"comment", "preamble", "string"})


@dataclass(frozen=True, slots=True)
class Field:
    """One `name = value`; offsets are relative to the entry. `raw` is the value as written, `#` and all."""

    name: str
    start: int
    value_start: int
    value_end: int
    raw: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something an entry does wrong, at offsets relative to it."""

    start: int
    end: int
    text: str


class EntryBody:
    """What an entry holds, apart from where it stands; kept as long as its text does not change."""

    __slots__ = ("__dict__", "closed", "key", "key_start", "kind", "raw")

    def __init__(self, raw: str, closed: bool) -> None:
        self.raw = raw
        self.closed = closed
        head = _HEAD.match(raw)
        self.kind = head[1].lower() if head else ""
        at = head.end() if head else 0
        match = _KEY.match(raw, at)
        key = match[1] if match else ""
        if match and match[2] == "=":
            key = ""
        self.key = key
        self.key_start = match.start(1) if match and key else at

    @cached_property
    def _parsed(self) -> tuple[tuple[Field, ...], tuple[Problem, ...]]:
        return _parse_fields(self.raw, self.key_start + len(self.key))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields in order, repeated ones too."""
        return self._parsed[0]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is broken inside the entry."""
        found = list(self._parsed[1])
        if not self.closed:
            found.insert(0, Problem(0, self.key_start + len(self.key), "This entry is never closed: a } is missing."))
        return tuple(found)

    @cached_property
    def values(self) -> dict[str, str]:
        """Field name in lower case → value as written; the first of repeated fields, as BibTeX takes it."""
        values: dict[str, str] = {}
        for one in self.fields:
            values.setdefault(one.name, one.raw)
        return values

    def text(self, name: str) -> str:
        """A field without outer braces or quotes, LaTeX made plain; macros are left as they are."""
        raw = self.values.get(name, "")
        return plain(unquote(raw)) if raw else ""

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """biblatex `ids`."""
        raw = self.values.get("ids")
        return tuple(k.strip() for k in unquote(raw).split(",") if k.strip()) if raw else ()

    @cached_property
    def haystack(self) -> str:
        """Folded key, authors, title and year for searching; words begin after a blank."""
        values = self.values
        names = " ".join(
            unquote(values[name]) for name in ("author", "editor", "title", "year", "date") if name in values
        )
        return f" {fold(self.key)} | {fold(names)}"


@dataclass(frozen=True, slots=True)
class BibEntry:
    """An entry in its place."""

    start: int
    body: EntryBody

    @property
    def key(self) -> str:
        """As written."""
        return self.body.key

    @property
    def kind(self) -> str:
        """Entry type in lower case."""
        return self.body.kind

    @property
    def end(self) -> int:
        """Just past the entry."""
        return self.start + len(self.body.raw)

    @property
    def key_range(self) -> tuple[int, int]:
        """Where the key stands."""
        start = self.start + self.body.key_start
        return start, start + len(self.body.key)


@dataclass(frozen=True, eq=False)
class BibFile:
    """The index of one .bib text."""

    text: str
    entries: tuple[BibEntry, ...] = ()
    "Without `@string`, `@preamble` and `@comment`."
    specials: tuple[BibEntry, ...] = ()
    bodies: Mapping[str, EntryBody] = field(default_factory=dict)

    @cached_property
    def by_key(self) -> dict[str, BibEntry]:
        """Key or alias → first entry with it."""
        found: dict[str, BibEntry] = {}
        for entry in self.entries:
            if entry.key:
                found.setdefault(entry.key, entry)
        for entry in self.entries:
            if "ids" in entry.body.raw:
                for alias in entry.body.aliases:
                    found.setdefault(alias, entry)
        return found

    @cached_property
    def strings(self) -> dict[str, str]:
        """`@string` name in lower case → its text, concatenations resolved."""
        found: dict[str, str] = {}
        for special in self.specials:
            if special.kind == "string":
                for one in _parse_fields(special.body.raw, special.body.key_start)[0]:
                    found[one.name] = expand(one.raw, found)
        return found

    def at(self, offset: int) -> BibEntry | None:
        """The entry around an offset."""
        low, high = 0, len(self.entries)
        while low < high:
            middle = (low + high) // 2
            if self.entries[middle].start <= offset:
                low = middle + 1
            else:
                high = middle
        entry = self.entries[low - 1] if low else None
        return entry if entry is not None and offset <= entry.end else None


def scan(text: str, previous: BibFile | None = None) -> BibFile:
    """Indexes a text; entries that are unchanged since `previous` are not read again."""
    known = dict(previous.bodies) if previous is not None else {}
    if previous is not None and previous.entries and len(text) > 20_000:
        return _rescan(text, previous)
    return _build(text, _segments(text, 0, len(text)), known)


def _build(text: str, spans: Sequence[tuple[int, int, bool]], known: Mapping[str, EntryBody]) -> BibFile:
    entries: list[BibEntry] = []
    specials: list[BibEntry] = []
    bodies: dict[str, EntryBody] = {}
    for start, end, closed in spans:
        raw = text[start:end]
        body = bodies.get(raw) or known.get(raw)
        if body is None or body.closed != closed:
            body = EntryBody(raw, closed)
        bodies[raw] = body
        (specials if body.kind in SPECIAL else entries).append(BibEntry(start, body))
    return BibFile(text, tuple(entries), tuple(specials), bodies)


def _common_prefix(one: str, two: str) -> int:
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: str, two: str, limit: int) -> int:
    low, high = 0, limit
    a, b = len(one), len(two)
    while low < high:
        middle = (low + high + 1) // 2
        if one[a - middle : a - low] == two[b - middle : b - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _rescan(text: str, previous: BibFile) -> BibFile:
    old = previous.text
    if old == text:
        return previous
    prefix = _common_prefix(old, text)
    suffix = _common_suffix(old, text, min(len(old), len(text)) - prefix)
    delta = len(text) - len(old)
    every = sorted((*previous.entries, *previous.specials), key=lambda entry: entry.start)
    # The entry before the edit and the one after it are read again: either may have changed its end.
    first = max(len(_starting_before(every, prefix)) - 1, 0)
    while first > 0 and not every[first - 1].body.closed:
        first -= 1
    last = len(_starting_before(every, len(old) - suffix + 1)) + 1
    begin = every[first].start if first else 0
    stop = every[last].start + delta if last < len(every) else len(text)
    spans = _segments(text, begin, stop)
    on_lines = (not first or _starts_line(text, begin)) and (last >= len(every) or _starts_line(text, stop))
    if not on_lines or (last < len(every) and spans and not spans[-1][2]):
        return _build(text, _segments(text, 0, len(text)), previous.bodies)
    middle = _build(text, spans, previous.bodies)
    before, after = every[:first], [BibEntry(e.start + delta, e.body) for e in every[last:]]
    merged = (*before, *sorted((*middle.entries, *middle.specials), key=lambda e: e.start), *after)
    bodies = {entry.body.raw: entry.body for entry in merged}
    entries = tuple(e for e in merged if e.kind not in SPECIAL)
    return BibFile(text, entries, tuple(e for e in merged if e.kind in SPECIAL), bodies)


def _starting_before(entries: Sequence[BibEntry], offset: int) -> Sequence[BibEntry]:
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        if entries[middle].start < offset:
            low = middle + 1
        else:
            high = middle
    return entries[:low]


def _starts_line(text: str, offset: int) -> bool:
    return not text[_line_start(text, offset) : offset].strip(" \t\ufeff")


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _segments(text: str, begin: int, stop: int) -> list[tuple[int, int, bool]]:
    """Entries as (start, end, closed). Where an entry is not closed, the next line that starts one recovers."""
    candidates: list[tuple[int, int]] = []
    if _HEAD.match(text, begin, stop) and not _START.match(text, begin, stop):
        candidates.append((begin, begin + 1))
    for match in _START.finditer(text, begin, stop):
        candidates.append((text.index("@", match.start()), match.end()))
    if "\r" in text:
        candidates = _after_lone_returns(text, begin, stop, candidates)
    spans: list[tuple[int, int, bool]] = []
    for number, (start, _) in enumerate(candidates):
        limit = candidates[number + 1][0] if number + 1 < len(candidates) else stop
        if spans and spans[-1][1] > start:
            continue
        _segment(text, start, limit, spans)
    first = candidates[0][0] if candidates else stop
    head = _same_line_entries(text, begin, first)
    return head + spans


def _after_lone_returns(text: str, begin: int, stop: int, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    known = {start for start, _ in found}
    for match in re.finditer(r"\r[ \t]*(@[ \t]*[A-Za-z]+\s*[{(])", text[begin:stop]):
        if begin + match.start(1) not in known:
            found.append((begin + match.start(1), begin + match.end()))
    return sorted(found)


def _same_line_entries(text: str, begin: int, stop: int) -> list[tuple[int, int, bool]]:
    """Entries after junk on a line of their own, before the first that starts a line; `%` hides them."""
    spans: list[tuple[int, int, bool]] = []
    at = begin
    while (match := _HEAD.search(text, at, stop)) is not None:
        line = text[_line_start(text, match.start()) : match.start()]
        if "%" in line:
            at = match.end()
            continue
        _segment(text, match.start(), stop, spans)
        at = max(spans[-1][1], match.end())
    return spans


def _segment(text: str, start: int, limit: int, spans: list[tuple[int, int, bool]]) -> None:
    piece = text[start:limit]
    head = _HEAD.match(piece)
    inside = head.end() if head else 0
    if head is not None and head[2] == "{" and (last := _plainly_closed(piece, inside)):
        spans.append((start, start + last, True))
        return
    end = _balanced_end(piece, inside, paren=bool(head and head[2] == "("))
    if end < 0:
        spans.append((start, start + max(len(piece.rstrip()), 1), False))
        return
    spans.append((start, start + end, True))
    spans.extend(_same_line_entries(text, start + end, limit))


def _plainly_closed(piece: str, inside: int) -> int:
    """The end of an entry that ends with its only `}` at the start of a line, without walking through it; else 0."""
    if piece.count("{") != piece.count("}"):
        return 0
    last = piece.rfind("}") + 1
    if last < 2 or piece[last - 2] != "\n" or piece.find("\n}", inside, last - 2) >= 0:
        return 0
    return last if piece.find("@", inside) < 0 or _INNER.search(piece, inside) is None else 0


def _balanced_end(piece: str, at: int, *, paren: bool = False) -> int:
    """Index past the bracket that closes the entry whose inside starts at `at`; -1 if none does."""
    if paren:
        return _paren_end(piece, at)
    depth = 1
    for match in _BRACE.finditer(piece, at):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return -1


def _paren_end(piece: str, at: int) -> int:
    depth, inner, quoted = 0, 1, False
    for match in re.finditer(r"[{}()\"]", piece[at:]):
        char = match[0]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif depth == 0 and char == '"':
            quoted = not quoted
        elif depth == 0 and not quoted:
            inner += 1 if char == "(" else -1
            if inner == 0:
                return at + match.end()
    return -1


def _parse_fields(raw: str, at: int) -> tuple[tuple[Field, ...], tuple[Problem, ...]]:
    """Reads `name = value` pairs from just after the key; recovers at the next `name =`."""
    fields: list[Field] = []
    problems: list[Problem] = []
    end = len(raw)
    separated = True
    while at < end:
        at = _skip(raw, at)
        if at >= end or raw[at] in "})":
            if at < end - 1:
                problems.append(Problem(at, at + 1, "The entry ends here, but more follows: a brace too many before."))
            break
        if raw[at] == ",":
            separated = True
            at += 1
            continue
        name = _NAME.match(raw, at)
        equals = _skip(raw, name.end()) if name else at
        if name is None or equals >= end or raw[equals] != "=":
            stop = _recover(raw, max(at + 1, name.end() if name else 0))
            problems.append(Problem(at, min(stop, at + 60), "This is no field: `name = value` was expected."))
            at, separated = stop, True
            continue
        if not separated:
            problems.append(Problem(name.start(), name.end(), f"A comma is missing before `{name[0]}`."))
        value_start = _skip(raw, equals + 1)
        value_end = _value_end(raw, value_start)
        if value_end == value_start:
            problems.append(Problem(name.start(), equals + 1, f"The field `{name[0]}` has no value."))
        fields.append(Field(name[0].lower(), name.start(), value_start, value_end, raw[value_start:value_end]))
        at = max(value_end, equals + 1)
        separated = False
    return tuple(fields), tuple(problems)


def _skip(raw: str, at: int) -> int:
    match = _SPACE.match(raw, at)
    return match.end() if match else at


def _recover(raw: str, at: int) -> int:
    comma = raw.find(",", at)
    match = _FIELD_START.search(raw, at)
    places = [p for p in (comma, match.start(1) if match else -1) if p >= 0]
    return min(places) if places else len(raw)


def _value_end(raw: str, at: int) -> int:
    """Past a whole value with its `#` parts."""
    end = at
    while True:
        part = _part_end(raw, at)
        if part == at:
            return end
        end = part
        after = _skip(raw, end)
        if after >= len(raw) or raw[after] != "#":
            return end
        at = _skip(raw, after + 1)


def _part_end(raw: str, at: int) -> int:
    if at >= len(raw):
        return at
    if raw[at] == "{":
        depth = 0
        for match in _BRACE.finditer(raw, at):
            depth += 1 if match[0] == "{" else -1
            if depth == 0:
                return match.end()
        return len(raw)
    if raw[at] == '"':
        return _quoted_end(raw, at)
    bare = _BARE.match(raw, at)
    return bare.end() if bare else at


def _quoted_end(raw: str, at: int) -> int:
    """Past a quoted value; a quote inside is taken as text when no comma, `#` or closing follows it."""
    depth = 0
    last = -1
    for match in _QUOTE.finditer(raw, at + 1):
        char = match[0]
        if char == "{":
            depth += 1
        elif char == "}":
            if depth == 0:
                return last if last > 0 else match.start()
            depth -= 1
        elif depth == 0:
            last = match.end()
            after = _skip(raw, last)
            if after >= len(raw) or raw[after] in ",#})" or _FIELD_START.match(raw, last):
                return last
    return last if last > 0 else len(raw)


def unquote(raw: str) -> str:
    """A value without its outer braces or quotes; concatenations are joined, macros kept by name."""
    raw = raw.strip()
    if len(raw) >= 2 and raw[0] == "{" and raw[-1] == "}" and _part_end(raw, 0) == len(raw):
        return raw[1:-1].strip()
    if len(raw) >= 2 and raw[0] == '"' and raw[-1] == '"' and "#" not in raw:
        return raw[1:-1].strip()
    if "#" in raw:
        return expand(raw, {}).strip()
    return raw.strip('{}"')


_MONTHS = {
    m[:3].lower(): m
    for m in (
        [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ]
    )
}


def expand(raw: str, strings: Mapping[str, str]) -> str:
    """A value with `#` and `@string` macros resolved; unknown macros stay as their names."""
    out: list[str] = []
    at = 0
    while at < len(raw):
        at = _skip(raw, at)
        end = _part_end(raw, at)
        if end == at:
            at += 1
            continue
        part = raw[at:end]
        if part[0] == "{":
            out.append(part[1:-1] if part.endswith("}") else part[1:])
        elif part[0] == '"':
            out.append(part[1:-1] if len(part) > 1 and part.endswith('"') else part[1:])
        else:
            name = part.lower()
            out.append(strings.get(name) or _MONTHS.get(name) or part)
        at = end
    return "".join(out)

"""Finding entries by what one remembers of them, and showing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from astroresearch.domain.identifiers import from_fields
from astroresearch.domain.identifiers import names as paper_names
from astroresearch.domain.paper import Identifiers
from astroresearch.manuscript.bibtex import BibEntry, expand, unquote
from astroresearch.manuscript.journals import full_name
from astroresearch.manuscript.unicode import fold, plain

_WORD = re.compile(r"[a-z0-9]{3,}")
_YEAR = re.compile(r"\b(1[5-9]\d\d|2[01]\d\d)\b")


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that fits a query."""

    index: int
    score: float


class CitationIndex:
    """Entries of a project in file order, searchable by key, author, title and year at once."""

    def __init__(self, entries: Sequence[BibEntry], used: Mapping[str, int] | None = None) -> None:
        self.entries = tuple(entry for entry in entries if entry.key)
        self._hay = [entry.body.haystack for entry in self.entries]
        self._used = used or {}
        self._words: dict[str, list[int]] | None = None
        self._default: list[int] | None = None

    def __len__(self) -> int:
        return len(self.entries)

    def search(self, query: str, limit: int = 50) -> list[BibEntry]:
        """Best first. All words must be found, as part of a word; misspelt ones fill up where little is found."""
        words = fold(query).replace(",", " ").split()
        if not words:
            return [self.entries[i] for i in self._most_cited()[:limit]]
        found = self._ranked(self._containing(words), words, limit)
        if len(found) < 5:
            seen = set(found)
            found += [i for i in self._fuzzy(words, limit) if i not in seen]
        return [self.entries[i] for i in found[:limit]]

    def _most_cited(self) -> list[int]:
        if self._default is None:
            order = sorted(range(len(self.entries)), key=lambda i: (-self._used.get(self.entries[i].key, 0), i))
            self._default = order[:200]
        return self._default

    def _containing(self, words: Sequence[str]) -> list[int]:
        hay = self._hay
        first, *others = sorted(words, key=len, reverse=True)
        # One or two letters are in every title: they must begin a word.
        needle = first if len(first) > 2 else " " + first
        found = [i for i, text in enumerate(hay) if needle in text]
        for word in others:
            found = [i for i in found if word in hay[i]]
        return found

    def _ranked(self, found: list[int], words: Sequence[str], limit: int) -> list[int]:
        whole = "".join(words)
        scores: list[tuple[float, int]] = []
        for i in found:
            text = self._hay[i]
            score = float(text.startswith(whole, 1)) * 8
            for word in words:
                at = text.find(word)
                bar = text.find(" | ")
                score += (3 if text[at - 1 : at] in " {-" else 0) + (2 if at < bar else 0)
                score += 1.5 if text.startswith(" | " + word, bar) else 0
            scores.append((-score - min(self._used.get(self.entries[i].key, 0), 5) * 0.2, i))
        scores.sort()
        return [i for _, i in scores[:limit]]

    def _vocabulary(self) -> dict[str, list[int]]:
        if self._words is None:
            words: dict[str, list[int]] = {}
            for i, text in enumerate(self._hay):
                for word in set(_WORD.findall(text)):
                    words.setdefault(word, []).append(i)
            self._words = words
        return self._words

    def _fuzzy(self, words: Sequence[str], limit: int) -> list[int]:
        """Letters left out of a key, then words with one or two letters wrong."""
        whole = "".join(words)
        found: dict[int, float] = {}
        if 3 <= len(whole) <= 40:
            skipping = re.compile(".{0,6}?".join(map(re.escape, whole)))
            for i, text in enumerate(self._hay):
                if text[1:2] == whole[0] and skipping.match(text, 1):
                    found[i] = 1.0
        every: set[int] | None = None
        for word in words:
            near = self._near(word)
            every = near if every is None else every & near
        for i in every or ():
            found.setdefault(i, 2.0)
        return sorted(found, key=lambda i: (found[i], i))[:limit]

    def _near(self, word: str) -> set[int]:
        if len(word) < 4:
            return {i for i, text in enumerate(self._hay) if " " + word in text}
        most = 1 if len(word) < 7 else 2
        near: set[int] = set()
        for other, places in self._vocabulary().items():
            close = abs(len(other) - len(word)) <= most and OSA.distance(word, other, score_cutoff=most) <= most
            if close or word in other:
                near.update(places)
        return near

    def nearest(self, key: str) -> str:
        """The existing key that is most like a misspelt one; empty if none is close."""
        folded, best, best_distance = key.lower(), "", max(1, len(key) // 3) + 1
        for entry in self.entries:
            if abs(len(entry.key) - len(key)) < best_distance:
                distance = OSA.distance(folded, entry.key.lower(), score_cutoff=best_distance - 1)
                if distance < best_distance:
                    best, best_distance = entry.key, distance
        return best


@dataclass(frozen=True, slots=True)
class Rendered:
    """An entry for people: plain Unicode text, no LaTeX, macros expanded."""

    authors: tuple[str, ...]
    title: str
    year: str
    where: str
    "Journal or book, volume, pages."
    doi: str
    arxiv: str
    bibcode: str
    abstract: str
    note: str = ""

    @property
    def short(self) -> str:
        """`Smith et al. 2019`."""
        names = [name.split(",")[0] for name in self.authors]
        who = " & ".join(names) if len(names) < 3 else f"{names[0]} et al."
        return f"{who} {self.year}".strip()

    @property
    def reference(self) -> str:
        """One line: authors (three at most), year, title, where."""
        shown = "; ".join(self.authors[:3]) + (" et al." if len(self.authors) > 3 else "")
        head = f"{shown} ({self.year})" if self.year else shown
        return ". ".join(part.rstrip(".") for part in (head, self.title, self.where) if part) + "."


def names(value: str) -> tuple[str, ...]:
    """Authors as `Last, First`, LaTeX made plain; splits at ` and ` outside of braces."""
    return tuple(_name(one) for one in _split_and(value) if one.strip())


def _split_and(value: str) -> list[str]:
    if "{" not in value:
        return re.split(r"\s+and\s+", value.strip())
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[{}]|\sand\s", value):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth = max(0, depth - 1)
        elif depth == 0:
            parts.append(value[start : match.start()])
            start = match.end()
    parts.append(value[start:])
    return parts


def _name(one: str) -> str:
    one = one.strip()
    if one.lower() == "others":
        return "et al."
    if "," in one or (one.startswith("{") and one.endswith("}")):
        return plain(one)
    try:
        from bibtexparser.middlewares.names import parse_single_name_into_parts

        parts = parse_single_name_into_parts(one, strict=False)
    except (ValueError, IndexError, RecursionError):  # a name that the package can't split is shown as written
        return plain(one)
    last = plain(" ".join([*parts.von, *parts.last, *parts.jr]))
    first = plain(" ".join(parts.first))
    return f"{last}, {first}" if first else last


_ID_FIELDS = (
    "bibcode doi eprint archiveprefix eprinttype primaryclass eprintclass adsurl identifier url ee howpublished journal "
    "pages eid number"
)
_ID_NAMES = frozenset(_ID_FIELDS.split())


def identifiers(entry: BibEntry) -> Identifiers:
    """DOI, arXiv id and bibcode of an entry, as far as its fields and key have them."""
    fields = {one.name: unquote(one.raw) for one in entry.body.fields if one.name in _ID_NAMES}
    return from_fields(fields, entry.key)


def render(entry: BibEntry, strings: Mapping[str, str] | None = None, parent: BibEntry | None = None) -> Rendered:
    """Everything that a hover or a list shows of an entry; `parent` is what its `crossref` names."""
    known = strings or {}
    values = entry.body.values
    if parent is not None:
        inherited = {n: v for n, v in parent.body.values.items() if n not in ("title", "ids", "author", "crossref")}
        inherited.setdefault("booktitle", parent.body.values.get("title", ""))
        values = {**inherited, **values}

    def text(*fields: str) -> str:
        for name in fields:
            if name in values:
                return plain(expand(values[name], known))
        return ""

    def journal() -> str:
        for name in ("journal", "journaltitle", "booktitle", "publisher", "school", "institution", "howpublished"):
            if name in values:
                return plain(full_name(expand(values[name], known)))
        return ""

    year = text("year") or ((_YEAR.search(text("date")) or ("", ""))[0])
    where = ", ".join(part for part in (journal(), text("volume"), text("pages", "eid")) if part)
    who = expand(values.get("author") or values.get("editor") or "", known)
    ids = identifiers(entry)
    return Rendered(
        names(who), text("title"), year, where, ids.doi, ids.arxiv, ids.bibcode, text("abstract"), text("note")
    )


def same_paper_key(entry: BibEntry) -> Iterable[str]:
    """Strings that two entries of one paper share."""
    yield from paper_names(identifiers(entry))
    values = entry.body.values
    if "title" in values and "author" in values and ("year" in values or "date" in values):
        title = re.sub(r"[^a-z0-9]", "", fold(unquote(values["title"])))
        first = re.sub(r"[^a-z0-9]", "", fold(re.split(r",|\sand\s", unquote(values["author"]))[0]))
        if len(title) > 30:
            volume = values.get("volume", "") + values.get("pages", "") + entry.kind
            yield f"title:{title}:{first}:{volume if len(title) < 50 else ''}"

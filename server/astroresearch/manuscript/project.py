"""A manuscript of several files: which files it has, what they define, and where that is not known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from astroresearch.manuscript.bibtex import BibEntry, BibFile, scan
from astroresearch.manuscript.citations import CitationIndex
from astroresearch.manuscript.latex import Include, Name, TexFile

TexSource = Callable[[Path], TexFile | None]
BibSource = Callable[[Path], BibFile | None]


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a key is defined: an entry, or a `\\bibitem` (then `entry` is None)."""

    path: Path
    start: int
    end: int
    entry: BibEntry | None = None
    alias: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a file."""

    path: Path
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Missing:
    """A file that is named but can't be found."""

    path: Path
    include: Include


@dataclass(frozen=True, eq=False)
class Project:
    """One root with all that it includes. Frozen: a change makes a new one."""

    root: Path
    tex: Mapping[Path, TexFile]
    "In reading order, root first."
    bibs: Mapping[Path, BibFile]
    embedded: tuple[tuple[Path, int, BibFile], ...] = ()
    "`filecontents` .bib files: file, offset of their text, content."
    missing: tuple[Missing, ...] = ()
    rooted: bool = True
    "False: a chapter whose root was not found."
    links: Mapping[tuple[Path, int], Path] = field(default_factory=dict)
    "Include (by file and offset) → the file it names."
    guessed: bool = False
    "The .bib files lie near the manuscript, which names none."

    @property
    def open_keys(self) -> bool:
        """Whether there may be keys that we can't see, so that none can be called undefined."""
        if not self.rooted or self.guessed or any(m.include.kind != "package" for m in self.missing):
            return True
        if self.bibs or self.embedded or any(file.bibitems for file in self.tex.values()):
            return False
        return not any(file.has_end for file in self.tex.values())

    @property
    def open_labels(self) -> bool:
        """The same for labels."""
        unknown = any(m.include.kind not in ("package", "bibliography") for m in self.missing)
        return not self.rooted or unknown or any(file.open_labels for file in self.tex.values())

    @property
    def biblatex(self) -> bool:
        """Keys are told apart by case."""
        return any("biblatex" in file.packages for file in self.tex.values())

    def entries(self) -> Iterator[tuple[Path, int, BibFile, BibEntry]]:
        """All entries with their file and the offset that their positions have to be moved by."""
        for path, bib in self.bibs.items():
            for entry in bib.entries:
                yield path, 0, bib, entry
        for path, base, bib in self.embedded:
            for entry in bib.entries:
                yield path, base, bib, entry

    def find(self, key: str) -> list[Definition]:
        """Where a key is defined; by case if that fits, without regard to case otherwise."""
        return self._find(key) or ([] if self.biblatex else self._find_folded(key))

    def _find(self, key: str) -> list[Definition]:
        found: list[Definition] = []
        sources = [(path, 0, bib) for path, bib in self.bibs.items()] + list(self.embedded)
        for path, base, bib in sources:
            entry = bib.by_key.get(key)
            if entry is not None:
                start, end = entry.key_range if entry.key == key else alias_range(entry, key)
                found.append(Definition(path, base + start, base + end, entry, entry.key != key))
        for path, file in self.tex.items():
            found += [Definition(path, b.start, b.end) for b in file.bibitems if b.name == key]
        return found

    def _find_folded(self, key: str) -> list[Definition]:
        exact = self._folded.get(key.lower())
        return self._find(exact) if exact else []

    @cached_property
    def _folded(self) -> dict[str, str]:
        folded: dict[str, str] = {}
        for bib in (*self.bibs.values(), *(bib for _, _, bib in self.embedded)):
            for key in bib.by_key:
                folded.setdefault(key.lower(), key)
        return folded

    @cached_property
    def index(self) -> CitationIndex:
        """For completion."""
        return CitationIndex([entry for _, _, _, entry in self.entries()], self.uses)

    @cached_property
    def uses(self) -> dict[str, int]:
        """How often each key is cited."""
        counts: dict[str, int] = {}
        for file in self.tex.values():
            for key, places in file.cited.items():
                counts[key] = counts.get(key, 0) + len(places)
        return counts

    @cached_property
    def strings(self) -> dict[str, str]:
        """All `@string` macros."""
        merged: dict[str, str] = {}
        for bib in (*self.bibs.values(), *(bib for _, _, bib in self.embedded)):
            if bib.specials:
                merged.update(bib.strings)
        return merged

    def names_of(self, key: str) -> tuple[str, ...]:
        """A key with the other names of its entry: biblatex `ids`."""
        for one in self.find(key):
            if one.entry is not None and one.entry.body.aliases:
                return tuple(dict.fromkeys((key, one.entry.key, *one.entry.body.aliases)))
        return (key,)

    def parent(self, entry: BibEntry) -> BibEntry | None:
        """The entry that this one takes fields from (`crossref`)."""
        raw = entry.body.values.get("crossref")
        found = self.find(raw.strip('{}" ')) if raw else []
        return found[0].entry if found and found[0].entry is not entry else None

    @property
    def names_no_bib(self) -> bool:
        """Nothing says where its keys come from."""
        named = any(m.include.kind == "bibliography" for m in self.missing)
        return not (self.bibs or self.embedded or named or any(file.bibitems for file in self.tex.values()))

    @cached_property
    def labels(self) -> dict[str, list[Place]]:
        """Label → where it is set."""
        found: dict[str, list[Place]] = {}
        for path, file in self.tex.items():
            for label in file.labels:
                found.setdefault(label.name, []).append(Place(path, label.start, label.end))
        return found

    def citations_of(self, key: str) -> list[Place]:
        """Where a key is cited."""
        return [Place(p, n.start, n.end) for p, f in self.tex.items() for n in f.cited.get(key, ())]

    def references_of(self, label: str) -> list[Place]:
        """Where a label is referred to."""
        return [
            Place(path, name.start, name.end)
            for path, file in self.tex.items()
            for reference in file.references
            for name in reference.labels
            if name.name == label
        ]

    def crossrefs_of(self, key: str) -> list[Place]:
        """Where other entries name a key: `crossref`, `xref`, `xdata`, `related`, `entryset`."""
        found: list[Place] = []
        for path, base, _, entry in self.entries():
            if key in entry.body.raw and entry.key != key:
                for name in key_fields(entry):
                    if name.name == key:
                        found.append(Place(path, base + name.start, base + name.end))
        return found


KEY_FIELDS = ("crossref", "xref", "xdata", "related", "entryset")


def key_fields(entry: BibEntry) -> Iterator[Name]:
    """Keys of other entries that an entry names."""
    for one in entry.body.fields:
        if one.name in KEY_FIELDS:
            yield from _listed(entry, one.value_start, one.value_end)


def alias_range(entry: BibEntry, alias: str) -> tuple[int, int]:
    """Where an alias stands in its entry's `ids`."""
    for one in entry.body.fields:
        if one.name == "ids":
            for name in _listed(entry, one.value_start, one.value_end):
                if name.name == alias:
                    return name.start, name.end
    return entry.key_range


def _listed(entry: BibEntry, start: int, end: int) -> Iterator[Name]:
    at = start
    for piece in entry.body.raw[start:end].split(","):
        word = piece.strip(' \t\r\n{}"')
        if word:
            begin = entry.start + at + piece.index(word)
            yield Name(word, begin, begin + len(word))
        at += len(piece) + 1


def build(
    root: Path, tex_of: TexSource, bib_of: BibSource, *, rooted: bool = True, also: Iterable[Path] = ()
) -> Project:
    """Follows a root's includes. The sources answer None for files that are not there.

    `also` are files that say themselves that they belong to the root.
    """
    tex: dict[Path, TexFile] = {}
    bibs: dict[Path, BibFile] = {}
    embedded: list[tuple[Path, int, BibFile]] = []
    missing: list[Missing] = []
    links: dict[tuple[Path, int], Path] = {}
    written: dict[str, tuple[Path, int, BibFile]] = {}
    todo: list[tuple[Path, tuple[Path, ...]]] = [(root, (root.parent,))]
    todo += [(path, (root.parent,)) for path in also]
    while todo:
        path, where = todo.pop(0)
        if path in tex or len(tex) > 2000:
            continue
        file = tex_of(path)
        if file is None:
            continue
        tex[path] = file
        for one in file.embedded:
            name = one.name.replace("\\jobname", root.stem)
            written[name] = (path, one.start, scan(file.text[one.start : one.end]))
        more: list[tuple[Path, tuple[Path, ...]]] = []
        for include in file.includes:
            target = _resolve(include, path, where, root, tex_of, bib_of, written)
            if target is None:
                if include.kind != "package" and not include.optional:
                    missing.append(Missing(path, include))
                continue
            if isinstance(target, tuple):
                if target not in embedded:
                    embedded.append(target)
                continue
            links[path, include.start] = target
            if include.kind == "bibliography":
                bib = bib_of(target)
                if bib is not None:
                    bibs.setdefault(target, bib)
            else:
                more.append((target, _inside(include, target, path, where)))
        todo[:0] = more
    return Project(root, tex, bibs, tuple(embedded), tuple(missing), rooted, links=links)


def _inside(include: Include, target: Path, path: Path, where: tuple[Path, ...]) -> tuple[Path, ...]:
    if include.folder or include.kind == "subfile":
        return (target.parent, *where)
    return where


def _resolve(
    include: Include,
    path: Path,
    where: Iterable[Path],
    root: Path,
    tex_of: TexSource,
    bib_of: BibSource,
    written: Mapping[str, tuple[Path, int, BibFile]],
) -> Path | tuple[Path, int, BibFile] | None:
    if include.open or not include.name:
        return None
    name = include.name.replace("\\jobname", root.stem)
    bib = include.kind == "bibliography"
    for ending in ("", ".bib", ".tex") if bib else ("", ".tex"):
        if bib and name + ending in written:
            return written[name + ending]
    endings = (".bib", "") if bib else (".sty", ".cls") if include.kind == "package" else (".tex", "")
    if bib and name.lower().endswith(".bib"):
        endings = ("", ".bib")
    elif not bib and Path(name).suffix in (".tex", ".bbl", ".txt", ".tikz", ".pgf", ".sty"):
        endings = ("", ".tex")
    for folder in _folders(include, path, where):
        for ending in endings:
            candidate = Path(os.path.normpath(folder / include.folder / (name + ending)))
            if (bib_of if bib else tex_of)(candidate) is not None:
                return candidate
    return None


def _folders(include: Include, path: Path, where: Iterable[Path]) -> Iterator[Path]:
    first = [path.parent] if include.relative else []
    yield from dict.fromkeys([*first, *where, path.parent])

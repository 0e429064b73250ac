"""What is wrong with a manuscript, as far as its own text says; nothing is asked of the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from astroresearch.manuscript.bibtex import BibEntry, BibFile, expand, unquote
from astroresearch.manuscript.citations import same_paper_key
from astroresearch.manuscript.latex import TexFile
from astroresearch.manuscript.project import KEY_FIELDS, Place, Project, key_fields
from astroresearch.manuscript.unicode import plain

Severity = Literal["error", "warning", "information", "hint"]

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "article": ("author", "title", "journal", "year"),
    "book": ("author/editor", "title", "publisher", "year"),
    "mvbook": ("author/editor", "title", "year"),
    "booklet": ("title",),
    "inbook": ("author/editor", "title", "publisher/booktitle", "year"),
    "incollection": ("author", "title", "booktitle", "year"),
    "inproceedings": ("author", "title", "booktitle", "year"),
    "conference": ("author", "title", "booktitle", "year"),
    "manual": ("title",),
    "mastersthesis": ("author", "title", "school", "year"),
    "phdthesis": ("author", "title", "school", "year"),
    "thesis": ("author", "title", "institution", "year"),
    "proceedings": ("title", "year"),
    "techreport": ("author", "title", "institution", "year"),
    "report": ("author", "title", "institution", "year"),
    "unpublished": ("author", "title", "note"),
    "online": ("title", "url"),
}
"Fields that BibTeX's or biblatex's styles warn about, by type; `/` stands between alternatives."

_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "journal": ("journaltitle", "eprint", "howpublished"),
    "year": ("date", "eventdate"),
    "author": ("editor", "collaboration"),
    "school": ("institution",),
    "institution": ("school", "publisher", "organization"),
    "publisher": ("organization", "institution", "school"),
    "url": ("doi", "eprint", "howpublished"),
    "booktitle": ("journal", "maintitle", "series"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding at a span of a file; `name` is the key, label or field that it is about."""

    code: str
    severity: Severity
    start: int
    end: int
    message: str
    name: str = ""
    related: tuple[tuple[Place, str], ...] = ()
    suggestion: str = ""


def check_tex(project: Project, path: Path) -> list[Finding]:
    """Findings in one .tex file of a project."""
    file = project.tex.get(path)
    if file is None:
        return []
    found = [*_missing_files(project, path), *_duplicate_labels(project, path, file)]
    if not project.open_keys:
        found += _undefined_keys(project, file)
    if not project.open_labels:
        found += _undefined_labels(project, file)
    for _, base, bib in (e for e in project.embedded if e[0] == path):
        found += [_moved(f, base) for f in _broken(bib)]
    return sorted(found, key=lambda one: one.start)


def _moved(finding: Finding, base: int) -> Finding:
    return Finding(
        finding.code, finding.severity, finding.start + base, finding.end + base, finding.message, finding.name
    )


def _undefined_keys(project: Project, file: TexFile) -> Iterator[Finding]:
    known: dict[str, bool] = {"*": True}
    suggestions = 0
    for citation in file.citations:
        for key in citation.keys if citation.certain else ():
            if key.name not in known:
                known[key.name] = bool(project.find(key.name))
            if known[key.name]:
                continue
            near = ""
            if suggestions < 20 and len(project.index) <= 20_000:
                near, suggestions = project.index.nearest(key.name), suggestions + 1
            hint = f" Did you mean `{near}`?" if near else ""
            message = f"Undefined citation key `{key.name}`: no bibliography of this manuscript has it.{hint}"
            yield Finding("tex.undefined-key", "warning", key.start, key.end, message, key.name, suggestion=near)


def _undefined_labels(project: Project, file: TexFile) -> Iterator[Finding]:
    for reference in file.references:
        for label in reference.labels if reference.certain else ():
            if label.name not in project.labels:
                message = f"Undefined reference `{label.name}`: no \\label of this manuscript has this name."
                yield Finding("tex.undefined-reference", "warning", label.start, label.end, message, label.name)


def _duplicate_labels(project: Project, path: Path, file: TexFile) -> Iterator[Finding]:
    for label in file.labels:
        places = project.labels.get(label.name, [])
        others = [p for p in places if (p.path, p.start) != (path, label.start)]
        if others:
            related = tuple((place, "also set here") for place in others[:5])
            message = f"The label `{label.name}` is set {len(places)} times."
            yield Finding("tex.duplicate-label", "warning", label.start, label.end, message, label.name, related)


def _missing_files(project: Project, path: Path) -> Iterator[Finding]:
    for missing in project.missing:
        include = missing.include
        if missing.path == path and not include.open and project.rooted:
            what = "bibliography" if include.kind == "bibliography" else "file"
            message = (
                f"The {what} `{include.name}` was not found near the manuscript; "
                "undefined keys and labels are not reported while it is missing."
            )
            yield Finding("tex.missing-file", "information", include.start, include.end, message, include.name)


def check_bib(project: Project, path: Path) -> list[Finding]:
    """Findings in one .bib file, seen together with the others of its project."""
    bib = project.bibs.get(path)
    if bib is None:
        return []
    found = [*_broken(bib), *_duplicate_keys(project, path, bib), *_duplicate_papers(bib)]
    for entry in bib.entries:
        found += _missing_fields(entry)
        found += _preprint(entry)
        found += _dangling(project, entry)
    return sorted(found, key=lambda one: one.start)


def _broken(bib: BibFile) -> Iterator[Finding]:
    for entry in (*bib.entries, *bib.specials):
        if entry.kind == "comment" or (entry.kind == "preamble" and entry.body.closed):
            continue
        if not entry.key and entry.kind not in ("string", "preamble"):
            message = f"This @{entry.kind} has no key, so it can't be cited."
            yield Finding("bib.no-key", "warning", entry.start, entry.key_range[0], message)
        problems = entry.body.problems if entry.kind not in ("string", "preamble") else ()
        for problem in problems[:3]:
            start, end = entry.start + problem.start, entry.start + problem.end
            yield Finding("bib.broken-entry", "error", start, end, f"{problem.text} (`{entry.key}`)", entry.key)


def _duplicate_keys(project: Project, path: Path, bib: BibFile) -> Iterator[Finding]:
    places: dict[str, list[tuple[Path, BibEntry]]] = {}
    for where, base, _, entry in project.entries():
        if entry.key and not (base and where == path):
            places.setdefault(entry.key.lower(), []).append((where, entry))
    for entry in bib.entries:
        same = places.get(entry.key.lower(), [])
        if not entry.key or len(same) < 2:
            continue
        if project.biblatex and all(other.key != entry.key for _, other in same if other is not entry):
            continue
        start, end = entry.key_range
        others = [(where, other) for where, other in same if other is not entry]
        related = tuple((Place(where, *other.key_range), "also defined here") for where, other in others[:5])
        message = f"Duplicate key: `{entry.key}` is defined more than once ({len(same)} times; case does not count)."
        yield Finding("bib.duplicate-key", "warning", start, end, message, entry.key, related)


def _duplicate_papers(bib: BibFile) -> Iterator[Finding]:
    first: dict[str, BibEntry] = {}
    told: set[int] = set()
    for entry in bib.entries:
        for name in same_paper_key(entry):
            other = first.setdefault(name, entry)
            if other is entry or other.key.lower() == entry.key.lower() or entry.start in told:
                continue
            if {entry.kind, other.kind} & {"inbook", "incollection", "proceedings", "set"}:
                continue
            told.add(entry.start)
            start, end = entry.key_range
            message = f"`{entry.key}` and `{other.key}` look like the same paper ({name.split(':')[0]} in common)."
            yield Finding("bib.duplicate-paper", "information", start, end, message, entry.key, (), other.key)


def _missing_fields(entry: BibEntry) -> Iterator[Finding]:
    values = entry.body.values
    wanted = REQUIRED.get(entry.kind, ())
    if not entry.key or not wanted or any(name in values for name in KEY_FIELDS[:3]) or not entry.body.closed:
        return
    for alternatives in wanted:
        names = alternatives.split("/")
        every = [*names, *(other for name in names for other in _OTHER_NAMES.get(name, ()))]
        if any(unquote(values[name]) for name in every if name in values):
            continue
        start, end = entry.key_range
        field = " or ".join(f"`{name}`" for name in names)
        message = f"The @{entry.kind} `{entry.key}` lacks the required field {field}."
        severity: Severity = "warning" if names[0] in ("author", "title", "journal", "year") else "information"
        yield Finding("bib.missing-field", severity, start, end, message, alternatives)


def _preprint(entry: BibEntry) -> Iterator[Finding]:
    for one in entry.body.fields:
        if one.name not in ("journal", "journaltitle") or "arxiv" not in one.raw.lower():
            continue
        name = plain(expand(one.raw, {}))
        year = plain(unquote(entry.body.values.get("year", "")))
        since = f" of {year}" if year else ""
        message = (
            f"The journal of `{entry.key}` is `{name}`: an arXiv preprint{since}. It may be published by now; "
            "the published version can be looked up and put in its place under the same key."
        )
        start, end = entry.start + one.value_start, entry.start + one.value_end
        yield Finding("bib.preprint", "hint", start, end, message, entry.key)
        return


def _dangling(project: Project, entry: BibEntry) -> Iterator[Finding]:
    if not any(name in entry.body.raw for name in ("crossref", "xdata", "xref", "Crossref", "CROSSREF")):
        return
    for name in key_fields(entry):
        if not project.find(name.name):
            message = f"`{entry.key}` refers to `{name.name}`, which no .bib of this manuscript has."
            yield Finding("bib.undefined-crossref", "warning", name.start, name.end, message, name.name)

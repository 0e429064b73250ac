"""Which manuscript a file belongs to, kept up to date: buffers win over the disk, only what changed is read again.

Loading happens in a worker thread, one at a time. A `Project` is frozen, so a feature works on one state to its end.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.to_thread
from lsprotocol import types

from astroresearch.lsp.text import Documents, TextDocument, path_of, range_in, uri_of
from astroresearch.manuscript import bibtex, latex
from astroresearch.manuscript.citations import CitationIndex
from astroresearch.manuscript.project import Project, build

RECHECK_S = 1.0
"How long the disk is taken to be unchanged where no watcher says so."
MAX_BYTES = 64_000_000
_STRUCTURE = re.compile(
    r"\\(?:input|include|subfile|import|subimport|documentclass|(?:no)?bibliography|add\w*bib|usepackage|begin|end|bibitem"
    r"|RequirePackage|label|iffalse|fi\b)|!\s*T[eE]X|\\jobname"
)
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", ".venv", "site-packages", "build", "dist"})


def is_bib(path: Path) -> bool:
    """Whether a file is BibTeX, by its suffix."""
    return path.suffix.lower() == ".bib"


def decode(data: bytes) -> str:
    """A file's text with its line ends as they are: UTF-8, UTF-16 with a mark, else Latin-1; the mark is dropped."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


@dataclass(slots=True)
class _File:
    """One file as it was read last; `signature` is empty for buffers and None for what is not there."""

    signature: tuple[int, int, int] | None
    text: str = ""
    tex: latex.TexFile | None = None
    bib: bibtex.BibFile | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    project: Project
    generation: int
    edits: int
    checked: float


class Projects:
    """The manuscripts around the open files."""

    def __init__(self, documents: Documents, folders: Sequence[Path]) -> None:
        self.documents = documents
        self._folders = tuple(folders)
        self._files: dict[Path, _File] = {}
        self._buffers: dict[Path, _File] = {}
        self._known: dict[Path, _Known] = {}
        self._roots: dict[Path, Path] = {}
        self._generation = 0
        self._edits = 0
        self._lock = anyio.Lock()
        self._indexing = anyio.Lock()
        self._views: dict[Path, TextDocument] = {}

    # -- events

    def set_folders(self, folders: Sequence[Path]) -> None:
        """The workspace's folders changed."""
        self._folders = tuple(folders)
        self._generation += 1

    def buffer_changed(self, uri: str) -> None:
        """A buffer was opened, edited or closed."""
        self._edits += 1
        document = self.documents.get(uri)
        path = self.path(uri)
        if document is None:
            self._buffers.pop(path, None)
            self._generation += 1
            return
        touched = document.take_touched()
        if path not in self._buffers or is_bib(path) or touched is None or any(map(_STRUCTURE.search, touched)):
            self._generation += 1

    def changed_on_disk(self, uris: Iterable[str]) -> None:
        """Files were written, made or removed by others."""
        for uri in uris:
            self._files.pop(self.path(uri), None)
        self._generation += 1

    # -- questions

    def path(self, uri: str) -> Path:
        """The file of a URI; a made-up path for buffers that have none."""
        return path_of(uri) or Path("/\u2026unsaved") / quote(uri, safe="")

    def uri(self, path: Path) -> str:
        """The URI of a file, as the editor spells it where it is open."""
        document = self.documents.by_path(path)
        return document.uri if document is not None else uri_of(path)

    async def project(self, uri: str, *, fresh: bool = True) -> Project:
        """The manuscript that a file is part of.

        Without `fresh` a state may be given that misses the newest typing in .tex files, as long as it named no files.
        """
        path = self.path(uri)
        known = self._usable(path, fresh)
        if known is not None:
            return known
        async with self._lock:
            known = self._usable(path, fresh)
            if known is not None:
                return known
            generation, edits = self._generation, self._edits
            texts = self._snapshot()
            project = await anyio.to_thread.run_sync(self._load, path, texts)
            self._known[path] = _Known(project, generation, edits, time.monotonic())
            if len(self._known) > 200:
                del self._known[next(iter(self._known))]
            return project

    async def around(self, uri: str) -> list[Project]:
        """The manuscript of a file and others that share a file with it."""
        first = await self.project(uri)
        async with self._lock:
            texts = self._snapshot()
            others = await anyio.to_thread.run_sync(self._sharing, first, texts)
        return [first, *others]

    async def index(self, project: Project) -> CitationIndex:
        """A project's entries for searching; built in a thread where it is not there yet."""
        if "index" not in project.__dict__:
            async with self._indexing:
                await anyio.to_thread.run_sync(lambda: project.index)
        return project.index

    async def warm(self, uri: str) -> None:
        """Reads a file's manuscript ahead of the first question."""
        await self.index(await self.project(uri))

    async def roots(self) -> list[Project]:
        """The manuscripts of all open files."""
        found: dict[Path, Project] = {}
        for document in self.documents:
            project = await self.project(document.uri)
            found.setdefault(project.root, project)
        return list(found.values())

    # -- positions

    def view(self, path: Path, text: str) -> TextDocument:
        """A document for converting offsets of this very text: the buffer if it is the same, else a copy."""
        document = self.documents.by_path(path)
        if document is not None and document.text == text:
            return document
        view = self._views.get(path)
        if view is None or view.text is not text:
            view = TextDocument(self.uri(path), text, encoding=self.documents.encoding)
            self._views[path] = view
            if len(self._views) > 8:
                del self._views[next(iter(self._views))]
        return view

    def text(self, project: Project, path: Path) -> str:
        """A file's text as the project saw it."""
        if path in project.tex:
            return project.tex[path].text
        return project.bibs[path].text if path in project.bibs else ""

    def location(self, project: Project, path: Path, start: int, end: int) -> types.Location:
        """A span of a file as the editor wants it."""
        text = self.text(project, path)
        document = self.documents.by_path(path)
        if document is not None and document.text == text:
            return types.Location(document.uri, document.range(start, end))
        return types.Location(self.uri(path), range_in(text, start, end, self.documents.encoding))

    # -- below: event loop

    def _usable(self, path: Path, fresh: bool) -> Project | None:
        known = self._known.get(path)
        if known is None or known.generation != self._generation or time.monotonic() - known.checked > RECHECK_S:
            return None
        return known.project if not fresh or known.edits == self._edits else None

    def _snapshot(self) -> dict[Path, str]:
        texts = {self.path(document.uri): document.text for document in self.documents}
        for path in [p for p in self._buffers if p not in texts]:
            del self._buffers[path]
        return texts

    # -- below: worker thread, under the lock

    def _load(self, path: Path, texts: Mapping[Path, str]) -> Project:
        reader = _Reader(self._files, self._buffers, texts)
        project = self._load_with(path, reader)
        if project.names_no_bib:
            project = self._with_nearby(project, path, reader)
        before = self._known.get(path)
        if before is not None:
            _carry_over(before.project, project)
        return project

    def _load_with(self, path: Path, reader: _Reader) -> Project:
        if not is_bib(path):
            root, sure = self._follow(path, reader)
            if sure:
                return build(root, reader.tex, reader.bib, also=(path,))
        root_before = self._roots.get(path)
        if root_before is not None:
            project = build(root_before, reader.tex, reader.bib)
            if _holds(project, path):
                return project
        for candidate in self._candidates(path, reader):
            project = build(candidate, reader.tex, reader.bib)
            if _holds(project, path):
                self._roots[path] = candidate
                return project
        if is_bib(path):
            bib = reader.bib(path)
            return Project(path, {}, {path: bib} if bib is not None else {}, rooted=False)
        return build(path, reader.tex, reader.bib, rooted=False)

    def _with_nearby(self, project: Project, path: Path, reader: _Reader) -> Project:
        """A draft that names no .bib yet still gets the keys of those beside it."""
        folders = dict.fromkeys(
            [path.parent, project.root.parent, *(f for f in self._folders if path.is_relative_to(f))]
        )
        files = [p for folder in folders for p in _files(folder, (".bib",))][:20]
        files += [p for p in reader.texts if is_bib(p) and p.parent in folders and p not in files]
        bibs = {p: bib for p in files if (bib := reader.bib(p)) is not None}
        return replace(project, bibs=bibs, guessed=True) if bibs else project

    def _follow(self, path: Path, reader: _Reader) -> tuple[Path, bool]:
        """Root by magic comment, subfiles class or own class; False where nothing says so."""
        seen: set[Path] = set()
        while path not in seen:
            seen.add(path)
            file = reader.tex(path)
            if file is None:
                return path, False
            named = file.root or (file.class_options if file.document_class == "subfiles" else "")
            target = _existing(path.parent, named.split(",")[0].strip(), reader) if named else None
            if target is not None:
                path = target
                continue
            return path, file.is_root
        return path, True

    def _candidates(self, path: Path, reader: _Reader) -> Iterator[Path]:
        """Roots near a file: in its folder, the folders above, then anywhere in the workspace."""
        seen: set[Path] = set()
        for listed in (self._near(path, reader), self._everywhere(path)):
            for candidate in listed:
                if candidate in seen or candidate == path:
                    continue
                seen.add(candidate)
                file = reader.tex(candidate)
                if file is not None and file.is_root:
                    yield candidate

    def _near(self, path: Path, reader: _Reader) -> Iterator[Path]:
        yield from (p for p in reader.texts if p.suffix.lower() in (".tex", ".ltx") and p.parent == path.parent)
        top = next((f for f in self._folders if path.is_relative_to(f)), None)
        folder = path.parent
        for _ in range(12 if top else 3):
            yield from _files(folder, (".tex", ".ltx"))
            if folder == top or folder == folder.parent:
                return
            folder = folder.parent

    def _everywhere(self, path: Path) -> Iterator[Path]:
        top = next((f for f in self._folders if path.is_relative_to(f)), None)
        seen = 0
        for here, folders, files in os.walk(top) if top else ():
            folders[:] = sorted(d for d in folders if not d.startswith(".") and d not in _SKIPPED)
            for name in sorted(files):
                if name.lower().endswith((".tex", ".ltx")):
                    yield Path(here) / name
            seen += len(files) + len(folders)
            if seen > 20_000:
                return

    def _sharing(self, first: Project, texts: Mapping[Path, str]) -> list[Project]:
        reader = _Reader(self._files, self._buffers, texts)
        files = {*first.tex, *first.bibs}
        others: list[Project] = []
        for candidate in self._candidates(first.root, reader):
            if candidate in first.tex or len(others) >= 20:
                continue
            project = build(candidate, reader.tex, reader.bib)
            if files & {*project.tex, *project.bibs}:
                others.append(project)
        return others


class _Reader:
    """What one load sees: each file is looked at once, and read only if it changed."""

    def __init__(self, files: dict[Path, _File], buffers: dict[Path, _File], texts: Mapping[Path, str]) -> None:
        self._files = files
        self._buffers = buffers
        self.texts = texts
        self._checked: set[Path] = set()

    def tex(self, path: Path) -> latex.TexFile | None:
        """A file as LaTeX; None if it is not there."""
        file = self._file(path)
        if file is None:
            return None
        if file.tex is None:
            file.tex = latex.scan(file.text)
        return file.tex

    def bib(self, path: Path) -> bibtex.BibFile | None:
        """A file as BibTeX; None if it is not there."""
        file = self._file(path)
        if file is None:
            return None
        if file.bib is None or file.bib.text != file.text:
            file.bib = bibtex.scan(file.text, file.bib)
        return file.bib

    def _file(self, path: Path) -> _File | None:
        text = self.texts.get(path)
        if text is not None:
            return self._buffer(path, text)
        file = self._files.get(path)
        if path not in self._checked:
            self._checked.add(path)
            file = self._read(path, file)
            self._files[path] = file
        return file if file is not None and file.signature is not None else None

    def _buffer(self, path: Path, text: str) -> _File:
        file = self._buffers.get(path)
        if file is None:
            disk = self._files.get(path)
            file = _File((), bib=disk.bib if disk is not None else None)  # type: ignore[arg-type]
            self._buffers[path] = file
        if file.text is not text:
            file.text, file.tex = text, None
        return file

    @staticmethod
    def _read(path: Path, before: _File | None) -> _File:
        try:
            stat = path.stat()
            signature = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if before is not None and before.signature == signature:
                return before
            if stat.st_size > MAX_BYTES or not path.is_file():
                return _File(None)
            return _File(signature, decode(path.read_bytes()), bib=before.bib if before is not None else None)
        except (OSError, ValueError):
            return _File(None)


def _holds(project: Project, path: Path) -> bool:
    return path in project.tex or path in project.bibs


def _existing(folder: Path, name: str, reader: _Reader) -> Path | None:
    for ending in ("", ".tex"):
        candidate = Path(os.path.normpath(folder / (name + ending)))
        if reader.tex(candidate) is not None:
            return candidate
    return None


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    try:
        names = sorted(n for n in os.listdir(folder) if n.lower().endswith(endings))
    except OSError:
        return []
    # What is called main is looked at first.
    names.sort(key=lambda n: n.lower() not in ("main.tex", "ms.tex", "paper.tex", "thesis.tex"))
    return [folder / n for n in names[:300]]


def _carry_over(old: Project, new: Project) -> None:
    """What was worked out from the same .bib files is kept."""
    same = list(old.bibs.items()) == list(new.bibs.items()) and not old.embedded and not new.embedded
    if same:
        for name in ("index", "strings", "_folded"):
            if name in old.__dict__:
                new.__dict__[name] = old.__dict__[name]

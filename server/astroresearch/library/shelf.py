"""Papers' files: fetching, importing, reading and removing them (fits tools.ports.PaperFiles)."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
from rapidfuzz import fuzz

from astroresearch import crash
from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.passage import PageText
from astroresearch.errors import AstroResearchError, DocumentError, InvalidInput, NotFound, StoreUnavailable
from astroresearch.library.index import Indexer
from astroresearch.library.merge import title_key
from astroresearch.library.parse import ParsedDocument, PdfParser, refusal
from astroresearch.store.papers import PaperStore
from astroresearch.store.passages import PassageStore

Progress = Callable[[str, float | None], None]

FILE = "paper.pdf"
LOOK_UPS = 2
"Identifiers of the first page that are looked up at most."
LOOK_UP_S = 20.0
SAME_TITLE = 92.0
"Of 100: how much of a record's title must stand on the first page for the file to be that paper."


class Downloads(Protocol):
    """library.acquire.Acquirer."""

    async def download_file(self, paper: Paper, *, progress: Progress | None = None) -> Path:
        """`<papers>/<paper id>/paper.pdf`, complete."""
        ...


class Records(Protocol):
    """library.search.Catalogue."""

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        """A paper's record by any identifier."""
        ...


class Shelf:
    """The files of the library, one folder a paper."""

    def __init__(
        self,
        data: Path,
        papers: PaperStore,
        passages: PassageStore,
        parser: PdfParser,
        indexer: Indexer,
        catalogue: Records,
        acquirer: Downloads,
    ) -> None:
        self._data = data
        self._folder = data / "papers"
        self._papers = papers
        self._passages = passages
        self._parser = parser
        self._indexer = indexer
        self._catalogue = catalogue
        self._acquirer = acquirer

    async def download(self, paper: str, *, progress: Progress | None = None) -> Paper:
        """Fetches the PDF from the built-in hosts; does nothing if it is here.

        Raises:
            ServiceError, DocumentError, NotFound: No channel gave a PDF, or there is no such paper.
        """
        record = await self._catalogue.get(paper)
        stored = record if record.id else await self._papers.upsert(record)
        if stored.file and await _is_file(self._data / stored.file):
            return stored
        path = await self._acquirer.download_file(stored, progress=progress)
        relative = path.relative_to(self._data).as_posix()
        return await self._papers.upsert(replace(stored, state="downloaded", state_reason="", file=relative))

    async def import_file(self, path: Path, *, progress: Progress | None = None, record: Paper | None = None) -> Paper:
        """Copies a file of the user's into the library and parses it; a file that is here already is not copied again.

        Args:
            path: The PDF. It is never changed.
            progress: Told what happens.
            record: What is known of the paper; without it the first page is searched for an identifier, and the record of
                that identifier is taken if its title stands on the page too. What is not found stays empty.

        Raises:
            DocumentError: The file can't be used; nothing is stored then.
        """
        draft = await anyio.to_thread.run_sync(self._copy_in, path)
        try:
            document = await self._parser.parse(draft, progress=progress)
            known = await self._papers.find(Identifiers(file_hash=document.file_hash))
            ready = next((p for p in known if p.state == "searchable" and p.file), None)
            if ready is not None and await _is_file(self._data / ready.file):
                return ready
            base = record or Paper("", document.title or path.stem, sources=("file",))
            named = replace(base, identifiers=replace(base.identifiers, file_hash=document.file_hash))
            with anyio.CancelScope(shield=True):  # a cancel leaves the whole paper or nothing
                stored = await self._papers.upsert(named)
                target = self._folder / stored.id / FILE
                await anyio.to_thread.run_sync(_promote, draft, target)
                shelved = replace(stored, file=target.relative_to(self._data).as_posix())
                done = await self._indexer.add(shelved, document)
        except DocumentError as error:
            raise _for(error, draft, path) from None
        finally:
            with anyio.CancelScope(shield=True):  # a thread is not even started in a cancelled scope
                await anyio.to_thread.run_sync(lambda: draft.unlink(missing_ok=True))
        return done if record is not None else await self._identify(done, document)

    async def parse(self, paper: str, *, progress: Progress | None = None) -> Paper:
        """Text, passages and full-text index of a paper whose file is here; vectors follow in the background.

        Raises:
            NotFound: No such paper, or its file is not here.
            DocumentError: The file can't be used; the paper's state says so too.
        """
        record = await self._record(paper)
        path = self._data / record.file
        if not record.file or not await _is_file(path):
            raise NotFound(f"The file of `{record.id}` is not in the library.", hint="Download or import it first.")
        try:
            document = await self._parser.parse(path, progress=progress)
        except DocumentError as error:
            named = _for(error, path, Path(record.title[:80] or record.id))
            await self._papers.upsert(replace(record, state="failed", state_reason=str(named)))
            raise named from None
        hashed = replace(record.identifiers, file_hash=document.file_hash)
        return await self._indexer.add(replace(record, identifiers=hashed), document)

    async def text(self, paper: str, *, page: int | None = None) -> Sequence[PageText]:
        """The text of all pages, or of one, without what people can't see.

        Raises:
            NotFound: No such paper or text.
            InvalidInput: It has no such page.
        """
        record = await self._record(paper)
        pages = await self._passages.pages(record.id, page)
        if not pages and page is not None and record.state == "searchable":
            raise InvalidInput(
                f"There is no text of page {page}: the paper has {record.pages_count} pages.", field="page"
            )
        if not pages:
            why = f" ({record.state_reason})" if record.state_reason else ""
            raise NotFound(
                f"The text of `{record.id}` is not in the library{why}.", hint="Download and parse it first."
            )
        return [PageText(p.page, p.text) for p in pages]

    async def remove(self, paper: str) -> bool:
        """Removes a paper, its text and our copy of its file; its notes stay. False if it was not here."""
        try:
            record = await self._record(paper)
        except NotFound:
            return False
        gone = await self._papers.remove(record.id)
        folder = (self._folder / record.id).resolve()
        if folder.parent == self._folder.resolve():
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
        return gone

    async def _record(self, paper: str) -> Paper:
        found = await self._papers.get(paper)
        if found is None:
            ids = identifiers.parse(paper)
            many = await self._papers.find(ids) if ids is not None else []
            found = many[0] if many else None
        if found is None:
            raise NotFound(
                f"`{paper}` is not in the library.", hint="Find it with a search, then download or import it."
            )
        return found

    def _copy_in(self, path: Path) -> Path:
        """A private copy under a temporary name, on the disk for good."""
        handle = -1
        incoming = self._folder / ".incoming"
        try:
            about = path.stat()
            if not stat.S_ISREG(about.st_mode):  # a pipe would never open, a device never end
                raise refusal("unreadable", path, "it is no ordinary file")
            if about.st_size > self._parser.limits.max_bytes:
                raise refusal("too_large", path, str(self._parser.limits.max_bytes >> 20))
            source = path.open("rb")
        except OSError as error:
            raise refusal("unreadable", path, error.strerror or type(error).__name__) from None
        with source:
            draft = ""
            try:
                incoming.mkdir(parents=True, exist_ok=True)
                handle, draft = tempfile.mkstemp(suffix=".pdf", dir=incoming)
                with os.fdopen(handle, "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                    out.flush()
                    os.fsync(out.fileno())
            except OSError as error:
                if draft:
                    Path(draft).unlink(missing_ok=True)
                raise StoreUnavailable(
                    f"The file can't be copied into {self._folder}: {error.strerror}.", path=str(self._folder)
                ) from None
        return Path(draft)

    async def _identify(self, paper: Paper, document: ParsedDocument) -> Paper:
        """The paper with the record of an identifier on its first page, if that record's title stands there too."""
        first = document.pages[0].text[:6_000] if document.pages else ""
        stated = " ".join(value for _, value in document.metadata)
        for ids in (identifiers.find_all(first) + identifiers.find_all(stated))[:LOOK_UPS]:
            record: Paper | None = None
            try:
                with anyio.move_on_after(LOOK_UP_S):
                    record = await self._catalogue.get(identifiers.primary(ids))
            except AstroResearchError:
                continue  # offline, no token, not known there: the file's own title stays
            if record is not None and stands_on(record.title, first):
                both = identifiers.union(record.identifiers, paper.identifiers)
                return await self._papers.upsert(
                    replace(
                        record,
                        id=paper.id,
                        identifiers=both,
                        sources=tuple(dict.fromkeys((*record.sources, *paper.sources))),
                        state=paper.state,
                        state_reason=paper.state_reason,
                        file=paper.file,
                        pages_count=paper.pages_count,
                        warnings=paper.warnings,
                    )
                )
        return paper


def stands_on(title: str, page: str) -> bool:
    """Whether a title stands on a page, small differences of printing aside."""
    wanted, there = " ".join(title_key(title)), " ".join(title_key(page))
    return len(wanted) >= 12 and fuzz.partial_ratio(wanted, there) >= SAME_TITLE


def _for(error: DocumentError, path: Path, shown: Path) -> DocumentError:
    """The error about the file as the user knows it, not about our copy."""
    return DocumentError(error.message.replace(path.name, shown.name), reason=error.reason, hint=error.hint)


def _promote(draft: Path, target: Path) -> None:
    """Gives a complete file its name: it is there whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    crash.point("download.before_rename")
    os.replace(draft, target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


async def _is_file(path: Path) -> bool:
    return await anyio.Path(path).is_file()

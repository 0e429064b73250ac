"""The library's database: opening it, whatever stands in its place, and the stores over it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import apsw

from astroresearch.errors import StoreDamaged
from astroresearch.store import files
from astroresearch.store.audit import AuditStore
from astroresearch.store.cache import CacheStore
from astroresearch.store.connection import (
    Database,
    Worker,
    connect,
    has_vectors,
    patiently,
    scalar,
    transact,
    translate,
    user_version,
)
from astroresearch.store.migrations import VERSION, migrate
from astroresearch.store.notes import NoteStore
from astroresearch.store.papers import PaperStore
from astroresearch.store.passages import PassageStore
from astroresearch.store.sessions import SessionStore
from astroresearch.store.text import rows

log = logging.getLogger(__name__)

SMALL_BYTES = 32 * 1024 * 1024
"A library up to this size is checked page by page at every start; a larger one once damage was seen, and before backups."
CHANGES_EVERY_S = 0.5


class Store:
    """One library. Several processes may have it open."""

    papers: PaperStore
    passages: PassageStore
    notes: NoteStore
    sessions: SessionStore
    cache: CacheStore
    audit: AuditStore

    def __init__(self, database: Database) -> None:
        self._db = database
        self.path = database.path
        self.papers = PaperStore(database)
        self.passages = PassageStore(database)
        self.notes = NoteStore(database)
        self.sessions = SessionStore(database)
        self.cache = CacheStore(database)
        self.audit = AuditStore(database)

    @classmethod
    async def open(cls, path: Path) -> Store:
        """Opens the library at `path`, made if it is not there, brought to this version's schema (after a backup).

        Raises:
            StoreTooNew: It was written by a newer version; it is not touched.
            StoreDamaged: It is not a library or is broken; it was moved aside, the hint names it and the newest good backup.
                Opening again makes an empty library.
            StoreUnavailable: A folder, read-only, a full disk, locked.
        """
        helper = Worker("store-opener")
        try:
            real = await helper.run(lambda given_up: _ready(path, given_up))
        finally:
            await helper.aclose()
        database = Database(real, VERSION)
        database.damaged = lambda: _suspect(real)
        try:
            await database.open()
        except BaseException:
            await database.aclose()
            raise
        return cls(database)

    async def aclose(self) -> None:
        """Waits for what is running and closes the file."""
        await self._db.aclose()

    async def maintain(self) -> None:
        """Once: a backup if the newest is a day old, vectors of removed passages, SQLite's statistics.

        Meant to run in the background after the start, and again every day. Never raises a StoreError: what could not be done
        is logged, and done the next time.
        """
        helper = Worker("store-backup")
        try:
            await helper.run(lambda given_up: _maintain(self.path, given_up))
        finally:
            await helper.aclose()

    async def back_up(self) -> Path | None:
        """Makes a backup now. None if it was not possible."""
        helper = Worker("store-backup")
        try:
            return await helper.run(lambda given_up: _back_up(self.path, given_up))
        finally:
            await helper.aclose()

    async def check(self) -> list[str]:
        """What is wrong with the file and its indexes, as sentences; empty when all is well."""
        found = await self._db.search(files.problems)
        return found or await self.passages.disagreements()

    async def revision(self) -> dict[str, int]:
        """A number for each topic (papers, passages, notes, sessions) that grows with each change, whoever makes it."""
        return await self._db.read(lambda c: {r[0]: r[1] for r in rows(c, "select topic, n from revisions")})

    async def changes(self, every_s: float = CHANGES_EVERY_S) -> AsyncIterator[frozenset[str]]:
        """Yields the topics that *other* processes have changed, as soon as it notices (within `every_s`). Never ends."""
        seen = await self._foreign()
        version = await self._data_version()
        while True:
            await anyio.sleep(every_s)
            if (current := await self._data_version()) == version:
                continue
            version = current
            now = await self._foreign()
            changed = frozenset(t for t, n in now.items() if n > seen.get(t, 0))
            seen = now
            if changed:
                yield changed

    async def _data_version(self) -> int:
        return int(await self._db.read(lambda c: scalar(c, "pragma data_version")))

    async def _foreign(self) -> dict[str, int]:
        own = dict(self._db.own_changes)
        return {topic: n - own.get(topic, 0) for topic, n in (await self.revision()).items()}


def _ready(path: Path, given_up: threading.Event) -> Path:
    """Checks and migrates, in a thread; the file's real path."""
    path = Path(os.path.realpath(path.expanduser()))
    files.prepare(path)
    try:
        problem = _checked(path, given_up)
    except apsw.Error as error:
        ours = translate(error, path)
        if isinstance(ours, StoreDamaged):
            raise files.damaged(path, ours.message) from error
        if ours is None:
            raise
        raise ours from error
    if problem is not None:
        raise files.damaged(path, problem)
    return path


def _checked(path: Path, given_up: threading.Event) -> str | None:
    """Brings a file to our schema; a sentence if it is damaged."""
    connection = connect(path)
    try:
        try:
            files.verify(connection, path)
        except StoreDamaged as error:
            return error.message
        suspected = files.suspicion(path).exists()
        if (suspected or path.stat().st_size <= SMALL_BYTES) and (problem := _mended(connection, given_up)):
            return f"The library {path} is damaged: {problem}."
        files.suspicion(path).unlink(missing_ok=True)
        patiently(lambda: connection.execute("pragma journal_mode = wal"), given_up=given_up)
        if 0 < user_version(connection) < VERSION:
            files.back_up(path, given_up)
        migrate(connection, given_up=given_up)
    finally:
        connection.close()
    return None


def _mended(connection: apsw.Connection, given_up: threading.Event) -> str | None:
    """Rebuilds full-text indexes that are damaged; a sentence if more than these is."""
    found = files.problems(connection)
    if found and all("fts" in problem.lower() for problem in found):
        log.warning("A full-text index was damaged and is made anew: %s", found[0])
        try:
            transact(connection, _rebuild, given_up=given_up)
        except (apsw.CorruptError, apsw.SQLError) as error:
            return str(error)
        found = files.problems(connection)
    return found[0] if found else None


def _rebuild(connection: apsw.Connection) -> None:
    """Makes the full-text indexes anew from their texts."""
    for index in ("passages_fts", "notes_fts"):
        if scalar(connection, "select 1 from sqlite_schema where name = ?", (index,)):
            connection.execute(f"insert into {index} ({index}) values ('rebuild')")


def _suspect(path: Path) -> None:
    try:
        files.suspicion(path).touch()
    except OSError as error:
        log.warning("Could not leave a mark beside the damaged library: %s", error)


def _back_up(path: Path, given_up: threading.Event) -> Path | None:
    try:
        return files.back_up(path, given_up)
    except (apsw.Error, OSError) as error:
        log.warning("The library could not be backed up: %s (%s)", error, type(error).__name__)
        return None


def _maintain(path: Path, given_up: threading.Event) -> None:
    if files.backup_is_due(path):
        _back_up(path, given_up)
    try:
        connection = connect(path)
        try:
            transact(connection, _drop_stray_vectors, given_up=given_up)
            connection.execute("pragma optimize")
        finally:
            connection.close()
    except apsw.Error as error:
        log.warning("The library could not be tidied: %s", error)


def _drop_stray_vectors(connection: apsw.Connection) -> None:
    """Vectors stay behind when a passage is removed on a machine without sqlite-vec."""
    if not has_vectors(connection):
        return
    for (embedder,) in rows(connection, "select id from embedders"):
        connection.execute(
            f"delete from vectors_{int(embedder)} where rowid in (select rowid from vectors_{int(embedder)}"
            " except select passage_id from embedded where embedder_id = ?)",
            (embedder,),
        )

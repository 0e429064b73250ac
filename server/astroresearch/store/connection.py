"""SQLite connections, each with a thread of its own, and transactions that no cancel and no crash leaves open.

SQL never runs in the event loop. A cancelled read is interrupted; a cancelled write that has begun is carried through, so
that nobody has to guess whether it happened in halves.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import anyio
import apsw

from astroresearch.errors import StoreDamaged, StoreError, StoreTooNew, StoreUnavailable

T = TypeVar("T")
Job = Callable[[apsw.Connection], T]

BUSY_MS = 400
"How long SQLite itself waits for a lock; between two waits a writer sleeps for a random moment."
LOCK_DEADLINE_S = 20.0
"A writer gives up after this long."

_CORRUPT = (apsw.CorruptError, apsw.NotADBError)
_BUSY = (apsw.BusyError, apsw.LockedError)
_UNWRITABLE = (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError)


def connect(path: Path, *, reader: bool = False) -> apsw.Connection:
    """A connection with our settings. Raises apsw's errors; see `translate`."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    connection.set_busy_timeout(BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    for pragma in (
        "foreign_keys = on",
        "cell_size_check = on",
        "synchronous = normal",
        "journal_size_limit = 67108864",
    ):
        connection.execute(f"pragma {pragma}")
    load_vectors(connection)
    if reader:
        connection.execute("pragma cache_size = -16000")
        connection.execute("pragma query_only = on")
    return connection


def load_vectors(connection: apsw.Connection) -> bool:
    """Loads sqlite-vec, without importing its package (that would import numpy). False where there is no build of it."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        return False
    connection.enable_load_extension(True)
    try:
        connection.load_extension(str(Path(spec.origin).parent / "vec0"))
    except apsw.ExtensionLoadingError:
        return False
    finally:
        connection.enable_load_extension(False)
    return True


def translate(error: apsw.Error, path: Path) -> StoreError | None:
    """Our error for one of SQLite's, or None where it is a mistake of ours (bad SQL, a broken constraint)."""
    at = str(path)
    if isinstance(error, _CORRUPT):
        return StoreDamaged(
            f"The library {path} is damaged ({error}).",
            path=at,
            hint="Restart: the file is then checked, moved aside if it cannot be used, and the newest good backup is named.",
        )
    if isinstance(error, _BUSY):
        return StoreUnavailable(
            f"The library {path} has been locked by another program for too long.",
            path=at,
            hint="Close other programs that have this file open, then try again.",
        )
    if isinstance(error, apsw.FullError):
        return StoreUnavailable(
            f"The disk is full: nothing can be saved to {path}.", path=at, hint="Free some space, then try again."
        )
    if isinstance(error, _UNWRITABLE):
        return StoreUnavailable(
            f"The library {path} cannot be opened for writing ({error}).",
            path=at,
            hint="Check that the file and its folder exist, belong to you and are not read-only.",
        )
    if isinstance(error, (apsw.IOError, apsw.NoMemError, apsw.NoLFSError)):
        return StoreUnavailable(
            f"The library {path} could not be read or written ({error}).",
            path=at,
            hint="Check the disk and the space left on it, then try again.",
        )
    return None


class Worker:
    """One connection and the one thread that uses it; jobs run in the order in which they come."""

    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._current: object = None
        self._closed = False
        self.connection: apsw.Connection | None = None

    async def run(self, job: Callable[[threading.Event], T], *, interruptible: bool = False) -> T:
        """Runs `job(given_up)` in the thread. On a cancel a job that waits is withdrawn; one that runs is waited for,
        and interrupted if it may be."""
        if self._closed:
            raise StoreUnavailable("The library is closed.")
        loop = asyncio.get_running_loop()
        done = anyio.Event()
        given_up = threading.Event()
        key = object()

        def work() -> T:
            with self._lock:
                self._current = key
            try:
                return job(given_up)
            finally:
                with self._lock:
                    self._current = None

        def tell(_: Future[T]) -> None:
            loop.call_soon_threadsafe(done.set)

        future = self._threads.submit(work)
        future.add_done_callback(tell)
        try:
            await done.wait()
        except BaseException:
            given_up.set()
            if not future.cancel():
                if interruptible:
                    self._interrupt(key)
                with anyio.CancelScope(shield=True):
                    await done.wait()
            raise
        return future.result()

    def _interrupt(self, key: object) -> None:
        with self._lock:
            if self._current is key and self.connection is not None:
                self.connection.interrupt()

    async def aclose(self) -> None:
        """Waits for the running job and closes the connection. May be called again."""
        if self._closed:
            return

        def close(_: threading.Event) -> None:
            if self.connection is not None:
                self.connection.close()
                self.connection = None

        with anyio.CancelScope(shield=True):
            await self.run(close)
        self._closed = True
        self._threads.shutdown(wait=False)


class Database:
    """The open file: one writer and two readers, so that a long search never holds up the saving of a note."""

    def __init__(self, path: Path, version: int) -> None:
        self.path = path
        self.version = version
        self.own_changes: Counter[str] = Counter()
        "How often this process has changed each topic; see `Store.changes`."
        self.damaged: Callable[[], None] = lambda: None
        "Called once damage was seen, from a thread."
        self._writer = Worker("store-writer")
        self._reader = Worker("store-reader")
        self._searcher = Worker("store-searcher")
        self._durable = False

    async def open(self) -> None:
        """Opens the three connections of a file that is already checked and migrated."""

        def opener(worker: Worker, reader: bool) -> Callable[[threading.Event], None]:
            def run(_: threading.Event) -> None:
                worker.connection = connect(self.path, reader=reader)

            return run

        for worker in (self._writer, self._reader, self._searcher):
            await worker.run(self._guarded(opener(worker, worker is not self._writer)))

    async def aclose(self) -> None:
        """Closes the connections; the last one to close folds the write-ahead log into the file."""
        for worker in (self._searcher, self._reader, self._writer):
            await worker.aclose()

    async def read(self, job: Job[T]) -> T:
        """Runs short reads. The job sees one state of the database throughout."""
        return await self._read(self._reader, job)

    async def search(self, job: Job[T]) -> T:
        """Runs reads that may take long: searches, whole lists."""
        return await self._read(self._searcher, job)

    async def write(self, job: Job[T], *, topics: Iterable[str] = (), durable: bool = False) -> T:
        """Runs `job` as one transaction, which is rolled back whole if it raises.

        Args:
            job: Runs in the writer's thread; keep it under 50 ms.
            topics: What other windows are told has changed.
            durable: Whether the commit reaches the disk before this returns: it then survives a power cut, else a kill of
                the process only.

        Raises:
            StoreError: The database cannot be written; nothing has changed.
        """
        names = tuple(topics)

        def run(given_up: threading.Event) -> T:
            connection = _open(self._writer)
            if durable != self._durable:
                connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
                self._durable = durable
            result = transact(connection, lambda c: self._change(c, job, names), given_up=given_up)
            self.own_changes.update(names)
            return result

        return await self._writer.run(self._guarded(run))

    def _change(self, connection: apsw.Connection, job: Job[T], topics: tuple[str, ...]) -> T:
        found = user_version(connection)
        if found != self.version:
            raise StoreTooNew(
                f"The library {self.path} was updated by another version of AstroResearch while this one was running.",
                path=str(self.path),
                hint="Restart this editor's language server; update AstroResearch if it says the same again.",
            )
        result = job(connection)
        for topic in topics:
            connection.execute("update revisions set n = n + 1 where topic = ?", (topic,))
        return result

    async def _read(self, worker: Worker, job: Job[T]) -> T:
        def once() -> T:
            connection = _open(worker)
            connection.execute("begin")
            try:
                return job(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")

        def run(given_up: threading.Event) -> T:
            return patiently(once, given_up=given_up)

        return await worker.run(self._guarded(run), interruptible=True)

    def _guarded(self, job: Callable[[threading.Event], T]) -> Callable[[threading.Event], T]:
        def run(given_up: threading.Event) -> T:
            try:
                return job(given_up)
            except apsw.Error as error:
                if isinstance(error, _CORRUPT):
                    self.damaged()
                if ours := translate(error, self.path):
                    raise ours from error
                raise

        return run


def transact(
    connection: apsw.Connection,
    job: Job[T],
    *,
    given_up: threading.Event | None = None,
    deadline_s: float = LOCK_DEADLINE_S,
) -> T:
    """Runs `job` between BEGIN IMMEDIATE and COMMIT, waiting for other writers up to the deadline."""
    patiently(lambda: connection.execute("begin immediate"), given_up=given_up, deadline_s=deadline_s)
    try:
        result = job(connection)
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return result


def patiently(
    action: Callable[[], T], *, given_up: threading.Event | None = None, deadline_s: float = LOCK_DEADLINE_S
) -> T:
    """Repeats what fails for a lock, with a random pause between, up to the deadline or until the caller has gone."""
    end = time.monotonic() + deadline_s
    while True:
        try:
            return action()
        except _BUSY:
            if time.monotonic() > end or (given_up is not None and given_up.is_set()):
                raise
            time.sleep(random.uniform(0.001, 0.02))


def _open(worker: Worker) -> apsw.Connection:
    if worker.connection is None:
        raise StoreUnavailable("The library is closed.")
    return worker.connection


def user_version(connection: apsw.Connection) -> int:
    """The schema's number, 0 for a blank file."""
    return int(scalar(connection, "pragma user_version") or 0)


def scalar(connection: apsw.Connection, sql: str, values: Any = ()) -> Any:
    """The one value of a query, or None."""
    row = connection.execute(sql, values).fetchone()
    return None if row is None else row[0]


def has_vectors(connection: apsw.Connection) -> bool:
    """Whether sqlite-vec could be loaded on this machine."""
    return bool(scalar(connection, "select 1 from pragma_module_list where name = 'vec0'"))

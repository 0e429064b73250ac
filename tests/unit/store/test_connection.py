"""Transactions: whole or not at all, whatever is cancelled."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import apsw
import pytest

from astroresearch.domain.note import Note
from astroresearch.errors import StoreTooNew, StoreUnavailable
from astroresearch.store.connection import connect, scalar
from astroresearch.store.database import Store

SLOW = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 500000000) select sum(x) from c"


def test_this_sqlite_does_not_corrupt_logs_that_two_processes_write() -> None:
    """3.7.0 to 3.51.2 can (sqlite.org/wal.html, "WAL-reset bug")."""
    assert apsw.SQLITE_VERSION_NUMBER >= 3051003


def test_the_store_imports_nothing_heavy() -> None:
    script = "import sys, astroresearch.store.database as d; print(sorted({'numpy', 'sqlite_vec', 'openai'} & set(sys.modules)))"
    out = _python(script)
    assert out == "[]\n"


def _python(script: str) -> str:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, env=env).stdout


async def test_a_failing_write_changes_nothing(store: Store) -> None:
    def run(connection: apsw.Connection) -> None:
        connection.execute("insert into cache values ('k', 'v', 0, 0)")
        raise LookupError

    with pytest.raises(LookupError):
        await store._db.write(run, topics=("papers",))
    assert await store._db.read(lambda c: scalar(c, "select count(*) from cache")) == 0
    assert (await store.revision())["papers"] == 0


async def test_a_write_that_runs_when_it_is_cancelled_is_carried_through(store: Store) -> None:
    running, go_on = threading.Event(), threading.Event()

    def run(connection: apsw.Connection) -> None:
        connection.execute("insert into cache values ('k', 'v', 0, 0)")
        running.set()
        assert go_on.wait(10)

    async with anyio.create_task_group() as group:
        group.start_soon(store._db.write, run)
        await anyio.to_thread.run_sync(running.wait)
        group.cancel_scope.cancel()
        go_on.set()
    assert await store._db.read(lambda c: scalar(c, "select count(*) from cache")) == 1
    await store.notes.create(Note(id="", text="the next write works"))


async def test_a_write_that_waits_when_it_is_cancelled_never_runs(store: Store) -> None:
    running, go_on = threading.Event(), threading.Event()

    def hold(connection: apsw.Connection) -> None:
        running.set()
        assert go_on.wait(10)

    async with anyio.create_task_group() as group:
        group.start_soon(store._db.write, hold)
        await anyio.to_thread.run_sync(running.wait)
        with anyio.move_on_after(0):
            await store.notes.create(Note(id="", text="withdrawn"))
        go_on.set()
    assert await store.notes.count() == 0


async def test_a_cancelled_search_is_interrupted(store: Store) -> None:
    started = time.monotonic()
    with anyio.move_on_after(0.1):
        await store._db.search(lambda c: scalar(c, SLOW))
    assert await store._db.search(lambda c: scalar(c, "select 1")) == 1
    assert time.monotonic() - started < 5  # it would take half a minute


async def test_a_long_search_does_not_hold_up_a_note(store: Store) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(store._db.search, lambda c: scalar(c, SLOW))
        note = await store.notes.create(Note(id="", text="meanwhile"))
        assert await store.notes.get(note.id) == note
        group.cancel_scope.cancel()


async def test_a_lock_held_for_too_long_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    other = connect(store.path)
    other.execute("begin immediate")
    with anyio.move_on_after(0.5) as scope:
        await store.notes.create(Note(id="", text="cancelled while it waits for the lock"))
    assert scope.cancelled_caught
    monkeypatch.setattr("astroresearch.store.connection.transact.__kwdefaults__", {"given_up": None, "deadline_s": 0.1})
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.notes.create(Note(id="", text="x"))
    other.execute("rollback")
    await store.notes.create(Note(id="", text="y"))
    assert await store.notes.count() == 1


async def test_a_write_waits_for_another_writer(store: Store) -> None:
    other = connect(store.path)
    other.execute("begin immediate")

    async with anyio.create_task_group() as group:
        group.start_soon(store.notes.create, Note(id="", text="patient"))
        await anyio.sleep(0.05)
        other.execute("rollback")
    assert await store.notes.count() == 1


async def test_a_library_that_was_updated_meanwhile_is_left_alone(store: Store) -> None:
    connect(store.path).execute("pragma user_version = 99")
    with pytest.raises(StoreTooNew, match="updated"):
        await store.notes.create(Note(id="", text="x"))
    assert await store.notes.count() == 0


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "library.db")
    await store.aclose()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.notes.count()


async def test_notes_are_synced_to_the_disk_and_events_are_not(store: Store) -> None:
    def mode(connection: apsw.Connection) -> int:
        return int(scalar(connection, "pragma synchronous"))

    assert await store._db.write(mode, durable=True) == 2
    assert await store._db.write(mode) == 1
    assert await store._db.write(mode, durable=True) == 2


async def test_other_programs_can_read_the_library(store: Store) -> None:
    """The standard library's SQLite is another copy: only in another process."""
    await store.notes.create(Note(id="", text="x"))
    script = f"import sqlite3; print(sqlite3.connect({str(store.path)!r}).execute('select text from notes').fetchall())"
    assert _python(script) == "[('x',)]\n"

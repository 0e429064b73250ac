"""Opening, schemas, backups, and what other windows notice."""

from __future__ import annotations

import os
import time
from pathlib import Path

import anyio
import apsw
import pytest

from astroresearch.domain.note import Note
from astroresearch.domain.paper import Paper
from astroresearch.store import files
from astroresearch.store.connection import connect, scalar, user_version
from astroresearch.store.database import Store
from astroresearch.store.migrations import STEPS, VERSION, migrate


def schema(path: Path) -> dict[str, str]:
    connection = connect(path)
    try:
        return {
            f"{t} {n}": " ".join((s or "").split())
            for t, n, s in connection.execute("select type, name, sql from sqlite_schema")
        }
    finally:
        connection.close()


def at_version(path: Path, version: int) -> None:
    connection = connect(path)
    connection.execute("pragma journal_mode = wal")
    migrate(connection, to=version)
    connection.close()


async def test_a_blank_library_is_made_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "library.db"
    store = await Store.open(path)
    assert await store.check() == []
    assert await store.revision() == {"papers": 0, "passages": 0, "notes": 0, "sessions": 0}
    await store.aclose()
    assert [p.name for p in path.parent.iterdir()] == ["library.db"]
    assert files.backups_of(path) == []


@pytest.mark.parametrize("version", range(VERSION + 1))
async def test_every_older_schema_becomes_the_same(tmp_path: Path, version: int) -> None:
    old, blank = tmp_path / "old" / "library.db", tmp_path / "blank" / "library.db"
    for folder in (old.parent, blank.parent):
        folder.mkdir()
    at_version(old, version)
    for path in (old, blank):
        await (await Store.open(path)).aclose()
    assert schema(old) == schema(blank)
    assert len(files.backups_of(old)) == (1 if 0 < version < VERSION else 0)
    for backup in files.backups_of(old):
        connection = connect(backup)
        assert user_version(connection) == version
        connection.close()


async def test_a_migration_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    at_version(path, 3)
    connection = connect(path)
    connection.execute(
        "insert into notes values (1, 'n', 'old words', '[]', '', '', 0, '', 0, '', '', 'user', '', 'c', 'u')"
    )
    connection.close()
    store = await Store.open(path)
    assert [n.text for n in await store.notes.search("words")] == ["old words"]
    await store.aclose()


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(connection: apsw.Connection) -> None:
        connection.execute("create table half (x)")
        raise LookupError

    monkeypatch.setattr("astroresearch.store.migrations.STEPS", (*STEPS[:2], bad))
    connection = connect(tmp_path / "library.db")
    with pytest.raises(LookupError):
        migrate(connection, to=3)
    assert user_version(connection) == 2
    assert scalar(connection, "select count(*) from sqlite_schema where name = 'half'") == 0
    monkeypatch.undo()
    assert migrate(connection) == [s.__name__ for s in STEPS[2:]]
    assert migrate(connection) == []


async def test_a_backup_is_made_once_a_day_and_rotated(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    store = await Store.open(path)
    await store.notes.create(Note(id="", text="kept"))
    await store.maintain()
    await store.maintain()
    (backup,) = files.backups_of(path)
    assert files.is_good(backup)
    assert files.newest_good_backup(path) == backup
    os.utime(backup, (time.time() - 90_000,) * 2)
    await store.maintain()
    assert len(files.backups_of(path)) == 2
    for _ in range(5):
        await store.back_up()
    assert len(files.backups_of(path)) == files.KEEP_BACKUPS
    await store.aclose()
    connection = connect(files.backups_of(path)[0])
    assert scalar(connection, "select text from notes") == "kept"
    connection.close()


async def test_a_backup_shows_one_state_while_others_write(store: Store) -> None:
    async def write() -> None:
        for n in range(50):
            await store.notes.create(Note(id="", text=f"note {n}" * 1000))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        backups = [await store.back_up() for _ in range(3)]
    assert all(b and files.is_good(b) for b in backups)


async def test_a_broken_backup_is_not_offered(store: Store) -> None:
    good = await store.back_up()
    newest = await store.back_up()
    assert good
    assert newest
    newest.write_bytes(newest.read_bytes()[:5000])
    assert files.newest_good_backup(store.path) == good


async def test_what_another_window_changes_is_noticed(store: Store) -> None:
    seen: list[frozenset[str]] = []
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            async for topics in store.changes(every_s=0.02):
                seen.append(topics)
                if "papers" in topics:
                    group.cancel_scope.cancel()

        group.start_soon(watch)
        await store.notes.create(Note(id="", text="my own change"))
        other = await Store.open(store.path)
        try:
            with anyio.fail_after(20):
                while not seen:
                    await other.notes.create(Note(id="", text="theirs"))
                    await anyio.sleep(0.01)
                await store.notes.create(Note(id="", text="mine again"))
                await other.papers.upsert(Paper(id="", title="theirs"))
                await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await other.aclose()
    assert set().union(*seen) == {"notes", "papers"}


async def test_vectors_that_lost_their_passage_are_tidied_away(store: Store) -> None:
    connection = connect(store.path)
    connection.execute("insert into embedders values (1, 'm', 1)")
    connection.execute("create virtual table vectors_1 using vec0 (embedding float[1] distance_metric=cosine)")
    connection.execute("insert into vectors_1 (rowid, embedding) values (7, x'0000803f')")
    assert await store.check() == ["The vectors of m do not fit the passages."]
    await store.maintain()
    assert await store.check() == []

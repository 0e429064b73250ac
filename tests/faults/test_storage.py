"""What may stand where the library should be, and a disk that fails: one sentence, nothing deleted, nothing lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from astroresearch.domain.note import Note
from astroresearch.errors import StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from astroresearch.store import database, files
from astroresearch.store.connection import connect
from astroresearch.store.database import Store
from tests.faults.acknowledged import command, environment


async def filled(path: Path, notes: int = 300) -> Path:
    """A closed library with notes and, beside it, a backup."""
    store = await Store.open(path)
    for n in range(notes):
        await store.notes.create(Note(id=f"n{n}", text=f"note {n} " + "cooling flow " * 60))
    await store.back_up()
    await store.aclose()
    return path


def asides(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-*"))


def plain(error: StoreError, path: Path) -> None:
    """One sentence for people with the file, and what to do."""
    assert str(path) in error.message
    assert error.hint
    assert "Traceback" not in str(error)
    assert error.path == str(path)


async def opens_empty(path: Path) -> None:
    store = await Store.open(path)
    assert await store.notes.count() == 0
    assert await store.check() == []
    await store.aclose()


async def test_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(StoreUnavailable, match="is a folder") as error:
        await Store.open(path)
    plain(error.value, path)
    assert (path / "inside").is_dir()


async def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    path = tmp_path / "data" / "library.db"
    with pytest.raises(StoreUnavailable, match="cannot be made") as error:
        await Store.open(path)
    plain(error.value, path)


async def test_zero_bytes_are_a_new_library(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.touch()
    await opens_empty(path)
    assert asides(path) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!DOCTYPE html><html><body>Please log in</body></html>" * 40, "web page"),
        (b"\0" * 8192, "only zeros"),
        (random.Random(1).randbytes(20_000), "no database"),
        (b"x", "no database"),
        (b"SQLite format 3\0", "no database"),
        (b"SQLite format 3\0" + b"\xff" * 8000, "another program"),
    ],
)
async def test_what_is_no_database_is_moved_aside(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "library.db"
    path.write_bytes(content)
    with pytest.raises(StoreDamaged, match=words) as error:
        await Store.open(path)
    plain(error.value, path)
    (aside,) = asides(path)
    assert aside.read_bytes() == content
    assert str(aside) in error.value.hint
    assert "no backup" in error.value.hint
    await opens_empty(path)


async def test_another_programs_database_is_moved_aside_whole(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    connection = connect(path)
    connection.execute("create table bookmarks (url); insert into bookmarks values ('x')")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        await Store.open(path)
    assert asides(path)[0].read_bytes() == content


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
async def test_a_truncated_library_is_moved_aside_and_its_backup_offered(tmp_path: Path, share: float) -> None:
    path = await filled(tmp_path / "library.db")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(StoreDamaged) as error:
        await Store.open(path)
    plain(error.value, path)
    (backup,) = files.backups_of(path)
    assert str(backup) in error.value.hint
    assert len(asides(path)) == 1
    shutil.copy(backup, path)
    store = await Store.open(path)
    assert await store.notes.count() == 300
    await store.aclose()


async def test_a_broken_backup_is_passed_over(tmp_path: Path) -> None:
    path = await filled(tmp_path / "library.db")
    (good,) = files.backups_of(path)
    bad = good.with_name("library-29990101-000000-000000.db")
    bad.write_bytes(good.read_bytes()[:9000])
    path.write_bytes(b"<html>")
    with pytest.raises(StoreDamaged) as error:
        await Store.open(path)
    assert str(good) in error.value.hint


@pytest.mark.parametrize("seed", range(12))
async def test_flipped_pages(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small libraries are checked at the start, large ones once damage was met; what is left whole stays in use."""
    path = await filled(tmp_path / "library.db")
    monkeypatch.setattr(database, "SMALL_BYTES", 0 if seed % 2 else 10**9)
    rng = random.Random(seed)
    content = bytearray(path.read_bytes())
    page = rng.randrange(1, len(content) // 4096)
    content[page * 4096 : page * 4096 + 4096] = rng.randbytes(4096)
    path.write_bytes(content)
    for _ in range(2):
        try:
            store = await Store.open(path)
        except StoreDamaged as error:
            plain(error, path)
            assert asides(path)[0].read_bytes()[page * 4096 :][:4096] == content[page * 4096 :][:4096]
            return
        try:
            found = await store.notes.list(limit=1000)
            for note in found:
                await store.notes.get(note.id)
            await store.notes.search("cooling")
            await store.notes.create(Note(id="", text="one more"))
        except StoreError as error:
            plain(error, path)
            assert files.suspicion(path).exists()
            continue
        finally:
            await store.aclose()
        assert len(found) >= 300
        return
    pytest.fail("damage that was met is met again after a restart")


async def test_a_damaged_full_text_index_is_made_anew(tmp_path: Path) -> None:
    path = await filled(tmp_path / "library.db", notes=50)
    connection = connect(path)
    connection.execute("update notes_fts_data set block = x'00' where id > 10")
    connection.close()
    store = await Store.open(path)
    assert await store.check() == []
    assert len(await store.notes.search("cooling", limit=100)) == 50
    await store.aclose()
    assert asides(path) == []


@pytest.mark.parametrize("large", [False, True])
async def test_a_newer_schema_is_not_touched(tmp_path: Path, large: bool) -> None:
    path = await filled(tmp_path / "library.db", notes=3)
    connection = connect(path)
    connection.execute("pragma user_version = 77")
    connection.close()
    content, names = path.read_bytes(), sorted(os.listdir(tmp_path))
    with pytest.raises(StoreTooNew, match="newer version") as error:
        await Store.open(path)
    plain(error.value, path)
    assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == names


async def test_a_newer_schema_that_is_still_in_the_log(tmp_path: Path) -> None:
    path = await filled(tmp_path / "library.db", notes=3)
    newer = connect(path)
    newer.execute("pragma user_version = 77")
    with pytest.raises(StoreTooNew):
        await Store.open(path)
    newer.close()


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
async def test_a_log_left_behind_is_read(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    died = await anyio.run_process(
        command("scenario", path), env=environment(ASTRORESEARCH_CRASH_AT="turn.finished:2"), check=False
    )
    assert died.returncode == -signal.SIGKILL
    assert path.with_name("library.db-wal").stat().st_size > 0
    saved = died.stdout.decode().count("ack note")
    store = await Store.open(path)
    assert await store.notes.count() == saved
    await store.aclose()


@pytest.mark.parametrize("content", [b"", b"rubbish" * 1000])
async def test_a_log_of_something_else_is_harmless(tmp_path: Path, content: bytes) -> None:
    path = await filled(tmp_path / "library.db", notes=20)
    path.with_name("library.db-wal").write_bytes(content)
    store = await Store.open(path)
    assert await store.notes.count() == 20
    assert await store.check() == []
    await store.aclose()


async def test_a_log_that_outlived_its_library(tmp_path: Path) -> None:
    """The library was removed or swapped by hand while its log stayed."""
    path = await filled(tmp_path / "library.db", notes=20)
    connection = connect(path)
    connection.execute("update notes set color = 'red'")
    log = path.with_name("library.db-wal").read_bytes()
    connection.close()
    path.unlink()
    path.with_name("library.db-wal").write_bytes(log)
    await opens_empty(path)


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
async def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    real = await filled(tmp_path / "elsewhere" / "real.db", notes=3)
    link = tmp_path / "library.db"
    link.symlink_to(real)
    store = await Store.open(link)
    assert await store.notes.count() == 3
    await store.aclose()
    real.write_bytes(b"<html>")
    with pytest.raises(StoreDamaged):
        await Store.open(link)
    assert link.is_symlink()
    assert len(asides(real)) == 1
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    with pytest.raises(StoreError):
        await Store.open(loop)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
@pytest.mark.parametrize("mode", ["file", "folder", "unreadable"])
async def test_read_only(tmp_path: Path, mode: str) -> None:
    path = await filled(tmp_path / "data" / "library.db", notes=3)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == path.owner() and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    if mode == "file":
        path.chmod(0o444)
        path.parent.chmod(0o777)
    elif mode == "folder":
        path.chmod(0o666)
        path.parent.chmod(0o555)
    else:
        path.chmod(0o000)
        path.parent.chmod(0o777)
    try:
        done = await anyio.run_process(command("open", path, "nobody"), env=environment(), check=False)
    finally:
        path.parent.chmod(0o755)
        path.chmod(0o644)
    out = done.stdout.decode()
    assert out.startswith("error StoreUnavailable"), out + done.stderr.decode()
    assert str(path) in out
    assert "Traceback" not in done.stderr.decode()
    assert asides(path) == []
    store = await Store.open(path)
    assert await store.notes.count() == 3
    await store.aclose()


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("limit", [0, 4096, 60_000, 100_000])
async def test_a_file_that_may_not_grow(tmp_path: Path, limit: int) -> None:
    """As on a full disk or over a quota: an error, never a note that is said to be saved and is not."""
    path = tmp_path / "library.db"
    done = await anyio.run_process(command("open", path, "limit", str(limit)), env=environment(), check=False)
    out = done.stdout.decode()
    assert out.startswith(("error StoreUnavailable", "ok")), out + done.stderr.decode()
    store = await Store.open(path)
    assert await store.notes.count() == (1 if out == "ok\n" else 0)
    assert await store.check() == []
    await store.aclose()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small tmpfs")
async def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "library.db"
    store = await Store.open(path)
    saved: list[str] = []

    async def until_full() -> None:
        for _ in range(500):
            saved.append((await store.notes.create(Note(id="", text="a note of some length " * 800))).id)

    with pytest.raises(StoreUnavailable) as error:
        await until_full()
    plain(error.value, path)
    assert 20 < len(saved) < 500
    assert await store.back_up() is None
    await store.maintain()
    assert await store.notes.count() == len(saved)
    await store.aclose()
    store = await Store.open(path)
    assert {n.id for n in await store.notes.list(limit=1000)} >= set(saved)
    assert await store.check() == []
    await store.aclose()


async def test_the_original_of_a_second_accident_is_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    for n in range(3):
        path.write_bytes(b"<html>%d" % n)
        with pytest.raises(StoreDamaged):
            await Store.open(path)
    assert {p.read_bytes() for p in asides(path)} == {b"<html>0", b"<html>1", b"<html>2"}

"""The database as a file: what may stand in its place, what is done about it, and its backups.

A file that cannot be used is moved aside, never deleted; a file from a newer version is not touched at all.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import apsw

from astroresearch import crash
from astroresearch.errors import StoreDamaged, StoreTooNew, StoreUnavailable
from astroresearch.store.connection import connect, scalar, user_version
from astroresearch.store.migrations import APPLICATION_ID, VERSION

MAGIC = b"SQLite format 3\0"
KEEP_BACKUPS = 5
BACKUP_EVERY_S = 24 * 3600.0
_STEP_PAGES = 2000


def backups_of(path: Path) -> list[Path]:
    """The backups of a library, newest first."""
    return sorted(folder_of_backups(path).glob(f"{path.stem}-*.db"), reverse=True)


def folder_of_backups(path: Path) -> Path:
    """Where they lie: beside the library."""
    return path.parent / "backups"


def prepare(path: Path) -> None:
    """Looks at what stands at `path` before SQLite does. Makes its folder.

    Raises:
        StoreUnavailable: It is a folder, or its folder cannot be made.
        StoreTooNew: It was written by a newer version; it is left as it is.
        StoreDamaged: It is no database of ours; it has been moved aside.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"The folder of the library {path} cannot be made ({error.strerror}: {error.filename}).",
            path=str(path),
            hint="Check that every part of this path is a folder in which you may write.",
        ) from error
    if path.is_dir():
        raise StoreUnavailable(
            f"{path} is a folder, so the library cannot be kept there.",
            path=str(path),
            hint="Move the folder away; the library is then made anew, or put its database file back.",
        )
    if path.exists() and not path.is_file():
        raise StoreUnavailable(
            f"{path} is not a file, so the library cannot be kept there.", path=str(path), hint="Move it away."
        )
    _look(path)


def _look(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(100)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreUnavailable(
            f"The library {path} cannot be read ({error.strerror}).",
            path=str(path),
            hint="Check that the file belongs to you.",
        ) from error
    if not header or _has_log(path):  # blank, or SQLite has to put it together from its log first
        return
    if len(header) < 100 or not header.startswith(MAGIC):
        raise damaged(path, f"{path} is not a library of AstroResearch: {_what(header)}.")
    version = int.from_bytes(header[60:64], "big")
    application = int.from_bytes(header[68:72], "big")
    if application not in (0, APPLICATION_ID) or (application == 0 and version > 0):
        raise damaged(path, f"{path} is the database of another program.")
    if version > VERSION:
        raise too_new(path, version)
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    if header[24:28] == header[92:96] and size < page * pages:
        raise damaged(path, f"The library {path} is cut off: {size:,} bytes of {page * pages:,} are left.")


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def _what(header: bytes) -> str:
    text = header.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "it is a web page"
    if not header.strip(b"\0"):
        return "it holds only zeros"
    return "it is no database"


def too_new(path: Path, version: int) -> StoreTooNew:
    """The error for a schema that this version does not know."""
    return StoreTooNew(
        f"The library {path} was written by a newer version of AstroResearch (its schema is {version}, this version knows"
        f" {VERSION}).",
        path=str(path),
        hint="Update AstroResearch. The file has not been touched.",
    )


def verify(connection: apsw.Connection, path: Path) -> None:
    """Looks into an open database: is it ours, and not too new?

    Raises:
        StoreTooNew: See there.
        StoreDamaged: It is another program's.
    """
    application = scalar(connection, "pragma application_id")
    version = user_version(connection)
    tables = scalar(connection, "select count(*) from sqlite_schema")
    if application not in (0, APPLICATION_ID) or (application == 0 and (version or tables)):
        raise StoreDamaged(f"{path} is the database of another program.", path=str(path))
    if version > VERSION:
        raise too_new(path, version)


def problems(connection: apsw.Connection) -> list[str]:
    """What SQLite's own check finds; empty for a whole file."""
    try:
        found = [str(row[0]) for row in connection.execute("pragma quick_check(5)")]
    except apsw.Error as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def damaged(path: Path, message: str) -> StoreDamaged:
    """Moves the file (with its log) aside and says where it is and which backup is good."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{count}")
    try:
        os.replace(path, aside)
        for tail in ("-wal", "-shm", "-journal"):
            if path.with_name(path.name + tail).exists():
                os.replace(path.with_name(path.name + tail), aside.with_name(aside.name + tail))
    except OSError as error:
        return StoreDamaged(message, path=str(path), hint=f"It could not be moved aside either ({error.strerror}).")
    suspicion(path).unlink(missing_ok=True)
    good = newest_good_backup(path)
    advice = (
        f"The newest good backup is {good}: copy it to {path} to go on with it."
        if good
        else "There is no backup; the next start makes an empty library."
    )
    return StoreDamaged(message, path=str(path), hint=f"It was moved to {aside}. {advice}")


def suspicion(path: Path) -> Path:
    """A file that says: damage was seen while running, check thoroughly at the next start."""
    return path.with_name(path.name + ".check")


def newest_good_backup(path: Path) -> Path | None:
    """The newest backup that is whole and not from a newer version."""
    for backup in backups_of(path):
        if is_good(backup):
            return backup
    return None


def is_good(backup: Path) -> bool:
    """Whether a backup passes SQLite's check and is ours."""
    try:
        connection = apsw.Connection(
            f"file:{backup}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            ours = scalar(connection, "pragma application_id") == APPLICATION_ID
            return ours and user_version(connection) <= VERSION and not problems(connection)
        finally:
            connection.close()
    except apsw.Error:
        return False


def backup_is_due(path: Path) -> bool:
    """Whether the newest backup is a day old (or from the future: a clock was set back)."""
    newest = next(iter(backups_of(path)), None)
    if newest is None:
        return True
    return not 0 <= time.time() - newest.stat().st_mtime < BACKUP_EVERY_S


def back_up(path: Path, given_up: threading.Event | None = None) -> Path | None:
    """Copies the library as it is at this moment beside it and rotates the copies. Others may write meanwhile.

    Returns:
        The backup, or None where it was given up or the copy is not good.

    Raises:
        apsw.Error, OSError: It could not be written.
    """
    folder = folder_of_backups(path)
    folder.mkdir(exist_ok=True)
    if shutil.disk_usage(folder).free < 1.2 * path.stat().st_size:
        raise OSError(errno.ENOSPC, "there is not enough space for a copy", str(folder))
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    target = folder / f"{path.stem}-{stamp}.db"
    part = folder / f"{path.stem}-{stamp}.{os.getpid()}.part"
    try:
        if not _copy(path, part, given_up) or not is_good(part):
            return None
        crash.point("backup.before_rename")
        os.replace(part, target)
    finally:
        for leftover in (part, part.with_name(part.name + "-journal"), part.with_name(part.name + "-wal")):
            leftover.unlink(missing_ok=True)
    rotate(path)
    return target


def _copy(path: Path, part: Path, given_up: threading.Event | None) -> bool:
    source, copy = connect(path), apsw.Connection(str(part))
    try:
        source.execute("begin")
        scalar(source, "select count(*) from sqlite_schema")  # pins the state that is copied
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                if given_up is not None and given_up.is_set():
                    return False
                backup.step(_STEP_PAGES)
        source.execute("rollback")
        copy.execute("pragma journal_mode = delete")
    finally:
        copy.close()
        source.close()
    return True


def rotate(path: Path) -> None:
    """Keeps the newest backups, and removes what a crash left half done."""
    for old in backups_of(path)[KEEP_BACKUPS:]:
        old.unlink(missing_ok=True)
    for part in folder_of_backups(path).glob(f"{path.stem}-*.part*"):
        try:
            if time.time() - part.stat().st_mtime > 3600:
                part.unlink(missing_ok=True)
        except FileNotFoundError:
            continue

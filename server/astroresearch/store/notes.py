"""The user's notes. One that was shown as saved is on the disk."""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import apsw

from astroresearch import crash
from astroresearch.domain.note import Note, Place
from astroresearch.errors import Conflict, NotFound
from astroresearch.store.connection import Database, Job, scalar
from astroresearch.store.text import clean, dumps, now, quoted, rows

T = TypeVar("T")

CONFLICT_TAG = "conflict"
"Marks the copy that keeps a text which could not be saved in its place."

_COLUMNS = "id, text, tags, color, paper_id, page, quote, quote_verified, cite_key, place, origin, session_id, created, updated"


class NoteStore:
    """Notes, each returned only once it is durable."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def create(self, note: Note) -> Note:
        """Stores a new note; gives it an id and its times where they are empty. It survives a power cut from then on.

        Raises:
            Conflict: There is a note with this id already.
        """
        stamp = now()
        full = dataclasses.replace(
            _storable(note),
            id=note.id or new_id(),
            created=note.created or stamp,
            updated=note.updated or note.created or stamp,
        )

        def run(connection: apsw.Connection) -> Note:
            if scalar(connection, "select 1 from notes where id = ?", (full.id,)):
                raise Conflict(f"There is already a note `{full.id}`.")
            _insert(connection, full)
            crash.point("note.before_commit")
            return full

        return await self._saved(run)

    async def get(self, note_id: str) -> Note | None:
        """One note."""
        return await self._db.read(lambda c: _load(c, note_id))

    async def update(self, note: Note, expected_updated: str) -> Note:
        """Stores a new text of a note, durably.

        Args:
            note: The note as it shall be; its times are set here.
            expected_updated: The `updated` of the note that was edited.

        Raises:
            Conflict: The note was changed or removed since. Nothing is lost: this version is kept as a note of its own, tagged
                `conflict`, which the message names.
            NotFound: There was never such a note here.
        """

        note = _storable(note)

        def run(connection: apsw.Connection) -> Note | str:
            old = _load(connection, note.id)
            if old is not None and old.updated == expected_updated:
                changed = dataclasses.replace(note, created=old.created, updated=_later(old.updated))
                _update(connection, changed)
                crash.point("note.before_commit")
                return changed
            if old is None and not expected_updated:
                raise NotFound(f"There is no note `{note.id}`.")
            if old is not None and _same(old, note):
                return old
            copy = dataclasses.replace(
                note, id=new_id(), tags=tuple(dict.fromkeys((*note.tags, CONFLICT_TAG))), created=now(), updated=now()
            )
            _insert(connection, copy)
            return copy.id

        outcome = await self._saved(run)
        if isinstance(outcome, str):
            raise Conflict(
                "This note was changed in another window meanwhile.",
                hint=f"Both texts are kept: yours is now the note `{outcome}`, tagged `{CONFLICT_TAG}`.",
            )
        return outcome

    async def delete(self, note_id: str) -> bool:
        """Removes a note. False if it was not here."""

        def run(connection: apsw.Connection) -> bool:
            connection.execute("delete from notes where id = ?", (note_id,))
            return connection.changes() > 0

        return await self._db.write(run, topics=("notes",), durable=True)

    async def search(self, query: str, limit: int = 20) -> list[Note]:
        """Notes whose text, quote, tags or cite key hold all words of the query (or their beginnings); if none does, any."""
        words = [quoted(w) + "*" for w in query.split()][:32]
        if not words or limit <= 0:
            return []

        def run(connection: apsw.Connection) -> list[Note]:
            columns = ", ".join(f"n.{name.strip()}" for name in _COLUMNS.split(","))
            sql = (
                f"select {columns} from notes_fts f join notes n on n.seq = f.rowid"
                " where notes_fts match ? order by f.rank limit ?"
            )
            for joint in (" AND ", " OR "):
                if found := rows(connection, sql, (joint.join(words), limit)):
                    return [_note(*r) for r in found]
            return []

        return await self._db.search(run)

    async def count(self) -> int:
        """How many notes there are."""
        return int(await self._db.read(lambda c: scalar(c, "select count(*) from notes")))

    async def counts_by_paper(self, paper_ids: Sequence[str]) -> dict[str, int]:
        """How many notes each of these papers has; papers without any are left out."""

        def run(connection: apsw.Connection) -> dict[str, int]:
            sql = (
                "select paper_id, count(*) from notes where paper_id <> ''"
                " and paper_id in (select value from json_each(?)) group by paper_id"
            )
            return {r[0]: r[1] for r in rows(connection, sql, (json.dumps(list(paper_ids)),))}

        return await self._db.read(run)

    async def _saved(self, run: Job[T]) -> T:
        saved = await self._db.write(run, topics=("notes",), durable=True)
        crash.point("note.committed")
        return saved

    async def list(
        self, paper_id: str = "", cite_key: str = "", tag: str = "", limit: int = 100, offset: int = 0
    ) -> list[Note]:
        """Notes that fit every filter given, newest change first."""

        def run(connection: apsw.Connection) -> list[Note]:
            sql = f"""
                select {_COLUMNS} from notes where (?1 = '' or paper_id = ?1) and (?2 = '' or cite_key = ?2)
                and (?3 = '' or exists (select 1 from json_each(notes.tags) where value = ?3))
                order by updated desc, seq desc limit ?4 offset ?5
            """
            return [_note(*r) for r in rows(connection, sql, (paper_id, cite_key, tag, max(limit, 0), max(offset, 0)))]

        return await self._db.read(run)


def new_id() -> str:
    """A fresh id of a note."""
    return f"n{secrets.token_hex(6)}"


def _storable(note: Note) -> Note:
    """The note with text that the database can hold."""
    tags = tuple(clean(t) for t in note.tags)
    return dataclasses.replace(
        note, text=clean(note.text), quote=clean(note.quote), cite_key=clean(note.cite_key), tags=tags
    )


def _later(stamp: str) -> str:
    """Now, or just after `stamp` where the clock was set back: a change always changes `updated`."""
    current = now()
    if current > stamp:
        return current
    try:
        moved = datetime.fromisoformat(stamp) + timedelta(microseconds=1)
    except ValueError:
        return current + "+"
    return moved.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _same(a: Note, b: Note) -> bool:
    """Whether both say the same, times aside: a repeated save is no conflict."""
    return dataclasses.replace(a, created="", updated="") == dataclasses.replace(b, created="", updated="")


def _values(note: Note) -> tuple[object, ...]:
    place = dumps(dataclasses.asdict(note.place)) if note.place else ""
    return (
        note.id,
        note.text,
        json.dumps(note.tags, ensure_ascii=False),
        note.color,
        note.paper_id,
        note.page,
        note.quote,
        int(note.quote_verified),
        note.cite_key,
        place,
        note.origin,
        note.session_id,
        note.created,
        note.updated,
    )


def _insert(connection: apsw.Connection, note: Note) -> None:
    values = _values(note)
    connection.execute(f"insert into notes ({_COLUMNS}) values ({', '.join('?' * len(values))})", values)


def _update(connection: apsw.Connection, note: Note) -> None:
    values = _values(note)
    names = [name.strip() for name in _COLUMNS.split(",")]
    sets = ", ".join(f"{name} = ?" for name in names[1:])
    connection.execute(f"update notes set {sets} where id = ?", (*values[1:], note.id))


def _load(connection: apsw.Connection, note_id: str) -> Note | None:
    row = connection.execute(f"select {_COLUMNS} from notes where id = ?", (note_id,)).fetchone()
    return None if row is None else _note(*row)


def _note(*row: object) -> Note:
    names = [name.strip() for name in _COLUMNS.split(",")]
    values = dict(zip(names, row, strict=True))
    values["tags"] = tuple(json.loads(str(values["tags"])))
    values["quote_verified"] = bool(values["quote_verified"])
    values["place"] = Place(**json.loads(str(values["place"]))) if values["place"] else None
    return Note(**values)  # type: ignore[arg-type]

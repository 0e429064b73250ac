"""Papers and their names. One paper is one record, whatever it is called and whichever window adds it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.errors import NotFound
from astroresearch.store.connection import Database, has_vectors, scalar
from astroresearch.store.text import clean, dumps, now, rows

_RANK = {"known": 0, "downloaded": 1, "searchable": 2}
_FROM_FILE = ("state", "state_reason", "file", "pages_count", "warnings")
"Fields that say what our own file of the paper is like; a record that comes from a catalogue does not know them."


class PaperStore:
    """The papers of the library."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def upsert(self, paper: Paper) -> Paper:
        """Stores a paper and returns the record as it is now, with its id.

        A record with a name (bibcode, DOI, arXiv id, file hash) that is already here becomes part of that record: what it says
        wins, what it leaves empty stays. Records that turn out to be one paper become one, with the notes of both. A state
        never falls back: `known` over `searchable` changes the metadata only.
        """
        return await self._db.write(lambda c: store_paper(c, paper), topics=("papers",))

    async def get(self, paper_id: str) -> Paper | None:
        """By our id; that of a record which was merged into another one leads to the other."""
        return await self._db.read(lambda c: load_paper(c, paper_id))

    async def find(self, identifiers: Identifiers) -> list[Paper]:
        """Every paper that has one of these names."""

        def run(connection: apsw.Connection) -> list[Paper]:
            found = (load_paper(connection, i) for i in owners(connection, names_of(identifiers)))
            return [p for p in found if p is not None]

        return await self._db.read(run)

    async def list(self, limit: int = 100, offset: int = 0) -> list[Paper]:
        """Newest first."""

        def run(connection: apsw.Connection) -> list[Paper]:
            found = rows(
                connection,
                "select id, record, raw from papers order by added desc, id limit ? offset ?",
                (max(limit, 0), max(offset, 0)),
            )
            return [_paper(*row) for row in found]

        return await self._db.search(run)

    async def count(self) -> int:
        """How many papers there are."""
        return int(await self._db.read(lambda c: scalar(c, "select count(*) from papers")))

    async def remove(self, paper_id: str) -> bool:
        """Removes a paper with its pages, passages and vectors. Its notes stay. False if it was not here."""

        def run(connection: apsw.Connection) -> bool:
            found = resolve(connection, paper_id)
            if found is None:
                return False
            drop_text(connection, found)
            connection.execute("delete from papers where id = ?", (found,))
            return True

        return await self._db.write(run, topics=("papers", "passages"))

    async def merge(self, keep_id: str, drop_id: str) -> Paper:
        """Makes two records one: names and notes of both, the text of the one that has it.

        Raises:
            NotFound: One of them does not exist.
        """

        def run(connection: apsw.Connection) -> Paper:
            keep, drop = _require(connection, keep_id), _require(connection, drop_id)
            return keep if keep.id == drop.id else _join(connection, keep, drop)

        return await self._db.write(run, topics=("papers", "passages", "notes"))


Names = list[tuple[str, str]]


def names_of(identifiers: Identifiers) -> Names:
    """(kind, value) of each name, in the form in which they are compared."""
    out: Names = []
    for code in (identifiers.bibcode, *identifiers.alternates):
        if code:
            out.append(("bibcode", code))
    if identifiers.doi:
        out.append(("doi", identifiers.doi.lower()))
    if identifiers.arxiv:
        out.append(("arxiv", identifiers.arxiv.lower()))
    if identifiers.file_hash:
        out.append(("file", identifiers.file_hash.lower()))
    return list(dict.fromkeys(out))


def owners(connection: apsw.Connection, names: Iterable[tuple[str, str]]) -> list[str]:
    """Ids of the papers that have one of these names, in the order of the names."""
    found = (scalar(connection, "select paper_id from identifiers where kind = ? and value = ?", n) for n in names)
    return list(dict.fromkeys(i for i in found if i is not None))


def resolve(connection: apsw.Connection, paper_id: str) -> str | None:
    """The id of the record that a present or former id stands for."""
    found = scalar(connection, "select id from papers where id = ?", (paper_id,))
    if found is None:
        found = scalar(
            connection, "select paper_id from identifiers where kind = 'id' and value = ?", (paper_id.lower(),)
        )
    return None if found is None else str(found)


def load_paper(connection: apsw.Connection, paper_id: str) -> Paper | None:
    """The record of a present or former id."""
    found = resolve(connection, paper_id)
    row = connection.execute("select id, record, raw from papers where id = ?", (found,)).fetchone() if found else None
    return None if row is None else _paper(*row)


def _require(connection: apsw.Connection, paper_id: str) -> Paper:
    if (found := load_paper(connection, paper_id)) is None:
        raise NotFound(f"There is no paper `{paper_id}` in the library.")
    return found


def store_paper(connection: apsw.Connection, paper: Paper) -> Paper:
    """`PaperStore.upsert` within a transaction."""
    known = load_paper(connection, paper.id) if paper.id else None
    others = [i for i in owners(connection, names_of(paper.identifiers)) if known is None or i != known.id]
    if known is None and others:
        known = load_paper(connection, others.pop(0))
    merged = paper if known is None else _filled(known, paper)
    merged = dataclasses.replace(
        merged,
        id=known.id if known else _free_id(connection, paper.id or paper_id_for(paper)),
        added=(known.added if known else "") or paper.added or now(),
    )
    _write(connection, merged)
    for other in others:
        if (drop := load_paper(connection, other)) is not None:
            merged = _join(connection, merged, drop)
    return merged


def drop_text(connection: apsw.Connection, paper_id: str) -> None:
    """Removes a paper's pages, passages, full-text rows and vectors."""
    ids = rows(
        connection,
        "select e.embedder_id, e.passage_id from embedded e join passages p on p.id = e.passage_id where p.paper_id = ?",
        (paper_id,),
    )
    for embedder, passage in ids if has_vectors(connection) else ():
        connection.execute(f"delete from vectors_{int(embedder)} where rowid = ?", (passage,))
    connection.execute("delete from passages where paper_id = ?", (paper_id,))
    connection.execute("delete from pages where paper_id = ?", (paper_id,))


def paper_id_for(paper: Paper) -> str:
    """A short name for links and files, from the paper's best name: letters, digits, `.`, `_` and `-`."""
    names = paper.identifiers
    if names.bibcode:
        raw = names.bibcode
    elif names.arxiv:
        raw = f"arxiv-{names.arxiv}"
    elif names.doi:
        raw = f"doi-{names.doi.lower()}"
    elif names.file_hash:
        raw = f"file-{names.file_hash[:12]}"
    else:
        basis = "\n".join((paper.title, *paper.authors[:1], str(paper.year)))
        raw = f"paper-{hashlib.sha256(basis.encode('utf-8', 'replace')).hexdigest()[:12]}"
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", raw).strip(".") or "paper"
    if len(safe) > 60:
        safe = f"{safe[:48]}-{hashlib.sha256(raw.encode('utf-8', 'replace')).hexdigest()[:10]}"
    return safe


def _free_id(connection: apsw.Connection, wanted: str) -> str:
    base, count = wanted, 1
    while resolve(connection, wanted) is not None:
        count += 1
        wanted = f"{base}-{count}"
    return wanted


def _filled(old: Paper, new: Paper) -> Paper:
    """The new record; where it says nothing, the old one."""
    values: dict[str, Any] = {}
    for f in dataclasses.fields(Paper):
        mine, theirs = getattr(new, f.name), getattr(old, f.name)
        values[f.name] = theirs if mine in ("", (), 0, None, {}) else mine
    values["identifiers"] = _joined_names(old.identifiers, new.identifiers)
    values["sources"] = tuple(dict.fromkeys((*old.sources, *new.sources)))
    keeps = new.state in _RANK and _RANK[new.state] < _RANK.get(old.state, 1)
    source = old if keeps else new
    for name in _FROM_FILE:
        values[name] = getattr(source, name)
    values["file"] = source.file or old.file
    values["pages_count"] = source.pages_count or old.pages_count
    return Paper(**values)


def _joined_names(old: Identifiers, new: Identifiers) -> Identifiers:
    bibcode = new.bibcode or old.bibcode
    others = dict.fromkeys((*old.alternates, old.bibcode, *new.alternates))
    version = new.arxiv_version if new.arxiv else old.arxiv_version
    if new.arxiv == old.arxiv:
        version = max(new.arxiv_version, old.arxiv_version)
    return Identifiers(
        bibcode=bibcode,
        doi=new.doi or old.doi,
        arxiv=new.arxiv or old.arxiv,
        arxiv_version=version,
        alternates=tuple(code for code in others if code and code != bibcode),
        file_hash=new.file_hash or old.file_hash,
    )


def _write(connection: apsw.Connection, paper: Paper) -> None:
    record = {f.name: getattr(paper, f.name) for f in dataclasses.fields(Paper) if f.name not in ("id", "raw")}
    record["identifiers"] = dataclasses.asdict(paper.identifiers)
    connection.execute(
        "insert into papers (id, title, year, state, record, raw, added, updated) values (?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (id) do update set title = excluded.title, year = excluded.year, state = excluded.state,"
        " record = excluded.record, raw = excluded.raw, added = excluded.added, updated = excluded.updated",
        (
            paper.id,
            clean(paper.title),
            paper.year,
            paper.state,
            dumps(record),
            dumps(dict(paper.raw)),
            paper.added,
            now(),
        ),
    )
    for kind, value in names_of(paper.identifiers):
        connection.execute("insert or ignore into identifiers values (?, ?, ?)", (kind, clean(value), paper.id))


def _join(connection: apsw.Connection, keep: Paper, drop: Paper) -> Paper:
    """Makes `drop` a part of `keep`; both are stored."""
    better = _RANK.get(drop.state, -1) > _RANK.get(keep.state, -1)
    merged = _filled(drop, keep)
    if better:
        merged = dataclasses.replace(merged, **{name: getattr(drop, name) for name in _FROM_FILE})
    if better and drop.state == "searchable":
        drop_text(connection, keep.id)
        for table in ("pages", "passages"):
            connection.execute(f"update {table} set paper_id = ? where paper_id = ?", (keep.id, drop.id))
    drop_text(connection, drop.id)
    merged = dataclasses.replace(merged, id=keep.id, added=min(filter(None, (keep.added, drop.added)), default=now()))
    connection.execute("update notes set paper_id = ? where paper_id = ?", (keep.id, drop.id))
    connection.execute("update identifiers set paper_id = ? where paper_id = ?", (keep.id, drop.id))
    connection.execute("insert or replace into identifiers values ('id', ?, ?)", (drop.id.lower(), keep.id))
    connection.execute("delete from papers where id = ?", (drop.id,))
    _write(connection, merged)
    return merged


def _paper(paper_id: str, record: str, raw: str) -> Paper:
    values: dict[str, Any] = json.loads(record)
    known = {f.name for f in dataclasses.fields(Paper)}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known}
    names: dict[str, Any] = values.pop("identifiers", {})
    fields = {f.name for f in dataclasses.fields(Identifiers)}
    names = {k: tuple(v) if isinstance(v, list) else v for k, v in names.items() if k in fields}
    identifiers = Identifiers(**names)
    return Paper(id=paper_id, identifiers=identifiers, raw=json.loads(raw), **values)


def known_ids(connection: apsw.Connection, paper_ids: Sequence[str]) -> list[str]:
    """Present ids of these present or former ids; unknown ones are left out."""
    return [found for i in paper_ids if (found := resolve(connection, i)) is not None]

"""The text of papers: pages, passages, the full-text index and vectors. They can't disagree: all change in one transaction."""

from __future__ import annotations

import array
import dataclasses
import json
import math
from collections.abc import Sequence

import apsw

from astroresearch import crash
from astroresearch.domain.paper import Paper
from astroresearch.domain.passage import PageRecord, Passage
from astroresearch.errors import InvalidInput
from astroresearch.store.connection import Database, has_vectors, scalar
from astroresearch.store.papers import drop_text, known_ids, resolve, store_paper
from astroresearch.store.text import clean, match_any, rows

MAX_TERMS = 64
"Terms of one full-text query at most; the rest is left out."
MAX_LIMIT = 4096
"sqlite-vec answers no more neighbours than this."
_COLUMNS = "id, paper_id, ordinal, section, page, page_end, text, start_at, end_at"


class PassageStore:
    """Pages and passages of papers, found by words and by vectors."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def replace(self, paper: Paper, pages: Sequence[PageRecord], passages: Sequence[Passage]) -> list[Passage]:
        """Stores a paper's new state and all of its text in one transaction, in place of what was there.

        The ids of the given passages are ignored; the returned ones have theirs, and the id of the paper as it is stored.
        """

        def run(connection: apsw.Connection) -> list[Passage]:
            stored = store_paper(connection, paper)
            drop_text(connection, stored.id)
            connection.executemany(
                "insert into pages values (?, ?, ?, ?, ?)",
                [(stored.id, p.page, clean(p.text), p.words, clean(p.hidden)) for p in pages],
            )
            out = [_insert(connection, stored.id, p) for p in passages]
            crash.point("index.before_commit")
            return out

        out = await self._db.write(run, topics=("papers", "passages"))
        crash.point("index.committed")
        return out

    async def pages(self, paper_id: str, page: int | None = None) -> list[PageRecord]:
        """All pages of a paper in order, or the one asked for; empty where its text is not in."""

        def run(connection: apsw.Connection) -> list[PageRecord]:
            found = rows(
                connection,
                "select page, text, words, hidden from pages where paper_id = ?1 and (?2 is null or page = ?2) order by page",
                (resolve(connection, paper_id), page),
            )
            return [PageRecord(*row) for row in found]

        return await self._db.search(run)

    async def get(self, ids: Sequence[int]) -> list[Passage]:
        """Passages in the order of the ids; those that are gone are left out."""

        def run(connection: apsw.Connection) -> list[Passage]:
            sql = f"select {_COLUMNS} from passages where id in (select value from json_each(?))"
            found = {row[0]: Passage(*row) for row in rows(connection, sql, (json.dumps(list(ids)),))}
            return [found[i] for i in ids if i in found]

        return await self._db.read(run)

    async def of_paper(self, paper_id: str) -> list[Passage]:
        """All passages of a paper in order."""

        def run(connection: apsw.Connection) -> list[Passage]:
            sql = f"select {_COLUMNS} from passages where paper_id = ? order by ordinal"
            return [Passage(*row) for row in rows(connection, sql, (resolve(connection, paper_id),))]

        return await self._db.search(run)

    async def search_text(
        self, fts_terms: Sequence[str], *, limit: int, paper_ids: Sequence[str] = ()
    ) -> list[tuple[int, float, str]]:
        """(passage id, bm25, snippet) of passages that hold any of the terms, best first; a lower bm25 is better.

        A term is a word or a phrase and may hold any characters. Words are compared by their stem, without diacritics. The cost
        grows with the number of passages that match: leave out the commonest words (`document_counts`).
        """
        terms = [t for t in fts_terms if t.strip()][:MAX_TERMS]
        if not terms or limit <= 0:
            return []

        def run(connection: apsw.Connection) -> list[tuple[int, float, str]]:
            where, values = _narrowed(connection, "+rowid", paper_ids)  # `+`: not one look-up per id
            sql = (
                "select rowid, rank, snippet(passages_fts, 0, '', '', '…', 24) from passages_fts"
                f" where passages_fts match ?{where} order by rank limit ?"
            )
            return [(r[0], r[1], r[2]) for r in rows(connection, sql, (match_any(terms), *values, limit))]

        return await self._db.search(run)

    async def document_counts(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages each term stands (a phrase: its rarest word), to tell rare terms from common ones."""

        def run(connection: apsw.Connection) -> dict[str, int]:
            tokenize = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
            out: dict[str, int] = {}
            for term in terms:
                tokens = tokenize(
                    clean(term).encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
                )
                counts = [scalar(connection, "select doc from passages_vocab where term = ?", (t,)) for t in tokens]
                out[term] = min((int(n or 0) for n in counts), default=0)
            return out

        return await self._db.search(run)

    async def search_vector(
        self, vector: bytes, *, model: str, limit: int, paper_ids: Sequence[str] = ()
    ) -> list[tuple[int, float]]:
        """(passage id, cosine distance) of the nearest passages, nearest first. Empty while the model has no vectors here.

        Args:
            vector: 32-bit floats in this machine's order.
            model: The embedder's name as given to `add_vectors`.
            limit: At most 4096.
            paper_ids: Only passages of these papers.

        Raises:
            InvalidInput: The vector does not have the model's dimension.
        """

        def run(connection: apsw.Connection) -> list[tuple[int, float]]:
            found = connection.execute("select id, dim from embedders where name = ?", (model,)).fetchone()
            if found is None or limit <= 0 or not has_vectors(connection):
                return []
            embedder, dim = found
            _check_vector(vector, dim)
            where, values = _narrowed(connection, "rowid", paper_ids)
            sql = f"select rowid, distance from vectors_{embedder} where embedding match ? and k = ?{where} order by distance"
            nearest = rows(connection, sql, (vector, min(limit, MAX_LIMIT), *values))
            return [(r[0], r[1]) for r in nearest if r[1] is not None]

        return await self._db.search(run)

    async def pending(self, model: str, limit: int, after: int = 0) -> list[tuple[int, str]]:
        """(id, text) of passages with an id above `after` that have no vector of this model yet, by id."""

        def run(connection: apsw.Connection) -> list[tuple[int, str]]:
            sql = """
                select p.id, p.text from passages p where p.id > ?2 and not exists (
                    select 1 from embedded e join embedders m on m.id = e.embedder_id
                    where m.name = ?1 and e.passage_id = p.id
                ) order by p.id limit ?3
            """
            return [(r[0], r[1]) for r in rows(connection, sql, (model, after, max(limit, 0)))]

        return await self._db.search(run)

    async def add_vectors(self, model: str, dim: int, vectors: Sequence[tuple[int, bytes]]) -> int:
        """Stores vectors of passages and returns how many were new; passages that are gone meanwhile are left out.

        Another dimension under the same name means another model: the old vectors are dropped first.

        Raises:
            InvalidInput: A vector has another length, or holds what is not a number.
        """
        for _, vector in vectors:
            _check_vector(vector, dim)

        def run(connection: apsw.Connection) -> int:
            if not has_vectors(connection):
                return 0
            embedder = _embedder(connection, model, dim)
            added = 0
            for passage, vector in vectors:
                connection.execute(
                    "insert or ignore into embedded select ?, id from passages where id = ?", (embedder, passage)
                )
                if connection.changes():
                    connection.execute(
                        f"insert into vectors_{embedder} (rowid, embedding) values (?, ?)", (passage, vector)
                    )
                    added += 1
            crash.point("vectors.before_commit")
            return added

        return await self._db.write(run, topics=("passages",))

    async def counts(self) -> dict[str, int]:
        """`pages`, `passages`, `vectors` (of the model that has most), and `vectors:<model>` for each model."""

        def run(connection: apsw.Connection) -> dict[str, int]:
            out = {t: int(scalar(connection, f"select count(*) from {t}")) for t in ("pages", "passages")}
            per_model = rows(
                connection,
                "select m.name, count(e.passage_id) from embedders m left join embedded e on e.embedder_id = m.id group by m.id",
            )
            out["vectors"] = max((n for _, n in per_model), default=0)
            return out | {f"vectors:{name}": n for name, n in per_model}

        return await self._db.search(run)

    async def disagreements(self) -> list[str]:
        """Where passages, full text and vectors do not fit together, as sentences; empty when all is well."""
        return await self._db.write(find_disagreements)


def find_disagreements(connection: apsw.Connection) -> list[str]:
    """`PassageStore.disagreements` within a transaction."""
    out: list[str] = []
    for index in ("passages_fts", "notes_fts"):
        try:
            connection.execute(f"insert into {index} ({index}, rank) values ('integrity-check', 1)")
        except apsw.CorruptError:
            out.append(f"The full-text index {index} does not fit its texts.")
    for embedder, name in rows(connection, "select id, name from embedders") if has_vectors(connection) else ():
        there = {r[0] for r in rows(connection, f"select rowid from vectors_{embedder}")}
        meant = {r[0] for r in rows(connection, "select passage_id from embedded where embedder_id = ?", (embedder,))}
        if there != meant:
            out.append(f"The vectors of {name} do not fit the passages.")
    lost = scalar(
        connection,
        "select count(*) from papers p where state = 'searchable' and not exists (select 1 from pages where paper_id = p.id)",
    )
    if lost:
        out.append(f"{lost} papers are marked searchable and have no text.")
    return out


def _insert(connection: apsw.Connection, paper_id: str, passage: Passage) -> Passage:
    p = dataclasses.replace(passage, paper_id=paper_id, text=clean(passage.text), section=clean(passage.section))
    connection.execute(
        "insert into passages (paper_id, ordinal, section, page, page_end, text, start_at, end_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?)",
        (paper_id, p.ordinal, p.section, p.page, p.page_end, p.text, p.start, p.end),
    )
    return dataclasses.replace(p, id=connection.last_insert_rowid())


def _narrowed(connection: apsw.Connection, column: str, paper_ids: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if not paper_ids:
        return "", ()
    where = f" and {column} in (select id from passages where paper_id in (select value from json_each(?)))"
    return where, (json.dumps(known_ids(connection, paper_ids)),)


def _embedder(connection: apsw.Connection, model: str, dim: int) -> int:
    found = connection.execute("select id, dim from embedders where name = ?", (model,)).fetchone()
    if found is not None and found[1] == dim:
        return int(found[0])
    if found is not None:
        connection.execute(f"drop table vectors_{int(found[0])}")
        connection.execute("delete from embedders where id = ?", (found[0],))
    connection.execute("insert into embedders (name, dim) values (?, ?)", (model, dim))
    embedder = connection.last_insert_rowid()
    connection.execute(
        f"create virtual table vectors_{embedder} using vec0 (embedding float[{int(dim)}] distance_metric=cosine)"
    )
    return embedder


def _check_vector(vector: bytes, dim: int) -> None:
    if dim <= 0 or len(vector) != 4 * dim:
        raise InvalidInput(f"A vector of {len(vector)} bytes does not fit {dim} dimensions.", field="vector")
    if not math.isfinite(sum(array.array("f", vector))):
        raise InvalidInput("A vector holds what is not a finite number.", field="vector")

"""Answers of services, kept for a time."""

from __future__ import annotations

import time

import apsw

from astroresearch.store.connection import Database, scalar

MAX_BYTES = 200 * 1024 * 1024
"Beyond this the oldest answers go."
_PRUNE_EVERY = 50


class CacheStore:
    """Bytes by key, each with its own lifetime."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._puts = 0

    async def get(self, key: str) -> bytes | None:
        """The value, or None where there is none or its time is over (or lies in the future: a clock was set back)."""

        def run(connection: apsw.Connection) -> bytes | None:
            row = connection.execute("select value, stored, ttl_s from cache where key = ?", (key,)).fetchone()
            if row is None or not 0 <= time.time() - row[1] < row[2]:
                return None
            return bytes(row[0])

        return await self._db.read(run)

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Keeps a value for `ttl_s` seconds, in place of an older one."""
        self._puts += 1
        pruning = self._puts % _PRUNE_EVERY == 1

        def run(connection: apsw.Connection) -> None:
            connection.execute("insert or replace into cache values (?, ?, ?, ?)", (key, value, time.time(), ttl_s))
            if pruning:
                _prune(connection)

        await self._db.write(run)

    async def clear(self) -> None:
        """Forgets everything."""
        await self._db.write(lambda c: c.execute("delete from cache") and None)


def _prune(connection: apsw.Connection) -> None:
    moment = time.time()
    connection.execute("delete from cache where stored + ttl_s < ?1 or stored > ?1 + 86400", (moment,))
    size = int(scalar(connection, "select coalesce(sum(length(value)), 0) from cache"))
    if size > MAX_BYTES:
        connection.execute(
            "delete from cache where key in (select key from (select key, sum(length(value)) over (order by stored desc)"
            " as total from cache) where total > ?)",
            (MAX_BYTES // 2,),
        )

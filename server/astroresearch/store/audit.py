"""The audit log: which permission was asked for, by whom, and how it was answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import apsw

from astroresearch.domain.session import AuditEntry
from astroresearch.store.connection import Database
from astroresearch.store.text import dumps, now, rows


class AuditStore:
    """An append-only log; it outlives the sessions that it is about."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def add(self, session_id: str, agent: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Adds a line. `payload` is plain JSON without secrets."""

        def run(connection: apsw.Connection) -> None:
            connection.execute(
                "insert into agent_audit_log (ts, session, agent_name, kind, payload) values (?, ?, ?, ?, ?)",
                (now(), session_id, agent, kind, dumps(dict(payload))),
            )

        await self._db.write(run)

    async def list(self, session_id: str = "", limit: int = 1000) -> list[AuditEntry]:
        """The newest lines, oldest first; of one session or of all."""

        def run(connection: apsw.Connection) -> list[AuditEntry]:
            sql = """
                select ts, session, agent_name, kind, payload from agent_audit_log
                where ?1 = '' or session = ?1 order by id desc limit ?2
            """
            found = rows(connection, sql, (session_id, max(limit, 0)))
            return [
                AuditEntry(ts, sid, agent, kind, json.loads(body)) for ts, sid, agent, kind, body in reversed(found)
            ]

        return await self._db.read(run)

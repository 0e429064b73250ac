"""Sessions: the write-ahead log of turns (messages, calls), the timeline (events), the plan, and who may write.

After a kill, what was acknowledged is there: user messages and the start of calls with an effect survive a power cut, the
rest survives the death of the process.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from astroresearch import crash
from astroresearch.domain.session import OpenCall, SessionRecord, SessionUsage
from astroresearch.engine.events import EVENT_TYPES, LOG_KIND
from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.tool import Effect
from astroresearch.engine.turn import TurnUsage
from astroresearch.errors import Conflict, NotFound
from astroresearch.store import leases
from astroresearch.store.connection import Database, scalar
from astroresearch.store.text import clean, dumps, now, rows

_COLUMNS = "id, title, created, updated, turn_count, parent, agent, workspace, summary, usage"
_SUMMARY_CHARS = 200
_TOPICS = ("sessions",)


class SessionStore:
    """All sessions of the library. Methods that take a session's id raise `NotFound` where they write to one that is gone."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def create(
        self, title: str, *, parent: str = "", agent: str = "main", workspace: str = "", session_id: str = ""
    ) -> SessionRecord:
        """A new session; `session_id` only where somebody else had to choose it."""
        stamp = now()
        record = SessionRecord(
            session_id or f"s{secrets.token_hex(8)}", clean(title), stamp, stamp, 0, parent, agent, workspace
        )

        def run(connection: apsw.Connection) -> SessionRecord:
            connection.execute(
                "insert into agent_sessions (id, title, created, updated, parent, agent, workspace) values (?, ?, ?, ?, ?, ?, ?)",
                (record.id, record.title, stamp, stamp, parent, agent, workspace),
            )
            return record

        return await self._db.write(run, topics=_TOPICS)

    async def get(self, session_id: str) -> SessionRecord | None:
        """One session's record."""

        def run(connection: apsw.Connection) -> SessionRecord | None:
            row = connection.execute(f"select {_COLUMNS} from agent_sessions where id = ?", (session_id,)).fetchone()
            return None if row is None else _record(row)

        return await self._db.read(run)

    async def rename(self, session_id: str, title: str) -> bool:
        """A new title. False if there is no such session."""

        def run(connection: apsw.Connection) -> bool:
            connection.execute("update agent_sessions set title = ? where id = ?", (clean(title), session_id))
            return connection.changes() > 0

        return await self._db.write(run, topics=_TOPICS)

    async def delete(self, session_id: str) -> bool:
        """Removes a session with all it holds, its subagents' sessions too. The audit log stays."""

        def run(connection: apsw.Connection) -> bool:
            found = rows(
                connection,
                "with recursive tree(id) as (select id from agent_sessions where id = ?"
                " union select s.id from agent_sessions s join tree t on s.parent = t.id) select id from tree",
                (session_id,),
            )
            connection.executemany("delete from agent_sessions where id = ?", found)
            connection.executemany("delete from leases where name = ?", found)
            return bool(found)

        return await self._db.write(run, topics=_TOPICS)

    async def messages(self, session_id: str) -> list[Message]:
        """The history in the order in which it was stored; see `engine.history.normalise` for the order that models want."""

        def run(connection: apsw.Connection) -> list[Message]:
            found = rows(connection, "select raw_json from agent_messages where session = ? order by id", (session_id,))
            return [message_from_json(r[0]) for r in found]

        return await self._db.search(run)

    async def append(self, session_id: str, message: Message, durable: bool, *, agent: str = "main") -> None:
        """Stores a message. The calls of an assistant message are *announced* from then on.

        Args:
            session_id: The session.
            message: Of any role.
            durable: Whether it has to survive a power cut (the user's messages).
            agent: Who made the calls.
        """

        def run(connection: apsw.Connection) -> None:
            _add_message(connection, session_id, message, agent)
            crash.point("message.before_commit")

        await self._db.write(run, topics=_TOPICS if message.role == "user" else (), durable=durable)
        crash.point("message.committed")

    async def replace_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        """Puts a shortened history in place of the whole one, at once or not at all. Events stay as they are."""

        def run(connection: apsw.Connection) -> None:
            connection.execute("delete from agent_messages where session = ?", (session_id,))
            for message in messages:
                _add_message(connection, session_id, message, "main")
            connection.execute(
                "update agent_calls set state = 'finished' where session = ?1 and id in"
                " (select tool_call_id from agent_messages where session = ?1 and role = 'tool')",
                (session_id,),
            )

        await self._db.write(run)

    async def tool_started(
        self,
        session_id: str,
        call: ToolCall,
        arguments: Mapping[str, Any],
        effect: Effect,
        turn_id: str,
        agent: str,
    ) -> None:
        """Stored before the call runs; on the disk before this returns if the call has an effect."""

        def run(connection: apsw.Connection) -> None:
            connection.execute(
                "insert into agent_calls values (?, ?, ?, ?, ?, 'started', ?, ?, ?, '') on conflict (session, id) do update set"
                " arguments = excluded.arguments, effect = excluded.effect, state = 'started', started = excluded.started,"
                " turn_id = excluded.turn_id, agent_name = excluded.agent_name",
                (session_id, call.id, clean(call.name), dumps(dict(arguments)), effect, turn_id, agent, now()),
            )

        await self._db.write(_for_session(session_id, run), durable=effect != "none")
        crash.point("tool.started")

    async def tool_finished(self, session_id: str, call: ToolCall, result: Message) -> None:
        """Stores a call's end together with its result message."""

        def run(connection: apsw.Connection) -> None:
            _add_message(connection, session_id, result, "")
            crash.point("tool.before_finish")

        await self._db.write(run)
        crash.point("tool.finished")

    async def open_calls(self, session_id: str) -> list[OpenCall]:
        """Calls without a result, in the order in which they were announced: what a crash interrupted."""

        def run(connection: apsw.Connection) -> list[OpenCall]:
            sql = """
                select id, name, arguments, effect, state = 'started', turn_id, agent_name from agent_calls
                where session = ? and state <> 'finished' order by rowid
            """
            return [OpenCall(i, n, a, e, bool(s), t, w) for i, n, a, e, s, t, w in rows(connection, sql, (session_id,))]

        return await self._db.read(run)

    async def add_events(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> None:
        """Stores events of the timeline as they go over the wire, in one transaction.

        Raises:
            Conflict: One of the `seq` is taken: another process writes to this session.
        """
        if not events:
            return
        values = [
            (
                session_id,
                int(e["seq"]),
                str(e.get("turnId", "")),
                str(e.get("agent", "")),
                _kind(str(e.get("type", ""))),
                dumps(e),
                str(e.get("ts", "")) or now(),
            )
            for e in events
        ]

        def run(connection: apsw.Connection) -> None:
            try:
                connection.executemany("insert into agent_events values (?, ?, ?, ?, ?, ?, ?)", values)
            except apsw.ConstraintError:
                raise Conflict(
                    "This session is being continued in another window.", hint="Close it there, or start a new session."
                ) from None
            crash.point("event.before_commit")

        await self._db.write(_for_session(session_id, run))

    async def events(
        self, session_id: str, from_seq: int = 0, limit: int = 1000, last: int = 0
    ) -> list[dict[str, Any]]:
        """Events as they went over the wire, by `seq`.

        Args:
            session_id: The session.
            from_seq: The first one wanted.
            limit: At most so many.
            last: If above 0: the newest `last` of those from `from_seq` on, instead of the oldest `limit`.
        """

        def run(connection: apsw.Connection) -> list[dict[str, Any]]:
            if last > 0:
                sql = (
                    "select payload from (select seq, payload from agent_events where session = ? and seq >= ?"
                    " order by seq desc limit ?) order by seq"
                )
                found = rows(connection, sql, (session_id, from_seq, last))
            else:
                sql = "select payload from agent_events where session = ? and seq >= ? order by seq limit ?"
                found = rows(connection, sql, (session_id, from_seq, max(limit, 0)))
            return [json.loads(r[0]) for r in found]

        return await self._db.search(run)

    async def next_seq(self, session_id: str) -> int:
        """The `seq` of the session's next event; the first one is 1."""
        sql = "select coalesce(max(seq), 0) + 1 from agent_events where session = ?"
        return int(await self._db.read(lambda c: scalar(c, sql, (session_id,))))

    async def finish_turn(
        self, session_id: str, turn_id: str, stop_reason: str, usage: TurnUsage, summary: str = ""
    ) -> None:
        """The end of a turn: counts it and its tokens once, however often it is told; `summary` is the answer's head."""

        def run(connection: apsw.Connection) -> None:
            found = rows(connection, f"select {_COLUMNS} from agent_sessions where id = ?", (session_id,))
            connection.execute(
                "insert or ignore into agent_turns values (?, ?, ?, ?, ?)",
                (session_id, turn_id, stop_reason, dumps(dataclasses.asdict(usage)), now()),
            )
            if not connection.changes():
                return
            record = _record(found[0])
            connection.execute(
                "update agent_sessions set turn_count = turn_count + 1, updated = ?, usage = ?, summary = ? where id = ?",
                (
                    now(),
                    dumps(dataclasses.asdict(_sum(record.usage, usage))),
                    clean(summary)[:_SUMMARY_CHARS] or record.summary,
                    session_id,
                ),
            )

        await self._db.write(_for_session(session_id, run), topics=_TOPICS)
        crash.point("turn.finished")

    async def todos(self, session_id: str) -> list[dict[str, Any]]:
        """The session's plan: items {id, content, status, blockedBy}."""
        sql = "select item from agent_tasks where session = ? order by position"
        return await self._db.read(lambda c: [json.loads(r[0]) for r in rows(c, sql, (session_id,))])

    async def set_todos(self, session_id: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Stores the plan whole."""

        def run(connection: apsw.Connection) -> None:
            connection.execute("delete from agent_tasks where session = ?", (session_id,))
            connection.executemany(
                "insert into agent_tasks values (?, ?, ?)",
                [(session_id, n, dumps(dict(item))) for n, item in enumerate(items)],
            )

        await self._db.write(_for_session(session_id, run))

    async def acquire_lease(self, session_id: str, owner: str) -> bool:
        """Makes `owner` the only one who may continue this session, for `leases.LEASE_S` seconds. False if another one is.

        The lease of a process of this machine that is dead is free at once.
        """
        return await self._db.write(lambda c: leases.acquire(c, session_id, owner))

    async def renew_lease(self, session_id: str, owner: str) -> bool:
        """Prolongs a lease; call it every few seconds. False: it was lost, stop writing."""
        return await self._db.write(lambda c: leases.renew(c, session_id, owner))

    async def release_lease(self, session_id: str, owner: str) -> None:
        """Gives a lease back, if it is still held."""
        await self._db.write(lambda c: leases.release(c, session_id, owner))

    async def counts(self) -> dict[str, int]:
        """`sessions` (those of the user), `messages`, `events`, `turns`."""

        def run(connection: apsw.Connection) -> dict[str, int]:
            out = {
                t: int(scalar(connection, f"select count(*) from agent_{t}")) for t in ("messages", "events", "turns")
            }
            out["sessions"] = int(scalar(connection, "select count(*) from agent_sessions where parent = ''"))
            return out

        return await self._db.search(run)

    async def list(
        self, limit: int = 100, offset: int = 0, *, parent: str | None = "", workspace: str = ""
    ) -> list[SessionRecord]:
        """Newest first.

        Args:
            limit: At most so many.
            offset: How many to skip.
            parent: Empty: those of the user; an id: that session's subagents; None: all.
            workspace: Only those of this folder.
        """

        def run(connection: apsw.Connection) -> list[SessionRecord]:
            sql = f"""
                select {_COLUMNS} from agent_sessions where (?1 is null or parent = ?1) and (?2 = '' or workspace = ?2)
                order by updated desc, id limit ?3 offset ?4
            """
            return [_record(r) for r in rows(connection, sql, (parent, workspace, max(limit, 0), max(offset, 0)))]

        return await self._db.read(run)


def message_to_json(message: Message) -> str:
    """A message whole, as ASCII JSON."""
    return dumps(dataclasses.asdict(message))


def message_from_json(text: str) -> Message:
    """The inverse of `message_to_json`; fields that this version does not know are left out."""
    body: dict[str, Any] = json.loads(text)
    known = {f.name for f in dataclasses.fields(Message)}
    call_fields = {f.name for f in dataclasses.fields(ToolCall)}
    calls = tuple(
        ToolCall(**{k: v for k, v in call.items() if k in call_fields}) for call in body.pop("tool_calls", ())
    )
    return Message(tool_calls=calls, **{k: v for k, v in body.items() if k in known})


def _add_message(connection: apsw.Connection, session_id: str, message: Message, agent: str) -> None:
    stamp = now()
    connection.execute("update agent_sessions set updated = ? where id = ?", (stamp, session_id))
    if not connection.changes():
        raise NotFound(f"There is no session `{session_id}`.")
    connection.execute(
        "insert into agent_messages (session, turn_id, role, tool_call_id, raw_json, ts) values (?, ?, ?, ?, ?, ?)",
        (session_id, message.turn_id, message.role, message.tool_call_id, message_to_json(message), stamp),
    )
    for call in message.tool_calls:
        connection.execute(
            "insert or ignore into agent_calls values (?, ?, ?, ?, '', 'announced', ?, ?, '', '')",
            (session_id, call.id, clean(call.name), clean(call.arguments), message.turn_id, agent),
        )
    if message.role == "tool":
        connection.execute(
            "update agent_calls set state = 'finished', finished = ? where session = ? and id = ?",
            (stamp, session_id, message.tool_call_id),
        )


def _for_session(session_id: str, job: Any) -> Any:
    """The job, with a clear error where the session was deleted (perhaps in another window)."""

    def run(connection: apsw.Connection) -> Any:
        if scalar(connection, "select 1 from agent_sessions where id = ?", (session_id,)) is None:
            raise NotFound(f"There is no session `{session_id}`.", hint="It may have been deleted in another window.")
        return job(connection)

    return run


def _kind(wire_type: str) -> str:
    cls = EVENT_TYPES.get(wire_type)
    return wire_type if cls is None else LOG_KIND[cls]


def _record(row: Sequence[Any]) -> SessionRecord:
    known = {f.name for f in dataclasses.fields(SessionUsage)}
    usage = SessionUsage(**{k: v for k, v in json.loads(row[-1]).items() if k in known})
    names = [name.strip() for name in _COLUMNS.split(",")]
    return SessionRecord(**dict(zip(names, (*row[:-1], usage), strict=True)))


def _sum(a: SessionUsage, b: TurnUsage) -> SessionUsage:
    cost = None if a.cost is None and b.cost is None else (a.cost or 0.0) + (b.cost or 0.0)
    return SessionUsage(a.input + b.input, a.output + b.output, a.cached + b.cached, a.estimated or b.estimated, cost)

"""The write-ahead log of a session and its timeline."""

from __future__ import annotations

import dataclasses
import os
import sys

import anyio
import pytest

from astroresearch.domain.session import OpenCall, SessionUsage
from astroresearch.engine.events import MessageDelta, Stamped, ToolStarted, TurnDone, to_wire
from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.turn import TurnUsage
from astroresearch.errors import Conflict, NotFound
from astroresearch.store import leases
from astroresearch.store.connection import connect
from astroresearch.store.database import Store
from astroresearch.store.sessions import message_from_json, message_to_json

CALL = ToolCall("abcdefghi", "file_edit", '{"path": "a.tex', "prov-1", {"signature": "x"}, True)
ASSISTANT = Message("assistant", "Let me see.", (CALL,), reasoning="hm", reasoning_field="reasoning", turn_id="t1")


def result_of(call: ToolCall, text: str = "done") -> Message:
    return Message("tool", text, tool_call_id=call.id, name=call.name, status="completed", meta={"metadata": {"a": 1}})


def events(*seqs: int) -> list[dict[str, object]]:
    return [to_wire(Stamped(s, "t1", "main", "2026-01-01T00:00:00Z", MessageDelta(f"text {s}"))) for s in seqs]


async def test_sessions_are_listed_newest_first(store: Store) -> None:
    one = await store.sessions.create("One", workspace="/w")
    two = await store.sessions.create("Two")
    child = await store.sessions.create("Sub", parent=one.id, agent="reader")
    await store.sessions.append(one.id, Message("user", "hello"), durable=True)
    assert [s.id for s in await store.sessions.list()] == [one.id, two.id]
    assert [s.id for s in await store.sessions.list(workspace="/w")] == [one.id]
    assert await store.sessions.list(parent=one.id) == [child]
    assert len(await store.sessions.list(parent=None)) == 3
    assert len(await store.sessions.list(limit=1, offset=1)) == 1
    assert await store.sessions.rename(one.id, "Uno")
    assert not await store.sessions.rename("nothing", "x")
    found = await store.sessions.get(one.id)
    assert found
    assert (found.title, found.workspace, found.agent) == ("Uno", "/w", "main")
    assert await store.sessions.get("nothing") is None


async def test_messages_come_back_exactly(store: Store) -> None:
    session = await store.sessions.create("t")
    history = [
        Message("user", "a lone \ud800 surrogate and a \0"),
        ASSISTANT,
        result_of(CALL),
        Message("assistant", "ok"),
    ]
    for message in history:
        await store.sessions.append(session.id, message, durable=message.role == "user")
    assert await store.sessions.messages(session.id) == history
    assert message_from_json(message_to_json(ASSISTANT).replace("{", '{"later_field": 1, ', 1)) == ASSISTANT
    assert (await store.sessions.counts())["messages"] == 4


async def test_a_history_can_be_replaced_whole(store: Store) -> None:
    session = await store.sessions.create("t")
    await store.sessions.append(session.id, ASSISTANT, durable=False)
    await store.sessions.replace_messages(session.id, [Message("user", "summary"), Message("user", "and on")])
    assert [m.content for m in await store.sessions.messages(session.id)] == ["summary", "and on"]


async def test_calls_without_an_answer_are_open(store: Store) -> None:
    session = await store.sessions.create("t")
    other = ToolCall("123456789", "read_file", "{}")
    await store.sessions.append(session.id, dataclasses.replace(ASSISTANT, tool_calls=(CALL, other)), durable=False)
    await store.sessions.tool_started(session.id, CALL, {"path": "a.tex"}, "workspace_write", "t1", "main")
    assert await store.sessions.open_calls(session.id) == [
        OpenCall(CALL.id, "file_edit", '{"path":"a.tex"}', "workspace_write", True, "t1", "main"),
        OpenCall(other.id, "read_file", "{}", "", False, "t1", "main"),
    ]
    await store.sessions.tool_finished(session.id, CALL, result_of(CALL))
    assert [c.id for c in await store.sessions.open_calls(session.id)] == [other.id]
    await store.sessions.append(session.id, result_of(other), durable=False)
    assert await store.sessions.open_calls(session.id) == []
    assert [m.role for m in await store.sessions.messages(session.id)] == ["assistant", "tool", "tool"]


async def test_events_are_replayed_as_they_were_sent(store: Store) -> None:
    session = await store.sessions.create("t")
    assert await store.sessions.next_seq(session.id) == 1
    sent = [
        *events(1, 2, 3),
        to_wire(Stamped(4, "t1", "main", "t", ToolStarted("c", "n", "read", {"q": "\ud800"}, 1))),
        to_wire(Stamped(5, "t1", "main", "t", TurnDone("end_turn"))),
    ]
    await store.sessions.add_events(session.id, sent)
    await store.sessions.add_events(session.id, [])
    assert await store.sessions.events(session.id) == sent
    assert await store.sessions.events(session.id, from_seq=2, limit=2) == sent[1:3]
    assert await store.sessions.events(session.id, last=2) == sent[3:]
    assert await store.sessions.next_seq(session.id) == 6
    kinds = [r[0] for r in connect(store.path).execute("select kind from agent_events order by seq")]
    assert kinds[3:] == ["tool_announced", "turn_done"]


async def test_one_place_in_the_timeline_is_taken_once(store: Store) -> None:
    session = await store.sessions.create("t")
    await store.sessions.add_events(session.id, events(1, 2))
    with pytest.raises(Conflict):
        await store.sessions.add_events(session.id, events(3, 2))
    assert await store.sessions.next_seq(session.id) == 3


async def test_turns_are_counted_once(store: Store) -> None:
    session = await store.sessions.create("t")
    for _ in range(2):
        await store.sessions.finish_turn(session.id, "t1", "end_turn", TurnUsage(10, 2, 1, True, 0.5), "An answer.")
    await store.sessions.finish_turn(session.id, "t2", "error", TurnUsage(1, 1))
    found = await store.sessions.get(session.id)
    assert found
    assert (found.turn_count, found.usage, found.summary) == (2, SessionUsage(11, 3, 1, True, 0.5), "An answer.")


async def test_the_plan_is_stored_whole(store: Store) -> None:
    session = await store.sessions.create("t")
    items = [{"id": "1", "content": "a", "status": "pending", "blockedBy": []}, {"id": "2", "content": "b"}]
    await store.sessions.set_todos(session.id, items)
    assert await store.sessions.todos(session.id) == items
    await store.sessions.set_todos(session.id, items[1:])
    assert await store.sessions.todos(session.id) == items[1:]


async def test_a_deleted_session_is_gone_with_its_subagents(store: Store) -> None:
    session = await store.sessions.create("t")
    child = await store.sessions.create("c", parent=session.id)
    grandchild = await store.sessions.create("g", parent=child.id)
    await store.sessions.append(grandchild.id, Message("user", "x"), durable=False)
    await store.sessions.add_events(session.id, events(1))
    await store.audit.add(session.id, "main", "permission", {"a": 1})
    assert await store.sessions.delete(session.id)
    assert not await store.sessions.delete(session.id)
    assert await store.sessions.counts() == {"messages": 0, "events": 0, "turns": 0, "sessions": 0}
    assert [e.payload for e in await store.audit.list(session.id)] == [{"a": 1}]
    for write in (
        store.sessions.append(session.id, Message("user", "x"), durable=True),
        store.sessions.add_events(session.id, events(1)),
        store.sessions.tool_started(session.id, CALL, {}, "none", "t", "main"),
        store.sessions.tool_finished(session.id, CALL, result_of(CALL)),
        store.sessions.set_todos(session.id, []),
        store.sessions.finish_turn(session.id, "t", "end_turn", TurnUsage()),
    ):
        with pytest.raises(NotFound):
            await write


async def test_one_window_continues_a_session(store: Store) -> None:
    session = await store.sessions.create("t")
    assert await store.sessions.acquire_lease(session.id, "window 1")
    assert await store.sessions.acquire_lease(session.id, "window 1")
    assert not await store.sessions.acquire_lease(session.id, "window 2")
    assert not await store.sessions.renew_lease(session.id, "window 2")
    await store.sessions.release_lease(session.id, "window 2")
    assert await store.sessions.renew_lease(session.id, "window 1")
    await store.sessions.release_lease(session.id, "window 1")
    assert await store.sessions.acquire_lease(session.id, "window 2")
    assert not await store.sessions.renew_lease(session.id, "window 1")


@pytest.mark.parametrize("column", ["expires = expires - 60", "taken = taken + 3600, expires = expires + 3600"])
async def test_a_lease_ends_by_itself_and_by_a_clock_set_back(store: Store, column: str) -> None:
    session = await store.sessions.create("t")
    assert await store.sessions.acquire_lease(session.id, "window 1")
    connect(store.path).execute(f"update leases set {column}")
    assert await store.sessions.acquire_lease(session.id, "window 2")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no harmless probe for a process")
async def test_the_lease_of_a_dead_process_is_free(store: Store) -> None:
    child = await anyio.run_process([sys.executable, "-c", "import os; print(os.getpid())"])
    assert await store.sessions.acquire_lease("s", "window 1")
    connect(store.path).execute("update leases set pid = ?", (int(child.stdout),))
    assert await store.sessions.acquire_lease("s", "window 2")
    assert leases._is_alive(1)

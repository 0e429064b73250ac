"""Whatever happens in whatever order: the promises of the timeline, the history and the replay hold."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astroresearch.agents.request import SendRequest
from astroresearch.engine.history import normalise
from astroresearch.errors import Conflict
from tests.unit.agents.conftest import Desk, FakeFrontEnd, Recorder, check_history, check_timeline, make_desk

CALLS = st.sampled_from(
    [
        {"name": "waiter", "arguments": {"name": "a"}},
        {"name": "writer", "arguments": {"name": "b"}},
        {"name": "query_target", "arguments": {"name": "NGC 1275"}},
        {"name": "query_target", "arguments": {"name": "nowhere"}},
        {"name": "rag_search", "arguments": {"query": "ripples"}},
        {"name": "rag_search", "arguments": '{"query": '},
        {"name": "ask_user", "arguments": {"question": "Which?"}},
        {"name": "read_file", "arguments": {"path": "main.tex"}},
        {"name": "file_edit", "arguments": {"path": "main.tex", "old_string": "old", "new_string": "new"}},
        {"name": "no_such_tool", "arguments": {}},
        {"name": "subagent", "arguments": {"task": "Do it"}},
    ]
)
REPLIES = st.one_of(
    st.builds(lambda calls: {"calls": calls}, st.lists(CALLS, min_size=1, max_size=4)),
    st.builds(
        lambda calls: {"text": "Let me see.", "calls": calls, "finish": "length"},
        st.lists(CALLS, min_size=1, max_size=2),
    ),
    st.just({"text": "An answer."}),
    st.just({"text": "Half of it", "finish": "interrupted"}),
    st.just({"text": "Broken", "error": "unavailable"}),
    st.just({"error": "auth"}),
)
ACTIONS = st.lists(
    st.sampled_from(["send", "send", "steer", "cancel", "release", "answer", "allow", "settle", "look"]),
    min_size=1,
    max_size=10,
)


async def act(d: Desk, action: str, session_id: str, group: Any, sinks: list[Recorder], under_way: set[int]) -> None:
    """One thing that a user may do at any time."""
    sink = Recorder()
    if action in ("send", "steer"):
        sinks.append(sink)

        async def send() -> None:
            try:
                await d.manager.send(SendRequest(action, session_id, steer=action == "steer"), sink.append)
            except Conflict:
                assert sink == []
            finally:
                under_way.discard(id(sink))

        under_way.add(id(sink))
        group.start_soon(send)
        await anyio.lowlevel.checkpoint()
    elif action == "cancel":
        for tool in (d.waiter, d.writer):  # a writer finishes in spite of a cancel, so it is let go first
            tool.release.set()
        if await d.manager.cancel(session_id):
            assert not under_way or d.manager.is_running(session_id) or d.waiter.begun == d.waiter.ended
    elif action == "release":
        for tool in (d.waiter, d.writer):
            tool.release.set()
            tool.release = anyio.Event()
    elif action in ("answer", "allow"):
        asked = [event for sink in sinks for event in sink if event["type"] in ("question", "permission")]
        for event in asked:
            d.manager.answer(event["id"], choice="once" if action == "allow" else "deny", text="so")
    elif action == "look":
        stored, _ = await d.manager.events(session_id)
        assert [event["seq"] for event in stored] == list(range(1, len(stored) + 1))
    else:
        with anyio.move_on_after(0.02):
            await anyio.sleep_forever()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(replies=st.lists(REPLIES, min_size=1, max_size=8), actions=ACTIONS)
async def test_promises_hold_whatever_happens(replies: list[dict[str, Any]], actions: list[str]) -> None:
    sinks: list[Recorder] = []
    under_way: set[int] = set()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        d = await stack.enter_async_context(make_desk(folder, replies, front_end=FakeFrontEnd()))
        record = await d.store.sessions.create("Random")
        with anyio.fail_after(10):  # a turn that can't be cancelled shows as an error, not as a test that hangs
            async with anyio.create_task_group() as group:
                for action in ["send", *actions]:
                    await act(d, action, record.id, group, sinks, under_way)
                while d.manager.is_running(record.id) or under_way:  # a send may still be on its way in
                    await act(d, "cancel", record.id, group, sinks, under_way)
                    await anyio.sleep(0.001)
        stored, next_seq = await d.manager.events(record.id)
        check_timeline(stored)
        assert stored[-1]["seq"] == next_seq - 1
        live = sorted((event for sink in sinks for event in sink), key=lambda event: event["seq"])
        assert live == list(stored)
        sessions = [record, *await d.store.sessions.list(parent=record.id)]
        for session in sessions:
            messages = await d.store.sessions.messages(session.id)
            check_history(messages)
            assert await d.store.sessions.open_calls(session.id) == []
            mended = normalise(messages)
            assert normalise(mended) == mended

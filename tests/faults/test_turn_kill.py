"""kill -9 in the middle of a turn: the question is kept, nothing runs again by itself, and the conversation goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from astroresearch import crash
from astroresearch.engine.history import normalise
from tests.unit.agents.conftest import check_history, check_timeline, make_desk

REPO = Path(__file__).resolve().parents[2]
POINTS = [
    "message.before_commit:1",  # the system prompt
    "message.before_commit:2",  # the question
    "message.committed:2",
    "turn.streaming:1",
    "message.before_commit:3",  # the assistant's calls
    "message.committed:3",
    "tool.started:1",
    "tool.started:3",
    "tool.running:2",
    "tool.before_finish:1",
    "tool.finished:1",
    "tool.finished:3",
    "turn.streaming:4",
    "event.before_commit:1",
    "turn.finished:1",
]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")


@pytest.mark.parametrize("point", POINTS)
async def test_a_killed_turn_is_mended(tmp_path: Path, point: str) -> None:
    environment = {**os.environ, crash.VARIABLE: point, "PYTHONPATH": f"{REPO / 'server'}:{REPO}"}
    child = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-m", "tests.faults.turn_child", str(tmp_path)],
        cwd=REPO, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr
    async with make_desk(tmp_path, {"turns": [["Never."], ["On we go."]]}) as d:
        (record,) = await d.store.sessions.list()
        kept = [m.meta["text"] for m in await d.store.sessions.messages(record.id) if m.role == "user"]
        acknowledged = point.split(":")[0] != "message.before_commit" or point.endswith(":3")
        assert kept == (["What are the ripples?"] if acknowledged else [])
        replay, next_seq = await d.manager.events(record.id)
        if replay:
            check_timeline(replay)
        outcome = await d.send("Go on", record.id)
        assert outcome.stop_reason == "end_turn"
        assert d.events[0]["seq"] == next_seq
        stored, _ = await d.manager.events(record.id)
        check_timeline(stored)
        messages = await d.store.sessions.messages(record.id)
        check_history(messages)
        assert await d.store.sessions.open_calls(record.id) == []
        assert d.library.notes == []
        sent = d.model.requests[-1].messages
        assert list(sent[: len(messages) - 1]) == list(normalise(messages))[: len(sent)]

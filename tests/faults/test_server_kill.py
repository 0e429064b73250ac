"""The real server over stdio: killed in the middle of a turn, and two of them on one library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.lsp.client import Client, RemoteError, connect

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")

READ = {"name": "glob_files", "arguments": {"pattern": "**/*.tex"}}
NOTE = {"name": "save_note", "arguments": {"text": "Saved by the assistant."}}
SCRIPT = {"turns": [[{"thought": "Look.", "calls": [READ, NOTE]}, {"text": "Done."}], [{"text": "Going on."}]]}


@asynccontextmanager
async def server(tmp_path: Path, script: Any, name: str = "script", **env: str) -> AsyncIterator[Client]:
    workspace, home, file = tmp_path / "paper", tmp_path / "home", tmp_path / f"{name}.json"
    workspace.mkdir(exist_ok=True)
    (workspace / "main.tex").write_text("\\documentclass{article}\n")
    file.write_text(json.dumps(script))
    variables = {"ASTRORESEARCH_HOME": str(home), "ASTRORESEARCH_SCRIPT": str(file), "ASTRORESEARCH_MODEL": "scripted"}
    async with connect(workspace, env=variables | env, stderr=subprocess.DEVNULL) as client:
        yield client


async def send(client: Client, text: str, **more: Any) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The answer (None: the server died) and the events that were shown."""
    shown: list[dict[str, Any]] = []
    client.progress[text] = lambda value: shown.append(value["event"]) if "event" in value else None
    try:
        with anyio.fail_after(40):
            answer = await client.request("astroresearch/chat/send", {"text": text, "workDoneToken": text, **more})
    except RemoteError:
        return None, shown
    return answer, shown


def check_timeline(events: list[dict[str, Any]]) -> None:
    """No gaps, and everything that began ended once."""
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    started = [e["id"] for e in events if e["type"] == "tool.start"]
    assert sorted(started) == sorted(e["id"] for e in events if e["type"] == "tool.end")
    assert events[-1]["type"] == "done"


POINTS = [
    "message.committed:3",
    "turn.streaming:1",
    "tool.started:1",
    "tool.running:1",
    "tool.running:2",
    "note.before_commit:1",
    "note.committed:1",
    "tool.before_finish:1",
    "tool.finished:2",
    "turn.finished:1",
]


@pytest.mark.parametrize("point", POINTS)
async def test_a_server_that_is_killed_goes_on_where_it_was(tmp_path: Path, point: str) -> None:
    async with server(tmp_path, SCRIPT, ASTRORESEARCH_CRASH_AT=point) as client:
        answer, shown = await send(client, "Please look.")
    assert answer is None, "it was not killed"
    async with server(tmp_path, SCRIPT) as client:
        (session,) = (await client.request("astroresearch/session/list", {}))["sessions"]
        reference = {"sessionId": session["id"]}
        replay = (await client.request("astroresearch/session/events", {**reference, "limit": 1000}))["events"]
        check_timeline(replay)
        for event in shown:  # text of the last quarter of a second may be lost, what the log builds on may not
            if event["type"] in ("session", "tool.start"):
                assert replay[event["seq"] - 1] == event
        notes = (await client.request("astroresearch/notes/list", {}))["notes"]

        answer, later = await send(client, "Go on.", **reference)
        assert answer
        assert (answer["stopReason"], answer["answer"]) == ("end_turn", "Going on.")
        assert later[0]["seq"] == len(replay) + 1
        whole = (await client.request("astroresearch/session/events", {**reference, "limit": 1000}))["events"]
        assert whole == replay + later
        messages = (await client.request("astroresearch/session/get", reference))["messages"]
        called = [c["id"] for m in messages for c in m.get("toolCalls", [])]
        assert sorted(called) == sorted(m["toolCallId"] for m in messages if m["role"] == "tool")
        again = (await client.request("astroresearch/notes/list", {}))["notes"]
        assert again == notes, "nothing with an effect runs again by itself"
        assert len(notes) <= 1


async def use(client: Client, name: str, seconds: float, turns: int, notes: list[str], errors: list[str]) -> None:
    end = anyio.current_time() + seconds
    session: dict[str, str] = {}
    number = 0
    while anyio.current_time() < end:
        try:
            note = await client.request("astroresearch/notes/create", {"text": f"{name}: note {number}"})
            notes.append(note["id"])
            if number % 5 == 0 and number // 5 < turns:
                answer, shown = await send(client, f"{name} asks {number}", **session)
                assert answer
                assert answer["stopReason"] == "end_turn", answer
                assert shown[-1]["type"] == "done"
                session = {"sessionId": answer["sessionId"]}
        except RemoteError as error:
            errors.append(str(error))
        number += 1
    events = (await client.request("astroresearch/session/events", {**session, "limit": 20_000}))["events"]
    check_timeline(events)


async def share(tmp_path: Path, servers: int, seconds: float) -> tuple[list[str], list[str]]:
    turns = 200
    script = [{"match": "asks", "calls": [READ]}, {"text": "An answer."}]
    notes: list[str] = []
    errors: list[str] = []
    noticed = [anyio.Event() for _ in range(servers)]

    async def one(number: int) -> None:
        name = f"window {number}"
        async with server(tmp_path, script, name) as client:
            client.on_notification["astroresearch/didChangeNotes"] = lambda params: (
                None if (params or {}).get("noteId") else noticed[number].set()
            )
            await use(client, name, seconds, turns, notes, errors)

    async with anyio.create_task_group() as group:
        for number in range(servers):
            group.start_soon(one, number)
    async with server(tmp_path, script) as client:
        found: list[str] = []
        while page := (await client.request("astroresearch/notes/list", {"limit": 500, "offset": len(found)}))["notes"]:
            found += [n["id"] for n in page]
        sessions = (await client.request("astroresearch/session/list", {}))["sessions"]
    assert len(sessions) == servers
    assert sorted(found) == sorted(notes)
    assert all(event.is_set() for event in noticed), "a window did not notice the other's notes"
    return notes, errors


@pytest.mark.timeout(300)
async def test_two_servers_share_a_library(tmp_path: Path) -> None:
    notes, errors = await share(tmp_path, 2, 20)
    assert errors == []
    assert len(notes) > 10


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_four_servers_share_a_library(tmp_path: Path) -> None:
    _, errors = await share(tmp_path, 4, 60)
    assert errors == []

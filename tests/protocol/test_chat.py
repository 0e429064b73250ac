"""The main job over real stdio: a turn with tools, its stream, the three ways to cancel, the queue, questions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.lsp.client import Client, RemoteError

THREE = [
    {"name": "glob_files", "arguments": {"pattern": "**/*.tex"}},
    {"name": "grep_files", "arguments": {"pattern": "citep"}},
    {"name": "read_file", "arguments": {"path": "main.tex"}},
]


class Stream:
    """What came on one token."""

    def __init__(self, client: Client, token: str) -> None:
        self.values: list[dict[str, Any]] = []
        self.token = token
        self._waiting: list[tuple[Any, anyio.Event]] = []
        client.progress[token] = self._take

    def _take(self, value: dict[str, Any]) -> None:
        self.values.append(value)
        for wanted, event in self._waiting:
            if wanted(value):
                event.set()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [v["event"] for v in self.values if "event" in v]

    async def until(self, kind: str) -> dict[str, Any]:
        """Waits for an event of this type."""
        event = anyio.Event()
        self._waiting.append((lambda v: v.get("event", {}).get("type") == kind, event))
        if not any(e["type"] == kind for e in self.events):
            with anyio.fail_after(20):
                await event.wait()
        return next(e for e in self.events if e["type"] == kind)

    def check(self) -> None:
        """One begin, one end, events without gaps, every tool ended once, `done` last."""
        kinds = [v["kind"] for v in self.values]
        assert kinds[0] == "begin"
        assert kinds[-1] == "end"
        assert Counter(kinds)["begin"] == Counter(kinds)["end"] == 1
        assert all(isinstance(v.get("message"), str) for v in self.values)
        assert self.values[0]["title"]
        numbers = [e["seq"] for e in self.events]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        started = [e["id"] for e in self.events if e["type"] == "tool.start"]
        ended = [e["id"] for e in self.events if e["type"] == "tool.end"]
        assert sorted(started) == sorted(ended)
        assert [e["type"] for e in self.events].index("session") == 0
        assert [e["type"] for e in self.events][-1] == "done"


async def test_a_turn_with_three_parallel_tools_streams_and_is_replayed(server: Any, workspace: Path) -> None:
    script = [{"thought": "Look around.", "calls": THREE}, {"text": "The manuscript cites Fabian."}]
    async with server(workspace, script=script) as client:
        stream = Stream(client, "t")
        answer = await client.request("astroresearch/chat/send", {"text": "What is cited?", "workDoneToken": "t"})
        stream.check()
        assert answer["answer"] == "The manuscript cites Fabian."
        assert answer["stopReason"] == "end_turn"
        ends = [e for e in stream.events if e["type"] == "tool.end"]
        assert [e["status"] for e in ends] == ["completed"] * 3
        assert any("Fabian1994" in e["preview"] for e in ends)
        stored = await client.request("astroresearch/session/events", {"sessionId": answer["sessionId"]})
        assert stored["events"] == stream.events
    async with server(workspace, script=script) as again:
        replayed = await again.request("astroresearch/session/events", {"sessionId": answer["sessionId"]})
        assert replayed["events"] == stream.events


async def _cancelled(server: Any, workspace: Path, tmp_path: Path, stop: Any) -> tuple[Stream, Any, Any]:
    gate = str(tmp_path / "never")
    script = {"turns": [[{"text": "first words", "chunks": ["first ", "words"]}, {"text": "x"}], [{"text": "Second."}]]}
    script["turns"][0] = [{"calls": THREE}, {"text": "late", "wait_for": gate}]
    async with server(workspace, script=script) as client:
        stream = Stream(client, "t")
        outcome: dict[str, Any] = {}

        async def ask(scope: anyio.CancelScope) -> None:
            with scope:
                try:
                    params = {"text": "Wait.", "workDoneToken": "t"}
                    outcome["answer"] = await client.request("astroresearch/chat/send", params)
                except RemoteError as error:
                    outcome["error"] = error.remote_code

        scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, scope)
            session = (await stream.until("session"))["sessionId"]
            await stream.until("tool.end")
            await stop(client, session, scope)
            await stream.until("done")
        following = await client.request("astroresearch/chat/send", {"text": "Go on.", "sessionId": session})
        return stream, outcome, following


async def test_chat_cancel_stops_the_turn_and_the_next_one_works(server: Any, workspace: Path, tmp_path: Path) -> None:
    async def stop(client: Client, session: str, _: anyio.CancelScope) -> None:
        await client.notify("astroresearch/chat/cancel", {"sessionId": session})

    stream, outcome, following = await _cancelled(server, workspace, tmp_path, stop)
    stream.check()
    assert outcome["answer"]["stopReason"] == "cancelled"
    assert following["answer"] == "Second."


async def test_cancelling_the_progress_stops_the_turn(server: Any, workspace: Path, tmp_path: Path) -> None:
    async def stop(client: Client, session: str, _: anyio.CancelScope) -> None:
        await client.notify("window/workDoneProgress/cancel", {"token": "t"})

    stream, outcome, following = await _cancelled(server, workspace, tmp_path, stop)
    stream.check()
    assert outcome["answer"]["stopReason"] == "cancelled"
    assert following["stopReason"] == "end_turn"


async def test_cancelling_the_request_stops_the_turn(server: Any, workspace: Path, tmp_path: Path) -> None:
    async def stop(client: Client, session: str, scope: anyio.CancelScope) -> None:
        scope.cancel()

    stream, _, following = await _cancelled(server, workspace, tmp_path, stop)
    stream.check()
    assert stream.events[-1]["stopReason"] == "cancelled"
    assert following["stopReason"] == "end_turn"


async def test_a_question_while_one_runs_is_queued(server: Any, workspace: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = {"turns": [[{"text": "One.", "wait_for": str(gate)}], [{"text": "Two."}]]}
    async with server(workspace, script=script) as client:
        first, second = Stream(client, "a"), Stream(client, "b")
        answers: dict[str, Any] = {}

        async def ask() -> None:
            answers["first"] = await client.request("astroresearch/chat/send", {"text": "1", "workDoneToken": "a"})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            session = (await first.until("session"))["sessionId"]
            params = {"text": "2", "sessionId": session, "workDoneToken": "b"}
            queued = await client.request("astroresearch/chat/send", params)
            assert queued["queued"] is True
            assert queued["position"] == 1
            gate.touch()
            await second.until("done")
        assert answers["first"]["answer"] == "One."
        second.check()
        text = "".join(e["text"] for e in second.events if e["type"] == "message.delta")
        assert text == "Two."


EDIT = [
    {"calls": [{"name": "read_file", "arguments": {"path": "main.tex"}}]},
    {"calls": [{"name": "file_edit", "arguments": {
        "path": "main.tex", "old_string": "Cool cores", "new_string": "Cool-core clusters"}}]},
    {"text": "Edited."},
]  # fmt: skip


@pytest.mark.parametrize("choice", ["once", "deny"])
async def test_an_edit_asks_with_its_diff_and_runs_only_after_a_yes(server: Any, workspace: Path, choice: str) -> None:
    asked: list[Any] = []

    async def permission(request: Any) -> Any:
        asked.append(request)
        return {"id": request["id"], "choice": choice}

    async with server(
        workspace,
        script=EDIT,
        experimental={"permission": True},
        on_request={"astroresearch/permission/request": permission},
    ) as client:
        answer = await client.request("astroresearch/chat/send", {"text": "Change it."})
    assert answer["stopReason"] == "end_turn"
    assert len(asked) == 1
    assert "Cool-core clusters" in asked[0]["detail"]
    assert ("Cool-core clusters" in (workspace / "main.tex").read_text()) is (choice == "once")


async def test_without_our_front_end_the_question_is_a_message_request(server: Any, workspace: Path) -> None:
    async def message(request: Any) -> Any:
        assert "Cool-core clusters" in request["message"]
        return next(a for a in request["actions"] if a["title"] == "Allow once")

    handlers = {"window/showMessageRequest": message}
    async with server(workspace, script=EDIT, on_request=handlers) as client:
        await client.request("astroresearch/chat/send", {"text": "Change it."})
    assert "Cool-core clusters" in (workspace / "main.tex").read_text()


async def test_with_nobody_to_ask_nothing_is_changed(server: Any, workspace: Path) -> None:
    before = (workspace / "main.tex").read_text()
    async with server(workspace, script=EDIT) as client:
        stream = Stream(client, "t")
        await client.request("astroresearch/chat/send", {"text": "Change it.", "workDoneToken": "t"})
    assert (workspace / "main.tex").read_text() == before
    assert [e["status"] for e in stream.events if e["type"] == "tool.end"] == ["completed", "denied"]


async def test_an_unknown_session_is_an_error_and_no_new_session(server: Any, workspace: Path) -> None:
    async with server(workspace, script=[{"text": "x"}]) as client:
        with pytest.raises(RemoteError) as caught:
            await client.request("astroresearch/chat/send", {"text": "x", "sessionId": "gone"})
        assert caught.value.kind == "not_found"
        assert (await client.request("astroresearch/session/list", {}))["sessions"] == []


async def test_the_command_twin_does_the_same(server: Any, workspace: Path) -> None:
    async with server(workspace, script=[{"text": "By command."}]) as client:
        params = {"command": "astroresearch.chat.send", "arguments": [{"text": "x"}]}
        assert (await client.request("workspace/executeCommand", params))["answer"] == "By command."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("crlf", b"\\section{A}\r\nCool cores here.\r\nEnd.\r\n"),
        ("bom", b"\xef\xbb\xbf\\section{A}\nCool cores here.\n"),
        ("latin-1", b"\\section{M\xfcller}\nCool cores here.\n"),
        ("no end", b"Cool cores here."),
    ],
)
async def test_an_edit_changes_no_byte_outside_it(server: Any, workspace: Path, name: str, content: bytes) -> None:
    async def permission(request: Any) -> Any:
        return {"id": request["id"], "choice": "once"}

    (workspace / "main.tex").write_bytes(content)
    handlers = {"astroresearch/permission/request": permission}
    async with server(workspace, script=EDIT, experimental={"permission": True}, on_request=handlers) as client:
        await client.request("astroresearch/chat/send", {"text": "Change it."})
    assert (workspace / "main.tex").read_bytes() == content.replace(b"Cool cores", b"Cool-core clusters")


@pytest.mark.parametrize("answer", [{"id": "other", "choice": "once"}, {"choice": "yes"}, None, "once", {"id": None}])
async def test_an_answer_that_does_not_match_is_a_deny(server: Any, workspace: Path, answer: Any) -> None:
    async def permission(request: Any) -> Any:
        return answer

    handlers = {"astroresearch/permission/request": permission}
    before = (workspace / "main.tex").read_text()
    async with server(workspace, script=EDIT, experimental={"permission": True}, on_request=handlers) as client:
        await client.request("astroresearch/chat/send", {"text": "Change it."})
    assert (workspace / "main.tex").read_text() == before


async def test_allowed_for_the_session_does_not_ask_again(server: Any, workspace: Path) -> None:
    asked: list[str] = []

    async def permission(request: Any) -> Any:
        asked.append(request["title"])
        return {"id": request["id"], "choice": "session"}

    second = {"name": "file_edit", "arguments": {"path": "main.tex", "old_string": "shine", "new_string": "glow"}}
    script = {"turns": [EDIT, [{"calls": [EDIT[0]["calls"][0]]}, {"calls": [second]}, {"text": "Again."}]]}
    handlers = {"astroresearch/permission/request": permission}
    options = {"initialization_options": {"trusted": True}}
    async with server(
        workspace, script=script, experimental={"permission": True}, on_request=handlers, **options
    ) as client:
        first = await client.request("astroresearch/chat/send", {"text": "Change it."})
        await client.request("astroresearch/chat/send", {"text": "And that.", "sessionId": first["sessionId"]})
    assert len(asked) == 1
    assert "glow" in (workspace / "main.tex").read_text()


async def test_an_edit_of_a_buffer_that_moved_on_is_refused(server: Any, workspace: Path) -> None:
    applied: list[Any] = []

    async def apply(request: Any) -> Any:
        applied.append(request)
        return {"applied": False, "failureReason": "the document changed meanwhile"}

    async def permission(request: Any) -> Any:
        return {"id": request["id"], "choice": "once"}

    handlers = {"astroresearch/permission/request": permission, "workspace/applyEdit": apply}
    before = (workspace / "main.tex").read_text()
    async with server(
        workspace, script=EDIT, takes_edits=True, experimental={"permission": True}, on_request=handlers
    ) as client:
        stream = Stream(client, "t")
        await client.open_document(workspace / "main.tex")
        await client.request("astroresearch/chat/send", {"text": "Change it.", "workDoneToken": "t"})
    assert applied[0]["edit"]["documentChanges"][0]["textDocument"]["version"] == 1
    assert [e["status"] for e in stream.events if e["type"] == "tool.end"] == ["completed", "failed"]
    assert (workspace / "main.tex").read_text() == before


async def test_a_mode_that_is_reserved_says_so(server: Any, workspace: Path) -> None:
    async with server(workspace, script=[{"text": "Yes."}]) as client:
        stream = Stream(client, "t")
        params = {"text": "Well?", "mode": "coordinator", "workDoneToken": "t"}
        assert (await client.request("astroresearch/chat/send", params))["answer"] == "Yes."
        assert any(e["type"] == "notice" and "coordinator" in e["text"] for e in stream.events)

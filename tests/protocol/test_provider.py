"""The same turn over stdio against a strict provider that cuts, stalls, repeats ids, sends bad JSON and worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.lsp.client import RemoteError
from tests.fakes.provider import (
    DONE,
    Cut,
    Endless,
    FakeProvider,
    Reply,
    Reset,
    Stall,
    call_delta,
    calls,
    chunk,
    error,
    overflow,
    rate_limited,
    raw,
    text,
)
from tests.protocol.test_chat import Stream

KEY = "sk-canary-0123456789abcdef"
THREE = (
    ("glob_files", {"pattern": "**/*.tex"}),
    ("grep_files", {"pattern": "citep"}),
    ("read_file", {"path": "main.tex"}),
)


def _env(provider: FakeProvider) -> dict[str, str]:
    return {
        "ASTRORESEARCH_MODEL": "fake",
        "OPENAI_BASE_URL": provider.base_url,
        "OPENAI_API_KEY": KEY,
    }


async def _turn(
    server: Any, workspace: Path, replies: list[Reply], **settings: Any
) -> tuple[Any, Stream, FakeProvider]:
    async with FakeProvider(replies) as provider:
        options = {"settings": settings} if settings else {}
        async with server(workspace, env=_env(provider), initialization_options=options) as client:
            stream = Stream(client, "t")
            answer = await client.request("astroresearch/chat/send", {"text": "What is cited?", "workDoneToken": "t"})
            stream.check()
            following = await client.request(
                "astroresearch/chat/send", {"text": "And now?", "sessionId": answer["sessionId"]}
            )
            assert following["stopReason"] == "end_turn", following
        assert not provider.refused
    return answer, stream, provider


async def test_three_parallel_calls_and_an_answer(server: Any, workspace: Path) -> None:
    answer, stream, _ = await _turn(server, workspace, [calls(*THREE), text("Fabian ", "1994.")])
    assert answer["answer"] == "Fabian 1994."
    assert answer["stopReason"] == "end_turn"
    assert [e["status"] for e in stream.events if e["type"] == "tool.end"] == ["completed"] * 3


async def test_ids_that_repeat_in_every_answer(server: Any, workspace: Path) -> None:
    replies = [
        calls(THREE[0], THREE[1], ids=("call_0", "call_1")),
        calls(THREE[2], ids=("call_0",)),
        text("Done."),
    ]
    answer, stream, _ = await _turn(server, workspace, replies)
    assert answer["answer"] == "Done."
    ids = [e["id"] for e in stream.events if e["type"] == "tool.start"]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("end", [Cut(), Reset()], ids=["cut", "reset"])
async def test_a_stream_that_breaks_in_the_text_keeps_what_came(server: Any, workspace: Path, end: Any) -> None:
    broken = raw(chunk({"role": "assistant", "content": "Half an"}), chunk({"content": " answer"}), end)
    answer, _, _ = await _turn(server, workspace, [broken])
    assert answer["stopReason"] == "interrupted"
    assert answer["answer"].startswith("Half an answer")


async def test_a_stream_that_breaks_in_a_call_runs_nothing(server: Any, workspace: Path) -> None:
    broken = raw(chunk(call_delta(index=0, id="c1", name="file_edit", arguments='{"path": "ma')), Cut())
    answer, stream, _ = await _turn(server, workspace, [broken, broken, broken, broken])
    assert answer["stopReason"] in ("interrupted", "error")
    assert not [e for e in stream.events if e["type"] == "tool.end" and e["status"] == "completed"]


async def test_a_stall_is_a_time_out_that_says_so(server: Any, workspace: Path) -> None:
    stalled = raw(chunk({"content": "Wait"}), Stall(comment=True))
    answer, stream, _ = await _turn(server, workspace, [stalled], model={"idle_timeout_s": 1.0})
    assert answer["stopReason"] == "interrupted"
    assert any("1 s" in str(e) or "second" in str(e) for e in stream.events)


async def test_bad_json_in_a_frame(server: Any, workspace: Path) -> None:
    answer, _, _ = await _turn(server, workspace, [raw(chunk({"content": "So far"}), 'data: {"id": \n\n', DONE)])
    assert answer["stopReason"] == "interrupted"
    assert answer["answer"].startswith("So far")


async def test_arguments_that_are_no_json_are_an_answer_for_the_model(server: Any, workspace: Path) -> None:
    answer, stream, _ = await _turn(server, workspace, [calls(("read_file", '{"path": "main')), text("Sorry.")])
    assert answer["answer"] == "Sorry."
    assert [e["status"] for e in stream.events if e["type"] == "tool.end"] == ["failed"]


async def test_an_unknown_tool_is_an_answer_for_the_model(server: Any, workspace: Path) -> None:
    answer, stream, _ = await _turn(server, workspace, [calls(("launch_rocket", {})), text("There is none.")])
    assert answer["answer"] == "There is none."
    assert [e["status"] for e in stream.events if e["type"] == "tool.end"] == ["failed"]


async def test_a_rate_limit_is_waited_for(server: Any, workspace: Path) -> None:
    answer, stream, _ = await _turn(server, workspace, [rate_limited(**{"Retry-After": "0"}), text("Now.")])
    assert answer["answer"] == "Now."
    assert any(e["type"] == "notice" for e in stream.events)


async def test_a_wrong_key_names_the_setting_and_not_the_key(server: Any, workspace: Path) -> None:
    refused = error("401 Unauthorized", {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "x"}})
    answer, stream, _ = await _turn(server, workspace, [refused])
    assert answer["stopReason"] == "error"
    said = str(next(e for e in stream.events if e["type"] == "error"))
    assert "key" in said.lower()
    assert KEY not in str(stream.values)
    assert KEY not in str(answer)


async def test_an_html_page_is_an_error_that_says_so(server: Any, workspace: Path) -> None:
    page = raw("<html><body>gateway</body></html>", content_type="text/html")
    answer, stream, _ = await _turn(server, workspace, [page])
    assert answer["stopReason"] == "error"
    assert any("html" in str(e).lower() for e in stream.events if e["type"] == "error")


async def test_an_overflow_ends_with_the_sizes(server: Any, workspace: Path) -> None:
    answer, stream, _ = await _turn(server, workspace, [overflow()])
    assert answer["stopReason"] == "error"
    assert any(e["type"] == "error" for e in stream.events)


async def test_the_same_call_for_ever_ends_as_a_loop(server: Any, workspace: Path) -> None:
    answer, _, _ = await _turn(server, workspace, [calls(THREE[0])] * 8)
    assert answer["stopReason"] == "loop"


async def test_fifty_calls_at_once(server: Any, workspace: Path) -> None:
    many = [("grep_files", {"pattern": f"word{i}"}) for i in range(50)]
    answer, stream, _ = await _turn(server, workspace, [calls(*many), text("All read.")])
    assert answer["answer"] == "All read."
    assert len([e for e in stream.events if e["type"] == "tool.end"]) == 50


async def test_lone_surrogates_and_a_megabyte_token_survive(server: Any, workspace: Path) -> None:
    odd = raw(
        'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        '[{"index":0,"delta":{"content":"\\ud800 and \\u0000"},"finish_reason":null}]}\n\n',
        chunk({"content": "x" * 1_000_000}),
        chunk({}, "stop"),
        DONE,
    )
    answer, _, _ = await _turn(server, workspace, [odd])
    assert len(answer["answer"]) >= 1_000_000


async def test_cancels_close_the_models_sockets(server: Any, workspace: Path) -> None:
    turns = 20
    endless = raw(Endless(chunk({"content": "on and on "}), pause_s=0.02))
    async with FakeProvider([], default=endless) as provider, server(workspace, env=_env(provider)) as client:
        streams = [Stream(client, f"t{i}") for i in range(turns)]
        codes: list[int] = []

        async def ask(number: int, scope: anyio.CancelScope) -> None:
            with scope:
                try:
                    params = {"text": "Talk.", "workDoneToken": f"t{number}"}
                    await client.request("astroresearch/chat/send", params)
                except RemoteError as error:
                    codes.append(error.remote_code)

        async with anyio.create_task_group() as tasks:
            scopes = [anyio.CancelScope() for _ in range(turns)]
            for number, scope in enumerate(scopes):
                tasks.start_soon(ask, number, scope)
            for stream in streams:
                await stream.until("message.delta")
            for scope in scopes:
                scope.cancel()
            for stream in streams:
                await stream.until("done")
        assert all(stream.events[-1]["stopReason"] == "cancelled" for stream in streams)
        with anyio.fail_after(5):
            while not all(request.closed_early for request in provider.requests):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        assert len(provider.requests) == turns

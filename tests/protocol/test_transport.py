"""The message loop: every request is answered once, whatever it holds; each override of pygls has a test here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astroresearch.lsp.client import RemoteError
from tests.protocol.conftest import RawServer


def test_a_request_before_initialize_is_refused(raw: RawServer) -> None:
    answer = raw.request(1, "astroresearch/status", {})
    assert answer["error"]["code"] == -32002


def test_initialize_declares_methods_and_events(raw: RawServer) -> None:
    ours = raw.initialize()["result"]["capabilities"]["experimental"]["astroresearch"]
    assert ours["protocolVersion"] == 1
    assert "astroresearch/chat/send" in ours["methods"]
    assert "tool.start" in ours["events"]


def test_a_second_initialize_is_refused(raw: RawServer) -> None:
    raw.initialize()
    assert raw.request(1, "initialize", {"capabilities": {}})["error"]["code"] == -32600


def test_shutdown_then_exit_ends_with_zero(raw: RawServer) -> None:
    raw.initialize()
    assert raw.request(1, "shutdown")["result"] is None
    assert raw.request(2, "astroresearch/status", {})["error"]["code"] == -32600
    raw.send({"jsonrpc": "2.0", "method": "exit"})
    assert raw.process.wait(10) == 0


def test_exit_without_shutdown_ends_with_one(raw: RawServer) -> None:
    raw.initialize()
    raw.send({"jsonrpc": "2.0", "method": "exit"})
    assert raw.process.wait(10) == 1


def test_end_of_the_stream_ends_the_server(raw: RawServer) -> None:
    raw.initialize()
    assert raw.close() == 0


def test_unfit_parameters_of_a_custom_request_name_the_field(raw: RawServer) -> None:
    raw.initialize()
    error = raw.request(1, "astroresearch/papers/search", {"limit": "many"})["error"]
    assert error["code"] == -32602
    assert "query" in error["message"]
    assert "limit" in error["message"]


def test_unfit_parameters_of_a_standard_request_are_answered(raw: RawServer) -> None:
    raw.initialize()
    error = raw.request(1, "textDocument/hover", {"position": "here"})["error"]
    assert error["code"] == -32602


def test_unknown_methods_and_commands_are_answered(raw: RawServer) -> None:
    raw.initialize()
    assert raw.request(1, "astroresearch/nothing", {})["error"]["code"] == -32601
    assert raw.request(2, "workspace/executeCommand", {"command": "rm"})["error"]["code"] == -32602


@pytest.mark.parametrize(
    "frame",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 4\r\n\r\nnull",
        b"nonsense\r\n\r\nContent-Length: x\r\n\r\n",
        b"Content-Length: 17\r\nX: y\r\n\r\n{\"jsonrpc\":\"2.0\"}",
        b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
    ],
)  # fmt: skip
def test_broken_frames_cost_themselves_only(raw: RawServer, frame: bytes) -> None:
    raw.initialize()
    raw.frame(frame)
    assert "result" in raw.request(7, "astroresearch/session/list", {})


def test_nested_jsonrpc_and_odd_keys_stay_data(raw: RawServer) -> None:
    raw.initialize()
    params = {"text": "n", "tags": [], "type_name": "evil thing", "class": 1, "x": {"jsonrpc": "2.0", "id": 1}}
    assert raw.request(1, "astroresearch/notes/create", params)["result"]["text"] == "n"


def test_no_traceback_or_path_reaches_the_editor(raw: RawServer) -> None:
    raw.initialize()
    answer = raw.request(1, "astroresearch/session/get", {"sessionId": "nope"})
    assert answer["error"]["code"] == -32803
    assert "Traceback" not in str(answer)
    assert ".py" not in str(answer)


def test_an_editor_that_answers_null_to_everything_stays_served(home: Path) -> None:
    """Emacs 28 does so for requests that it does not know."""
    raw = RawServer(home)
    raw.send(
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {
            "window": {"workDoneProgress": True}, "workspace": {"configuration": True}}}}
    )  # fmt: skip
    raw.answer(0)
    raw.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
    raw.send({"jsonrpc": "2.0", "id": 1, "method": "astroresearch/session/list", "params": {}})
    while (message := raw.receive()).get("id") != 1 or "method" in message:
        if "method" in message and "id" in message:
            raw.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
    assert message["result"] == {"sessions": []}
    raw.close()


async def test_a_thousand_requests_at_once_are_each_answered_once(server: Any, workspace: Path) -> None:
    async with server(workspace) as client:
        answers: list[Any] = []

        async def one() -> None:
            answers.append(await client.request("astroresearch/notes/list", {}))

        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(one)
        assert len(answers) == 1000


async def test_a_storm_of_cancels_is_answered(server: Any, workspace: Path) -> None:
    async with server(workspace) as client:
        await client.request("astroresearch/status", {})
        codes: list[int] = []

        async def one(scope: anyio.CancelScope) -> None:
            with scope:
                try:
                    await client.request("astroresearch/library/search", {"query": "cluster"})
                except RemoteError as error:
                    codes.append(error.remote_code)

        async with anyio.create_task_group() as tasks:
            scopes = [anyio.CancelScope() for _ in range(200)]
            for scope in scopes:
                tasks.start_soon(one, scope)
            await anyio.lowlevel.checkpoint()
            for scope in scopes:
                scope.cancel()
        assert await client.request("astroresearch/notes/list", {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(
    ["textDocument/completion", "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/cancelRequest",
     "workspace/executeCommand", "window/workDoneProgress/cancel", "astroresearch/chat/send", "astroresearch/notes/create",
     "astroresearch/papers/text", "workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles", "x/y"]
)  # fmt: skip


def test_random_messages_never_end_the_server(home: Path) -> None:
    raw = RawServer(home)
    raw.initialize()
    ids = iter(range(10, 1_000_000))

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(METHODS, JSON, st.booleans())
    def feed(method: str, params: Any, is_request: bool) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if is_request:
            number = next(ids)
            raw.send(message | {"id": number})
            assert raw.answer(number) is not None
        else:
            raw.send(message)

    feed()
    assert "result" in raw.request(5, "astroresearch/session/list", {})
    raw.close()


STANDARD = [
    "textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references",
    "textDocument/prepareRename", "textDocument/rename", "textDocument/diagnostic", "textDocument/codeAction",
    "textDocument/documentSymbol", "textDocument/foldingRange", "textDocument/documentLink", "workspace/symbol",
    "workspace/executeCommand", "completionItem/resolve", "codeAction/resolve",
]  # fmt: skip


@pytest.mark.parametrize(
    "params", [None, [], 7, "x", {"textDocument": 3}, {"textDocument": {"uri": 1}, "position": []}]
)
def test_wrong_types_in_standard_methods_are_answered(raw: RawServer, params: Any) -> None:
    raw.initialize()
    for number, method in enumerate(STANDARD, 10):
        answer = raw.request(number, method, params)
        assert "error" in answer or answer["result"] is None or isinstance(answer["result"], (dict, list)), method
        assert "Traceback" not in str(answer)
    assert "result" in raw.request(5, "astroresearch/session/list", {})


def test_an_id_that_is_in_use_is_refused_and_the_first_request_answered(raw: RawServer) -> None:
    raw.initialize()
    for _ in range(2):
        raw.send({"jsonrpc": "2.0", "id": "same", "method": "astroresearch/status", "params": {}})
    answers = [raw.answer("same"), raw.answer("same")]
    assert sorted("error" in answer for answer in answers) == [False, True]


def test_features_ask_of_documents_that_are_not_open(raw: RawServer) -> None:
    raw.initialize()
    document = {"uri": "file:///nowhere/a.tex"}
    raw.send({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": {**document, "version": 2}, "contentChanges": [{"text": "x"}]}})  # fmt: skip
    at = {"textDocument": document, "position": {"line": 0, "character": 0}}
    for number, method in enumerate(STANDARD[:4], 10):
        answer = raw.request(number, method, {**at, "context": {"triggerKind": 1, "includeDeclaration": True}})
        assert "error" not in answer, (method, answer)

"""Values that fit their type and still break things: huge numbers, half characters, paths that are no files, links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.lsp.client import Buffers, Client, RemoteError
from tests.unit.library.pdfs import draw, lines

HUGE = 10**30


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/list", {"offset": HUGE}),
        ("session/events", {"sessionId": "x", "fromSeq": HUGE}),
        ("notes/list", {"offset": HUGE}),
        ("notes/create", {"text": "x", "page": HUGE}),
        ("notes/create", {"text": "x", "line": HUGE}),
        ("papers/list", {"offset": HUGE}),
        ("papers/text", {"paper": "x", "page": HUGE}),
    ],
)
async def test_numbers_beyond_the_database_are_refused(server: Any, method: str, params: dict[str, Any]) -> None:
    async with server() as client:
        with pytest.raises(RemoteError) as caught:
            await client.request(f"astroresearch/{method}", params)
        assert caught.value.remote_code == -32602


async def test_half_characters_are_read_as_replacement_characters(server: Any, workspace: Path) -> None:
    half = "x\ud83cy"
    async with server(workspace, script=["Yes."]) as client:
        assert (await client.request("astroresearch/chat/send", {"text": half}))["answer"] == "Yes."
        note = await client.request("astroresearch/notes/create", {"text": half, "uri": half, "tags": [half]})
        assert note["text"] == note["place"]["uri"] == "x\ufffdy"
        assert len((await client.request("astroresearch/notes/list", {"tag": half}))["notes"]) == 1
        for method, name in (("session/get", "sessionId"), ("notes/get", "id")):
            with pytest.raises(RemoteError) as caught:
                await client.request(f"astroresearch/{method}", {name: half})
            assert caught.value.kind == "not_found"


@pytest.mark.parametrize("name", ["", ".", "paper.pdf", "a\0b", "~no-such-user-here/x.pdf"])
async def test_a_path_that_is_not_absolute_is_refused(server: Any, name: str) -> None:
    async with server() as client:
        with pytest.raises(RemoteError) as caught:
            await client.request("astroresearch/papers/import", {"paths": [name]})
        assert caught.value.kind == "invalid_input"


async def test_pipes_and_devices_are_refused_at_once(server: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "zeros.pdf").symlink_to("/dev/zero")
    paths = [str(tmp_path / "pipe.pdf"), str(tmp_path / "zeros.pdf")]
    async with server() as client:
        with anyio.fail_after(20):
            answer = await client.request("astroresearch/papers/import", {"paths": paths})
        assert [failure["reason"] for failure in answer["failed"]] == ["unreadable"] * 2


@pytest.mark.parametrize("steps", [1, 2, 4])
async def test_an_import_that_is_cancelled_leaves_whole_papers_only(
    server: Any, home: Path, tmp_path: Path, steps: int
) -> None:
    text = lines([f"Line {n} of a paper about the cooling of the gas in clusters of galaxies." for n in range(30)])
    paths = [str(draw(tmp_path / f"{n}.pdf", [text] * (n + 1))) for n in range(3)]
    async with server() as client:
        await _cancel_import(client, paths, steps)
        papers = (await client.request("astroresearch/papers/list", {}))["papers"]
        assert all(paper["state"] == "searchable" for paper in papers)
        files = {file.relative_to(home).as_posix() for file in (home / "papers").rglob("*") if file.is_file()}
        assert files == {paper["file"] for paper in papers}


async def _cancel_import(client: Client, paths: list[str], steps: int) -> None:
    seen: list[Any] = []
    due, over = anyio.Event(), anyio.Event()

    def take(value: dict[str, Any]) -> None:
        seen.append(value)
        if len(seen) >= steps:
            due.set()
        if value["kind"] == "end":
            due.set()
            over.set()

    client.progress["t"] = take
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await client.request("astroresearch/papers/import", {"paths": paths, "workDoneToken": "t"})

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await due.wait()
            scope.cancel()
        await over.wait()


async def test_an_edit_goes_to_the_buffer_that_was_opened_through_a_link(
    server: Any, workspace: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(workspace)
    script = [
        {"calls": [{"name": "read_file", "arguments": {"path": "main.tex"}}]},
        {"calls": [{"name": "file_edit", "arguments": {
            "path": "main.tex", "old_string": "Cool cores", "new_string": "Warm cores"}}]},
        "Edited.",
    ]  # fmt: skip

    async def permission(request: Any) -> Any:
        return {"id": request["id"], "choice": "once"}

    handlers = {"astroresearch/permission/request": permission}
    options: dict[str, Any] = {"experimental": {"permission": True}, "on_request": handlers, "takes_edits": True}
    async with server(link, script=script, **options) as client:
        buffers = Buffers(client)
        uri = await buffers.open(link / "main.tex")
        await client.request("astroresearch/chat/send", {"text": "Change it."})
        assert list(buffers.texts) == [uri]
        assert "Warm cores" in buffers.texts[uri]

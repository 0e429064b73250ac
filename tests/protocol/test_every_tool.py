"""Every tool in one turn of a real server, as a model calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from astroresearch.demo.papers import build_in_child
from astroresearch.demo.standin import Standin
from astroresearch.lsp.client import Client
from astroresearch.tools.registry import standard


def steps(paper: str) -> list[Any]:
    """The arguments of one call of each tool, in an order that works."""
    calls: dict[str, dict[str, Any]] = {
        "todo_write": {"items": [{"id": "1", "content": "Look", "status": "in_progress"}]},
        "load_skill": {"name": "check-citations"},
        "glob_files": {"pattern": "**/*.tex"},
        "grep_files": {"pattern": "citep"},
        "read_file": {"path": "main.tex"},
        "rag_search": {"query": "ripples in the Perseus cluster"},
        "get_paper_metadata": {"paper": paper},
        "get_paper_content": {"paper": paper, "page": 1},
        "parse_paper": {"paper": paper},
        "save_note": {"text": "A note on the paper.", "paper": paper, "page": 1},
        "query_target": {"name": "NGC 1275"},
        "search_papers": {"query": "Perseus cluster"},
        "download_paper": {"paper": paper},
        "ask_user": {"question": "Which of the two?", "choices": ["first", "second"]},
        "file_edit": {"path": "main.tex", "old_string": "shine", "new_string": "glow"},
        "subagent": {"task": "Say hello.", "name": "reader"},
    }
    assert set(calls) == set(standard().names())
    return [{"calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls.items()]


async def test_every_tool_does_its_work(server: Any, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "pdfs").mkdir()
    pdfs = await build_in_child(tmp_path / "pdfs")
    async with Standin() as standin:
        async with server(workspace, env=dict(standin.env)) as client:
            imported = (await client.request("astroresearch/papers/import", {"paths": [str(pdfs[0])]}))["imported"]
        script = [
            {"match": "Do everything", "replies": [*steps(imported[0]["id"]), {"text": "All done."}]},
            {"match": "Say hello", "replies": [{"text": "Hello from below."}]},
        ]
        ours: dict[str, Any] = {
            "experimental": {"permission": True, "askUser": True},
            "on_request": {"astroresearch/permission/request": permit, "astroresearch/user/ask": reply},
        }
        async with server(workspace, script={"turns": script}, env=dict(standin.env), **ours) as client:
            ends = await turn(client)
    assert {e["name"]: e["status"] for e in ends} == dict.fromkeys(standard().names(), "completed"), ends
    assert "glow" in (workspace / "main.tex").read_text()


async def permit(request: Any) -> Any:
    return {"id": request["id"], "choice": "once"}


async def reply(request: Any) -> Any:
    return {"id": request["id"], "answer": "first"}


async def turn(client: Client) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    client.progress["t"] = lambda value: events.append(value["event"]) if "event" in value else None
    await client.request("astroresearch/chat/send", {"text": "Do everything.", "workDoneToken": "t"})
    names = {e["id"]: e["name"] for e in events if e["type"] == "tool.start"}
    return [{"name": names[e["id"]], **e} for e in events if e["type"] == "tool.end"]

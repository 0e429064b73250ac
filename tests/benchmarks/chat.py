"""How long an editor waits: for the first progress of a question, and for a hover while a turn streams and papers are indexed."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from astroresearch.demo.papers import build_in_child
from astroresearch.lsp.client import Client, connect

QUESTIONS = 30
HOVERS = 600
TEX = "\\documentclass{article}\n\\begin{document}\nSee \\citep{Fabian1994}.\n\\bibliography{refs}\n\\end{document}\n"
BIB = "@article{Fabian1994, author={Fabian, A. C.}, title={Cooling Flows}, journal={\\araa}, year=1994}\n"


def measure() -> list[dict[str, Any]]:
    """Both figures, each against an empty request in the same run."""
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(_measure, Path(folder))


async def _measure(folder: Path) -> list[dict[str, Any]]:
    workspace = folder / "paper"
    workspace.mkdir()
    (workspace / "main.tex").write_text(TEX)
    (workspace / "refs.bib").write_text(BIB)
    words = " ".join(f"word{i}" for i in range(4_000))
    script = {"turns": [[{"text": "Yes."}]] * (QUESTIONS + 1) + [[{"text": words, "chunk_ms": 4}]]}
    (folder / "script.json").write_text(json.dumps(script))
    env = {
        "ASTRORESEARCH_HOME": str(folder / "home"),
        "ASTRORESEARCH_MODEL": "scripted",
        "ASTRORESEARCH_SCRIPT": str(folder / "script.json"),
    }
    pdfs = _real_pdfs() or await build_in_child(folder / "pdfs")
    async with connect(workspace, env=env, stderr=subprocess.DEVNULL) as client:
        uri = await client.open_document(workspace / "main.tex")
        await client.request("astroresearch/status", {})
        first, empty = await _first_progress(client)
        idle, busy = await _canary(client, uri, pdfs)
    return [
        {
            "name": "chat/send to first progress, median", "ours": first, "reference": empty, "ratio": first / empty,
            "goal": "≤ 50 ms", "ok": first <= 50, "unit": "ms",
        },
        {
            "name": "canary hover while streaming and indexing, p99", "ours": _p99(busy), "reference": _p99(idle),
            "ratio": _p99(busy) / _p99(idle), "goal": "≤ 50 ms", "ok": _p99(busy) <= 50, "unit": "ms",
        },
        {
            "name": "canary hover while streaming and indexing, maximum", "ours": max(busy), "reference": max(idle),
            "ratio": max(busy) / max(idle), "goal": "reported", "ok": True, "unit": "ms",
        },
    ]  # fmt: skip


def _real_pdfs() -> list[Path]:
    shared = Path(__file__).resolve().parents[3] / "shared/data/manuscripts"
    return sorted(shared.rglob("*.pdf"))[:6]


async def _first_progress(client: Client) -> tuple[float, float]:
    waits: list[float] = []
    empties: list[float] = []
    session = ""
    for _ in range(QUESTIONS + 1):
        seen: list[float] = []
        client.progress["t"] = lambda _value, seen=seen: seen.append(time.perf_counter())  # type: ignore[misc]
        started = time.perf_counter()
        params = {"text": "?", "workDoneToken": "t"} | ({"sessionId": session} if session else {})
        session = (await client.request("astroresearch/chat/send", params))["sessionId"]
        waits.append((seen[0] - started) * 1000)
        started = time.perf_counter()
        await client.request("astroresearch/tools/list", {})
        empties.append((time.perf_counter() - started) * 1000)
    return statistics.median(waits[1:]), statistics.median(empties[1:])


async def _canary(client: Client, uri: str, pdfs: list[Path]) -> tuple[list[float], list[float]]:
    at = {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 14}}

    async def hover() -> float:
        started = time.perf_counter()
        await client.request("textDocument/hover", at)
        return (time.perf_counter() - started) * 1000

    for _ in range(20):
        await hover()
    idle = [await hover() for _ in range(HOVERS // 2)]
    busy: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.request, "astroresearch/chat/send", {"text": "Stream.", "workDoneToken": "s"})
        tasks.start_soon(client.request, "astroresearch/papers/import", {"paths": [str(p) for p in pdfs]})
        for _ in range(HOVERS):
            busy.append(await hover())
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return idle, busy


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]

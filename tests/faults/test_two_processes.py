"""Two processes on one library: no error shown, nothing lost, one paper is one record."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from astroresearch.store.database import Store
from tests.faults.acknowledged import Acknowledged, command, environment


async def worker(path: Path, name: str, seconds: float, told: Acknowledged, results: dict[str, Any]) -> None:
    async with await anyio.open_process(command("mixed", path, name, str(seconds)), env=environment()) as process:
        assert process.stdin
        assert process.stdout
        await process.stdin.send(b"go\n")
        text = ""
        async for chunk in TextReceiveStream(process.stdout):
            text += chunk
    lines = text.splitlines()
    told.take(lines)
    results[name] = json.loads(lines[-1].removeprefix("result "))


async def share(tmp_path: Path, processes: int, seconds: float) -> dict[str, Any]:
    path = tmp_path / "library.db"
    results: dict[str, Any] = {}
    told = Acknowledged()
    async with anyio.create_task_group() as group:
        for number in range(processes):
            group.start_soon(worker, path, f"window {number}", seconds, told, results)
    store = await Store.open(path)
    assert await told.lost(store) == []
    assert [e for r in results.values() for e in r["errors"]] == []
    notes = [n for r in results.values() for n in r["notes"]]
    assert await store.notes.count() == len(notes) == len(set(notes))
    assert await store.papers.count() == len({p for r in results.values() for p in r["papers"]})
    for result in results.values():
        record = await store.sessions.get(result["session"])
        assert record
        assert record.turn_count == result["turns"]
    await store.aclose()
    for name, result in results.items():
        print(f"{name}: {len(result['notes'])} notes, {result['turns']} turns, p99 of a save {result['p99_ms']:.1f} ms")
    return results


async def test_two_processes_share_a_library(tmp_path: Path) -> None:
    await share(tmp_path, 2, 5)


@pytest.mark.long
async def test_two_processes_share_a_library_for_long(tmp_path: Path) -> None:
    results = await share(tmp_path, 2, 20)
    assert all(len(r["notes"]) >= 200 and r["turns"] >= 50 and len(r["papers"]) >= 10 for r in results.values())


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_four_processes_share_a_library(tmp_path: Path) -> None:
    await share(tmp_path, 4, 60)


async def test_two_processes_make_one_blank_library(tmp_path: Path) -> None:
    outputs: list[str] = []

    async def run(path: Path) -> None:
        done = await anyio.run_process(command("open", path), env=environment(), check=False)
        outputs.append(done.stdout.decode())

    for number in range(3):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run, tmp_path / f"{number}.db")
    assert outputs == ["ok\n"] * 9


HOLD = """
import anyio, sys
from pathlib import Path
from astroresearch.store.database import Store
async def main():
    store = await Store.open(Path(sys.argv[1]))
    print(await store.sessions.acquire_lease("s", "the other window"), flush=True)
    sys.stdin.readline()
anyio.run(main)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no harmless probe for a process; the lease runs out by itself")
async def test_a_session_is_continued_in_one_window_until_that_one_dies(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    store = await Store.open(path)
    async with await anyio.open_process([sys.executable, "-c", HOLD, str(path)], env=environment()) as other:
        assert other.stdout
        assert (await other.stdout.receive()).strip() == b"True"
        assert not await store.sessions.acquire_lease("s", "this window")
        other.kill()
        await other.wait()
    assert await store.sessions.acquire_lease("s", "this window")
    await store.aclose()

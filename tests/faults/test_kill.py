"""kill -9 at named points and at random times: nothing that was acknowledged is lost, nothing disagrees."""

from __future__ import annotations

import os
import random
import re
import selectors
import signal
import subprocess
import time
from pathlib import Path

import anyio
import pytest

from astroresearch import crash
from astroresearch.store.database import Store
from astroresearch.store.migrations import VERSION
from tests.faults.acknowledged import REPO, Acknowledged, command, environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")

STORE_POINTS = {
    "note.before_commit": 3,
    "note.committed": 3,
    "message.before_commit": 2,
    "message.committed": 2,
    "tool.started": 2,
    "tool.before_finish": 2,
    "tool.finished": 2,
    "event.before_commit": 2,
    "turn.finished": 2,
    "index.before_commit": 2,
    "index.committed": 2,
    "vectors.before_commit": 2,
    "backup.before_rename": 1,
    "migrate.before_commit": VERSION,
    "migrate.committed": VERSION,
}
"Points of the store, and at which pass each is tried last."


class Zygote:
    """Starts workers by fork, which takes milliseconds, and kills them."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            command("zygote", path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )
        assert self._process.stdout
        self._out = self._process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._rest = b""

    def run(self, seed: int, delay_s: float) -> list[str]:
        """Lets one worker live for a while after it began; its lines."""
        assert self._process.stdin
        self._process.stdin.write(f"{seed}\n".encode())
        self._process.stdin.flush()
        lines = self._read(lambda line: line.startswith("pid "))
        pid = int(next(line for line in lines if line.startswith("pid ")).split()[1])
        lines += self._read(None, time.monotonic() + delay_s)
        os.kill(pid, signal.SIGKILL)
        return lines + self._read(lambda line: line == f"dead {pid}")

    def _read(self, until: object, deadline: float | None = None) -> list[str]:
        lines: list[str] = []
        while True:
            wait = 30.0 if deadline is None else deadline - time.monotonic()
            if wait <= 0 or not self._selector.select(wait):
                assert deadline is not None, "the worker is silent"
                return lines
            chunk = os.read(self._out, 65536)
            assert chunk, "the worker's parent died"
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            lines += [line.decode() for line in whole]
            if callable(until) and any(until(line) for line in lines):
                return lines

    def close(self) -> None:
        self._process.communicate()
        self._selector.close()


async def kill_at_random(path: Path, kills: int, seed: int) -> Acknowledged:
    rng = random.Random(seed)
    told = Acknowledged()
    zygote = Zygote(path)
    try:
        for number in range(kills):
            delay = rng.uniform(0.0, 0.12)
            told.take(await anyio.to_thread.run_sync(zygote.run, rng.randrange(10**9) + number, delay))
    finally:
        zygote.close()
    return told


async def test_random_kills_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    told = await kill_at_random(path, 200, seed=20260101)
    assert len(told.notes) > 200
    assert told.papers
    store = await Store.open(path)
    assert await told.lost(store) == []
    assert await store.notes.count() <= len(told.notes) + 200
    await store.aclose()


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_very_many_random_kills_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    for seed in range(10):
        told = await kill_at_random(path, 300, seed)
        store = await Store.open(path)
        assert await told.lost(store) == []
        await store.aclose()


@pytest.mark.parametrize("name", STORE_POINTS)
async def test_a_kill_at_a_named_point_loses_nothing(tmp_path: Path, name: str) -> None:
    for number in {1, STORE_POINTS[name]}:
        path = tmp_path / str(number) / "library.db"
        told = Acknowledged()
        died = await anyio.run_process(
            command("scenario", path), env=environment(**{crash.VARIABLE: f"{name}:{number}"}), check=False
        )
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        told.take(died.stdout.decode().splitlines())
        store = await Store.open(path)
        assert await told.lost(store) == []
        await store.aclose()
    again = await anyio.run_process(command("scenario", path), env=environment(), check=False)
    assert again.stdout.decode().splitlines()[-1] == "finished", again.stderr.decode()


def test_every_point_is_registered_and_every_registered_point_exists() -> None:
    used: set[str] = set()
    for file in (REPO / "server").rglob("*.py"):
        used |= set(re.findall(r'crash\.point\("([^"]+)"\)', file.read_text("utf-8")))
    assert used == set(crash.POINTS)
    assert set(STORE_POINTS) <= used


def test_points_cost_nothing_and_do_nothing_unless_asked() -> None:
    for name in crash.POINTS:
        crash.point(name)

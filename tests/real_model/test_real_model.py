"""The whole product with a real language model, a small one that runs on this machine's processor.

What is asserted is what the product owes with any model: known tools run, timelines and usage are whole, a cancel reaches the
endpoint, a full context is said as such. Nothing is asserted on how good the answers are.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import anyio
import anyio.to_thread
import pytest

from astroresearch.demo.standin import Standin
from astroresearch.lsp.client import Client, connect
from tests.protocol.test_chat import Stream
from tests.real_model import weights

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1_800)]
HERE = Path(__file__).parent
CONTEXT = 8_192
NEEDED_MB = 2_500
TASKS = [
    ("Resolve NGC 1275: where is it and what is its redshift?", "query_target", "NGC 1275"),
    ("Read the file main.tex.", "read_file", "main.tex"),
    ("Look up the object M 87: type and redshift.", "query_target", "M 87"),
    ("Read the file refs.bib.", "read_file", "refs.bib"),
]


def _free_mb() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:"))


@pytest.fixture(scope="module")
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """The base address of a running model server."""
    if "real_model" not in request.config.option.markexpr:
        pytest.skip("it fetches 500 MB; run it with `make test-real`")
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the model server is fetched for Linux on x86-64 only")
    if _free_mb() < NEEDED_MB:
        pytest.skip(f"less than {NEEDED_MB} MB of memory are free")
    try:
        command = [weights.interpreter(), HERE / "serve.py", weights.model(), HERE / "tools.jinja", str(CONTEXT)]
    except weights.Unavailable as error:
        pytest.skip(f"no real model here: {error}")
    child = subprocess.Popen(
        ["nice", "-n", "10", *map(str, command)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        ready = next((line for line in child.stdout if line.startswith("READY ")), "")
        assert ready, "the model server did not start"
        yield ready.split()[1]
    finally:
        child.stdin.close()
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A manuscript of two files."""
    path = tmp_path / "paper"
    path.mkdir()
    (path / "main.tex").write_text("\\documentclass{article}\n\\begin{document}\nCool cores shine.\n\\end{document}\n")
    (path / "refs.bib").write_text(
        "@article{Fabian1994, title = {Cooling Flows in Clusters of Galaxies}, year = 1994}\n"
    )
    return path


@asynccontextmanager
async def _server(endpoint: str, workspace: Path, **more: Any) -> AsyncIterator[Client]:
    settings = {
        "model": {"context_window": CONTEXT, "max_output_tokens": 200, "idle_timeout_s": 600, **more},
        "agent": {"max_steps": 1},
    }
    async with Standin() as sky:
        env = {
            "ASTRORESEARCH_HOME": str(workspace.parent / "home"),
            "ASTRORESEARCH_MODEL": weights.NAME,
            "OPENAI_BASE_URL": f"{endpoint}/v1",
            **sky.env,
        }
        options = {"initialization_options": {"settings": settings}}
        async with connect(workspace, env={**env}, stderr=subprocess.DEVNULL, **options) as client:
            yield client


async def _busy(endpoint: str) -> bool:
    def look() -> bool:
        with urlopen(f"{endpoint}/slots", timeout=30) as answer:
            return any(slot["is_processing"] for slot in json.load(answer))

    return await anyio.to_thread.run_sync(look)


async def test_it_calls_the_tools_that_are_meant(endpoint: str, workspace: Path) -> None:
    right = 0
    async with _server(endpoint, workspace) as client:
        for number, (question, tool, argument) in enumerate(TASKS):
            stream = Stream(client, f"t{number}")
            answer = await client.request("astroresearch/chat/send", {"text": question, "workDoneToken": stream.token})
            stream.check()
            assert answer["stopReason"] in ("end_turn", "max_steps", "loop"), answer
            assert answer["usage"]["input"] > 3_000
            assert answer["usage"]["output"] > 0
            assert answer["usage"]["estimated"] is False
            starts = {e["id"]: e for e in stream.events if e["type"] == "tool.start"}
            ends = [e for e in stream.events if e["type"] == "tool.end" and e["status"] == "completed"]
            right += any(
                starts[e["id"]]["name"] == tool and argument in json.dumps(starts[e["id"]]["arguments"]) for e in ends
            )
    assert right >= 2, f"{right} of {len(TASKS)}"


async def test_a_cancel_frees_the_model(endpoint: str, workspace: Path) -> None:
    async with _server(endpoint, workspace, max_output_tokens=2_000) as client:
        stream = Stream(client, "t")
        outcome: dict[str, Any] = {}

        async def send() -> None:
            text = "Without any tool: write the numbers from one to five hundred in words."
            outcome["answer"] = await client.request("astroresearch/chat/send", {"text": text, "workDoneToken": "t"})

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            with anyio.fail_after(300):
                while not await _busy(endpoint):  # noqa: ASYNC110 - the endpoint can only be asked
                    await anyio.sleep(0.2)
            session = next(e["sessionId"] for e in stream.events if e["type"] == "session")
            await client.notify("astroresearch/chat/cancel", {"sessionId": session})
        stream.check()
        assert outcome["answer"]["stopReason"] == "cancelled"
        with anyio.fail_after(120):  # between two batches of the prompt, on a busy machine
            while await _busy(endpoint):  # noqa: ASYNC110
                await anyio.sleep(0.2)


async def test_a_full_context_is_said(endpoint: str, workspace: Path) -> None:
    async with _server(endpoint, workspace) as client:
        stream = Stream(client, "t")
        text = "What do these numbers mean? " + " ".join(map(str, range(5_000)))
        answer = await client.request("astroresearch/chat/send", {"text": text, "workDoneToken": "t"})
        stream.check()
        assert answer["stopReason"] == "error"
        error = next(e for e in stream.events if e["type"] == "error")
        assert error["code"] == "model_context_length"
        assert error["hint"]

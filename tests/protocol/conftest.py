"""Real servers over real stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from astroresearch.lsp.client import Client, connect

Server = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The data folder of one test."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A manuscript of two files."""
    path = tmp_path / "paper"
    path.mkdir()
    (path / "main.tex").write_text(
        "\\documentclass{article}\n\\begin{document}\nCool cores \\citep{Fabian1994} shine.\n"
        "\\bibliography{refs}\n\\end{document}\n"
    )
    (path / "refs.bib").write_text(
        "@article{Fabian1994,\n  author = {{Fabian}, A.~C.},\n  title = {Cooling Flows in Clusters of Galaxies},\n"
        "  journal = {\\araa}, year = 1994, volume = 32, pages = {277-318}\n}\n"
    )
    return path


@pytest.fixture
def server(home: Path, tmp_path: Path) -> Server:
    """Starts a real server: `async with server(workspace, script=[…]) as client:`."""

    @asynccontextmanager
    async def start(
        workspace: Path | None = None, *, script: Any = None, env: dict[str, str] | None = None, **options: Any
    ) -> AsyncIterator[Client]:
        variables = {"ASTRORESEARCH_HOME": str(home), "PYTHONUNBUFFERED": "1", **(env or {})}
        if script is not None:
            path = tmp_path / "script.json"
            path.write_text(json.dumps(script))
            variables |= {"ASTRORESEARCH_SCRIPT": str(path), "ASTRORESEARCH_MODEL": "scripted"}
        async with connect(workspace, env=variables, stderr=subprocess.DEVNULL, **options) as client:
            yield client

    return start


class RawServer:
    """A server process that is spoken to in bytes."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "astroresearch", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"ASTRORESEARCH_HOME": str(home), "PATH": "/usr/bin:/bin"},
        )

    def send(self, message: Any) -> None:
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, body: bytes) -> None:
        self.frame(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def frame(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length)) if length else None

    def answer(self, number: int | str | None) -> Any:
        """The next response with this id; notifications before it are dropped."""
        while (message := self.receive()) is not None:
            if "method" not in message and message.get("id") == number:
                return message
        return None

    def initialize(self) -> Any:
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}}})
        result = self.answer(0)
        self.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        return result

    def request(self, number: int, method: str, params: Any = None) -> Any:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.answer(number)

    def close(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(10)


@pytest.fixture
def raw(home: Path) -> Any:
    server = RawServer(home)
    yield server
    server.process.kill()
    server.process.wait(10)

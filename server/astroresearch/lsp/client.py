"""A small editor: starts the real server over stdio and talks to it. The command line and the demo use nothing else."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from astroresearch import __version__
from astroresearch.errors import AstroResearchError

ServerRequest = Callable[[Any], Awaitable[Any]]
SERVER_COMMAND = (sys.executable, "-m", "astroresearch", "serve")
CAPABILITIES: Mapping[str, Any] = {
    "workspace": {"workspaceFolders": True},
    "textDocument": {
        "synchronization": {"didSave": True},
        "completion": {"completionItem": {"documentationFormat": ["markdown"]}},
        "hover": {"contentFormat": ["markdown"]},
        "diagnostic": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
            "resolveSupport": {"properties": ["edit"]},
            "dataSupport": True,
        },
    },
    "window": {"showMessage": {}},
    "general": {"positionEncodings": ["utf-16"]},
}


class RemoteError(AstroResearchError):
    """The server answered with an error; `remote_code` is JSON-RPC's."""

    def __init__(self, message: str, *, remote_code: int, kind: str = "") -> None:
        super().__init__(message)
        self.remote_code = remote_code
        self.kind = kind


@dataclass
class Pending:
    """A request that waits for its answer."""

    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: Mapping[str, Any] | None = None


class Client:
    """One connection. Use `connect`."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._write_lock = anyio.Lock()
        self.on_notification: dict[str, Callable[[Any], None]] = {}
        "By method; called as each arrives."
        self.on_request: dict[str, ServerRequest] = {}
        "By method; others are answered *method not found*."
        self.progress: dict[str | int, Callable[[Any], None]] = {}
        "By token."
        self.capabilities: Mapping[str, Any] = {}
        self.closed = anyio.Event()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    async def request(self, method: str, params: Any = None) -> Any:
        """Sends a request and waits; a cancel withdraws it.

        Raises:
            RemoteError: The server answered with an error, or ended.
        """
        number = next(self._ids)
        pending = self._pending[number] = Pending()
        await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            await pending.done.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            self._pending.pop(number, None)
        if pending.error is not None:
            data = pending.error.get("data")
            kind = str(data.get("kind", "")) if isinstance(data, Mapping) else ""
            raise RemoteError(
                str(pending.error.get("message")), remote_code=int(pending.error.get("code", 0)), kind=kind
            )
        return pending.result

    async def notify(self, method: str, params: Any = None) -> None:
        """Sends a notification."""
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def open_document(self, path: Path, text: str | None = None) -> str:
        """Opens a file as an editor would; returns its URI."""
        language = "bibtex" if path.suffix == ".bib" else "latex"
        content = path.read_text("utf-8", "replace") if text is None else text
        item = {"uri": path.as_uri(), "languageId": language, "version": 1, "text": content}
        await self.notify("textDocument/didOpen", {"textDocument": item})
        return path.as_uri()

    async def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        stdin = self._process.stdin
        assert stdin is not None
        async with self._write_lock:
            try:
                await stdin.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                self._end()

    async def read_loop(self, tasks: anyio.abc.TaskGroup) -> None:
        """Reads until the server closes its side."""
        stdout = self._process.stdout
        assert stdout is not None
        stream = BufferedByteReceiveStream(stdout)
        try:
            while True:
                header = await stream.receive_until(b"\r\n\r\n", 65_536)
                length = next(
                    int(line.split(b":")[1])
                    for line in header.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                self._dispatch(json.loads(await stream.receive_exactly(length)), tasks)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self._end()

    def _end(self) -> None:
        self.closed.set()
        for pending in self._pending.values():
            pending.error = pending.error or {"code": -32099, "message": "The server ended unexpectedly."}
            pending.done.set()

    def _dispatch(self, message: Mapping[str, Any], tasks: anyio.abc.TaskGroup) -> None:
        if "method" not in message:
            if (pending := self._pending.get(message.get("id", -1))) is not None:
                pending.result, pending.error = message.get("result"), message.get("error")
                pending.done.set()
        elif "id" in message:
            tasks.start_soon(self._serve, message)
        elif message["method"] == "$/progress":
            if (handler := self.progress.get(message["params"]["token"])) is not None:
                handler(message["params"]["value"])
        elif (listener := self.on_notification.get(message["method"])) is not None:
            listener(message.get("params"))

    async def _serve(self, message: Mapping[str, Any]) -> None:
        handler = self.on_request.get(message["method"])
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if handler is None:
            answer["error"] = {"code": -32601, "message": f"This client does not know {message['method']}."}
        else:
            answer["result"] = await handler(message.get("params"))
        await self._send(answer)


def _capabilities(takes_edits: bool) -> dict[str, Any]:
    if not takes_edits:
        return dict(CAPABILITIES)
    workspace = {**CAPABILITIES["workspace"], "applyEdit": True, "workspaceEdit": {"documentChanges": True}}
    return {**CAPABILITIES, "workspace": workspace}


@asynccontextmanager
async def connect(
    workspace: Path | None,
    *,
    env: Mapping[str, str] | None = None,
    experimental: Mapping[str, Any] | None = None,
    initialization_options: Mapping[str, Any] | None = None,
    on_request: Mapping[str, ServerRequest] | None = None,
    takes_edits: bool = False,
    stderr: int | IO[Any] | None = None,
    command: tuple[str, ...] = SERVER_COMMAND,
) -> AsyncIterator[Client]:
    """Starts a server, initialises it, and shuts it down in the end."""
    process = await anyio.open_process(
        list(command), env=dict(os.environ) | dict(env or {}), stderr=stderr if stderr is not None else sys.stderr
    )
    client = Client(process)
    client.on_request |= dict(on_request or {})
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.read_loop, tasks)
            folders = [{"uri": workspace.as_uri(), "name": workspace.name}] if workspace is not None else None
            answer = await client.request(
                "initialize",
                {
                    "processId": os.getpid(),
                    "clientInfo": {"name": "astroresearch", "version": __version__},
                    "rootUri": workspace.as_uri() if workspace is not None else None,
                    "workspaceFolders": folders,
                    "capabilities": {
                        **_capabilities(takes_edits),
                        "experimental": {"astroresearch": dict(experimental or {})},
                    },
                    "initializationOptions": dict(initialization_options or {}),
                },
            )
            client.capabilities = answer["capabilities"]
            await client.notify("initialized", {})
            try:
                yield client
            finally:
                with anyio.move_on_after(5, shield=True):
                    if not client.closed.is_set():
                        await client.request("shutdown")
                        await client.notify("exit")
                        await process.wait()
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


class Buffers:
    """The open files of a small editor: applies `workspace/applyEdit` to them and tells the server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self.applied: list[tuple[str, str, str]] = []
        "(URI, text before, text after) of each change, for showing it."
        client.on_request["workspace/applyEdit"] = self.apply

    async def open(self, path: Path) -> str:
        """Opens a file; returns its URI."""
        uri = await self._client.open_document(path)
        self.texts[uri] = await anyio.Path(path).read_text("utf-8")
        self._versions[uri] = 1
        return uri

    async def apply(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Applies an edit whose versions fit; files that are not open are opened first."""
        changes = params["edit"].get("documentChanges", [])
        for change in changes:
            uri, version = change["textDocument"]["uri"], change["textDocument"].get("version")
            if uri not in self.texts:
                await self.open(Path(unquote(urlsplit(uri).path)))
            elif version is not None and version != self._versions[uri]:
                return {"applied": False, "failureReason": "the document changed meanwhile"}
        for change in changes:
            await self._change(change["textDocument"]["uri"], change["edits"])
        return {"applied": True}

    async def save(self) -> None:
        """Writes every buffer to its file."""
        for uri, text in self.texts.items():
            await anyio.Path(unquote(urlsplit(uri).path)).write_text(text, "utf-8")
            await self._client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    async def _change(self, uri: str, edits: list[Mapping[str, Any]]) -> None:
        before = text = self.texts[uri]
        for edit in sorted(edits, key=lambda e: _key(e["range"]["start"]), reverse=True):
            start, end = (_offset(text, edit["range"][side]) for side in ("start", "end"))
            text = text[:start] + edit["newText"] + text[end:]
        self.texts[uri] = text
        self._versions[uri] += 1
        self.applied.append((uri, before, text))
        document = {"uri": uri, "version": self._versions[uri]}
        await self._client.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )


def _key(position: Mapping[str, int]) -> tuple[int, int]:
    return position["line"], position["character"]


def _offset(text: str, position: Mapping[str, int]) -> int:
    """Index of a UTF-16 position."""
    lines = text.splitlines(keepends=True)
    line = lines[position["line"]] if position["line"] < len(lines) else ""
    units = line.encode("utf-16-le")[: 2 * position["character"]]
    return sum(map(len, lines[: position["line"]])) + len(units.decode("utf-16-le", "ignore"))

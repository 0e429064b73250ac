"""A fake OpenAI-compatible provider on a real socket that refuses what a strict provider refuses.

    async with FakeProvider([calls(("read_file", {"path": "main.tex"})), text("Done.")]) as provider:
        ...  # provider.base_url; provider.requests afterwards

Each request takes the next `Reply`; when they are used up, `default` answers. Requests that a strict provider would refuse
get a 400 with the complaint, are kept in `refused`, and use up no reply. `ThreadedProvider` is the same for tests that are
not async, such as those that speak to the server in a child process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

DONE = "data: [DONE]\n\n"


@dataclass(frozen=True)
class Reset:
    """The connection is aborted here (RST)."""


@dataclass(frozen=True)
class Cut:
    """The connection ends here, in the middle of the body."""


@dataclass(frozen=True)
class Stall:
    """Nothing more is sent, until the client closes; with `comment`, keep-alive comments every few milliseconds."""

    comment: bool = False


@dataclass(frozen=True)
class Endless:
    """This frame again and again, until the client closes."""

    frame: str
    pause_s: float = 0.0


@dataclass(frozen=True)
class Gate:
    """Waits until the test opens it."""

    event: asyncio.Event = field(default_factory=asyncio.Event)


Step = str | bytes | Reset | Cut | Stall | Endless | Gate


@dataclass(frozen=True)
class Reply:
    """One scripted answer. `steps` are written one by one as chunks of the body."""

    steps: Sequence[Step] = ()
    status: str = "200 OK"
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    "Not even a status comes."


@dataclass
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    closed_early: bool = False
    "The client closed the socket before the reply was complete."
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    "Set when the connection is over."
    finished: bool = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **extra: Any) -> str:
    """One frame with one choice."""
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return frame(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **extra}
    )


def frame(value: Any) -> str:
    """Any JSON as a frame."""
    return f"data: {json.dumps(value)}\n\n"


def usage(prompt: int = 100, completion: int = 10, **extra: Any) -> str:
    """The last frame with the usage."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **extra}
    return frame(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": counts}
    )


def call_delta(
    name: str | None = None, arguments: Any = None, *, id: str | None = None, index: int | None = 0, **extra: Any
) -> dict[str, Any]:
    """A delta with a piece of one call; None leaves a field out."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    body: dict[str, Any] = {"type": "function", "function": function, **extra}
    if index is not None:
        body["index"] = index
    if id is not None:
        body["id"] = id
    return {"tool_calls": [body]}


def text(*pieces: str, finish: str = "stop", **counts: Any) -> Reply:
    """An ordinary answer."""
    return Reply(
        [
            chunk({"role": "assistant", "content": ""}),
            *(chunk({"content": p}) for p in pieces),
            chunk({}, finish),
            usage(**counts),
            DONE,
        ]
    )


def calls(*wanted: tuple[str, Any], content: str = "", ids: Iterable[str] = (), finish: str = "tool_calls") -> Reply:
    """An answer that calls tools: (name, arguments) with arguments as an object, or as a string that is sent as it is."""
    names = list(ids) or [f"call_{n}" for n in range(len(wanted))]
    steps: list[Step] = [chunk({"role": "assistant", "content": content or None})]
    for n, (name, arguments) in enumerate(wanted):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        half = len(written) // 2
        steps.append(chunk(call_delta(name, "", id=names[n], index=n)))
        steps += [chunk(call_delta(None, part, index=n)) for part in (written[:half], written[half:]) if part]
    return Reply([*steps, chunk({}, finish), usage(), DONE])


def raw(*steps: Step, content_type: str = "text/event-stream") -> Reply:
    """Frames as they are, without an end."""
    return Reply(steps, content_type=content_type)


def error(status: str, body: Any, content_type: str = "application/json", **headers: str) -> Reply:
    """An HTTP error; `_` in header names becomes `-`."""
    sent = body if isinstance(body, str) else json.dumps(body)
    return Reply([sent] if sent else [], status, content_type, {k.replace("_", "-"): v for k, v in headers.items()})


def rate_limited(**headers: str) -> Reply:
    """A 429."""
    return error(
        "429 Too Many Requests", {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, **headers
    )


def overflow() -> Reply:
    """OpenAI's 400 for a request beyond the context window."""
    message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    return error("400 Bad Request", {"error": {"message": message, "code": "context_length_exceeded"}})


FAULTS: Mapping[str, Callable[[], Reply]] = {
    "cut": lambda: raw(chunk({"content": "The core of "}), Cut()),
    "cut in a call": lambda: raw(chunk(call_delta("read_file", '{"path": "ma', id="call_1")), Cut()),
    "reset": lambda: raw(chunk({"content": "The core of "}), Reset()),
    "no finish reason": lambda: raw(chunk({"content": "The core of "})),
    "stall": lambda: raw(chunk({"content": "The core of "}), Stall()),
    "bad json": lambda: raw(chunk({"content": "The core of "}), 'data: {"id": \n\n', chunk({}, "stop"), DONE),
    "error in the stream": lambda: raw(
        chunk({"content": "The core of "}), frame({"error": {"message": "exploded", "code": 502}}), DONE
    ),
    "html": lambda: raw("<html><body>gateway</body></html>", content_type="text/html"),
    "repeated ids": lambda: raw(
        chunk(call_delta("read_file", '{"path": "main.tex"}', id="call_0", index=0)),
        chunk(call_delta("read_file", '{"path": "refs.bib"}', id="call_0", index=1)),
        chunk({}, "tool_calls"),
        DONE,
    ),
    "bad arguments": lambda: calls(("read_file", '{"path": ')),
    "length in a call": lambda: calls(("read_file", '{"path": "ma'), finish="length"),
    "unknown tool": lambda: calls(("Open main.tex", {})),
    "no choices": lambda: raw(frame({"choices": []}), frame({"choices": None}), DONE),
    "context length": overflow,
    "rate limited": lambda: rate_limited(Retry_After="86400"),
    "no such key": lambda: error("401 Unauthorized", {"error": {"message": "Incorrect API key provided: sk-test***"}}),
    "no such model": lambda: error("404 Not Found", {"error": {"message": "The model `m` does not exist"}}),
    "down": lambda: error("500 Internal Server Error", "oops", "text/plain"),
}
"""Faults by name, for tests that run the same turn against each: after it the next turn must work."""


class FakeProvider:
    """See the module."""

    def __init__(
        self, replies: Iterable[Reply] = (), *, default: Reply | None = None, strict: bool = True, mistral: bool = False
    ) -> None:
        self.replies = list(replies)
        self.default = default or text("Done.")
        self.requests: list[Request] = []
        self.arrived = asyncio.Event()
        "Set when the first request is there."
        self.refused: list[str] = []
        self.rule: Callable[[dict[str, Any]], Reply | None] = lambda body: None
        "A further refusal, asked before a reply is used up."
        self._strict, self._mistral = strict, mistral
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> FakeProvider:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            await self._one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        request = Request(head[0].split(" ")[1], headers, body)
        self.requests.append(request)
        self.arrived.set()
        watch = asyncio.ensure_future(reader.read(1))
        try:
            request.finished = await self._answer(writer, self._reply(body), watch)
        finally:
            request.closed_early = not request.finished and (watch.done() or writer.transport.is_closing())
            request.closed.set()
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await watch

    def _reply(self, body: dict[str, Any]) -> Reply:
        wrong = complaint(body, mistral=self._mistral) if self._strict else None
        if wrong is not None:
            self.refused.append(wrong)
            return error("400 Bad Request", {"error": {"message": wrong, "type": "invalid_request_error"}})
        special = self.rule(body)
        if special is not None:
            return special
        return self.replies.pop(0) if self.replies else self.default

    async def _answer(self, writer: asyncio.StreamWriter, reply: Reply, watch: asyncio.Future[bytes]) -> bool:
        extra = "".join(f"{key}: {value}\r\n" for key, value in reply.headers.items())
        kind = f"Content-Type: {reply.content_type}\r\n" if reply.content_type else ""
        head = f"HTTP/1.1 {reply.status}\r\n{kind}{extra}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        if reply.silent:
            await self._stall(writer, Stall(), watch)
            return False
        writer.write(head.encode())
        for step in reply.steps:
            if isinstance(step, Cut | Reset):
                await writer.drain()
                if isinstance(step, Reset):
                    writer.transport.abort()
                return False
            if isinstance(step, Stall):
                await self._stall(writer, step, watch)
                return False
            if isinstance(step, Endless):
                await self._endless(writer, step, watch)
                return False
            if isinstance(step, Gate):
                opened = asyncio.ensure_future(step.event.wait())
                await asyncio.wait([opened, watch], return_when=asyncio.FIRST_COMPLETED)
                opened.cancel()
                continue
            await _write(writer, step)
            if watch.done():
                return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _stall(self, writer: asyncio.StreamWriter, step: Stall, watch: asyncio.Future[bytes]) -> None:
        while not watch.done():
            if step.comment:
                await _write(writer, ": keep-alive\n\n")
            await asyncio.wait([watch], timeout=0.01 if step.comment else None)

    async def _endless(self, writer: asyncio.StreamWriter, step: Endless, watch: asyncio.Future[bytes]) -> None:
        while not watch.done():
            await _write(writer, step.frame)
            await asyncio.wait([watch], timeout=step.pause_s)


async def _write(writer: asyncio.StreamWriter, step: str | bytes) -> None:
    data = step.encode("utf-8", "surrogatepass") if isinstance(step, str) else step
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()
    await asyncio.sleep(0)


class ThreadedProvider:
    """`FakeProvider` in a thread of its own: `with ThreadedProvider([...]) as provider:`."""

    def __init__(self, replies: Iterable[Reply] = (), **options: Any) -> None:
        self.provider = FakeProvider(replies, **options)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> FakeProvider:
        self._thread.start()
        self._ready.wait(10)
        return self.provider

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        async with self.provider:
            self._ready.set()
            await self._stop.wait()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_ROLES = ("system", "user", "assistant", "tool")


def complaint(body: Mapping[str, Any], *, mistral: bool = False) -> str | None:
    """What a strict provider would say against this request; None if nothing."""
    if not body.get("model"):
        return "you must provide a model parameter"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    for tool in body.get("tools", ()):
        if not _NAME.match(tool["function"]["name"]):
            return f"tools: invalid name {tool['function']['name']!r}"
    if "tools" in body and not body["tools"]:
        return "tools: [] is too short"
    for check in (_check_shapes, _check_pairs):
        if (wrong := check(messages)) is not None:
            return wrong
    return _check_mistral(messages) if mistral else None


def _check_shapes(messages: Sequence[Mapping[str, Any]]) -> str | None:
    for n, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            return f"messages[{n}]: unknown role {role!r}"
        content = message.get("content", "")
        if not isinstance(content, str):
            return f"messages[{n}]: content must be a string, not {type(content).__name__}"
        if not content and not message.get("tool_calls"):
            return f"messages[{n}]: content must not be empty"
        if re.search("[\ud800-\udfff\0]", content):
            return f"messages[{n}]: content is not valid text"
        if role == "system" and n != 0:
            return f"messages[{n}]: system message must be at the beginning"
        if "tool_calls" in message and (role != "assistant" or not message["tool_calls"]):
            return f"messages[{n}]: tool_calls must be a non-empty array of an assistant message"
        unknown = set(message) - {
            "role",
            "content",
            "tool_calls",
            "tool_call_id",
            "name",
            "reasoning_content",
            "reasoning",
        }
        if unknown:
            return f"messages[{n}]: unknown fields {sorted(unknown)}"
    return None


def _check_pairs(messages: Sequence[Mapping[str, Any]]) -> str | None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for n, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                return f"messages[{n}]: tool result without a preceding tool call, or a second one"
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            return f"messages[{n}]: tool_call_ids without a response: {', '.join(open_ids)}"
        for call in message.get("tool_calls", ()):
            if (wrong := _check_call(call, seen)) is not None:
                return f"messages[{n}].tool_calls: {wrong}"
            seen.add(call["id"])
            open_ids.append(call["id"])
    return f"tool_call_ids without a response: {', '.join(open_ids)}" if open_ids else None


def _check_call(call: Mapping[str, Any], seen: set[str]) -> str | None:
    if not call.get("id") or len(call["id"]) > 40 or call["id"] in seen:
        return f"id {call.get('id')!r} is missing, too long or used twice"
    if call.get("type") != "function" or not _NAME.match(call["function"].get("name", "")):
        return f"invalid function name {call['function'].get('name')!r}"
    arguments = call["function"].get("arguments")
    if not isinstance(arguments, str):
        return "arguments must be a string"
    try:
        value = json.loads(arguments)
    except ValueError:
        return "arguments are not valid JSON"
    return None if isinstance(value, dict) else "arguments must be an object"


def _check_mistral(messages: Sequence[Mapping[str, Any]]) -> str | None:
    before = ""
    for message in messages:
        if message["role"] == "user" and before == "tool":
            return "Unexpected role 'user' after role 'tool' (code 3230)"
        before = message["role"]
        for call in message.get("tool_calls", ()):
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
                return "Tool call id must be a-z, A-Z, 0-9, with a length of 9 (code 3280)"
    return None

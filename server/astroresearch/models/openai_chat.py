"""The model client: one streamed answer of an OpenAI-compatible endpoint, whatever the endpoint gets wrong.

The client library sends the request and maps HTTP errors; the stream is read as bytes by `sse`, since the library's own
reader hides what providers do wrong. What is retried, and when: `_attempts`; what an answer comes to: `collect`.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from astroresearch.engine.model import ModelItem, ModelNotice, ModelRequest, Usage
from astroresearch.errors import ModelError
from astroresearch.models.collect import Collector
from astroresearch.models.faults import (
    MAX_WAIT_S,
    Refusal,
    cut_notice,
    failure,
    learn,
    model_error,
    no_stream,
    redact,
    refusal,
    span,
    timed_out,
)
from astroresearch.models.profiles import Lessons, ModelProfile
from astroresearch.models.sse import EventReader, ServerEvent, TooLong
from astroresearch.models.wire import Encoder, origin_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TRIES = 3
LESSONS_AT_MOST = 4
TAIL_S = 5.0
"How long to wait for usage after the answer has ended."
DRAIN_S = 0.1
MAX_ANSWER_CHARS = 16 * 1024 * 1024
MAX_BODY = 32 * 1024 * 1024
_MALFORMED = "Your last call was not valid: {}\nCall a tool with valid JSON arguments, or answer in plain text."


class _Refused(Exception):
    """The provider said no, by a status or inside the stream, before or after output."""

    def __init__(self, found: Refusal) -> None:
        super().__init__(found.text)
        self.found = found


class _Target:
    """One model of the endpoint: its encodings and what it taught."""

    def __init__(self, profile: ModelProfile, lessons: Lessons) -> None:
        self.profile = profile
        self.lessons = lessons
        self.encoder = Encoder(profile)

    def body(self, request: ModelRequest, complaint: str) -> dict[str, Any]:
        """The request's body without `model` and `stream`; the least that does what is asked."""
        profile, lessons = self.profile, self.lessons
        messages = self.encoder.messages(request.messages, lessons)
        if complaint:
            messages.append({"role": "user", "content": _MALFORMED.format(complaint)})
        body: dict[str, Any] = {"stream_options": {"include_usage": True}}
        if limit := request.max_output_tokens or profile.max_output_tokens:
            body["max_completion_tokens" if lessons.completion_tokens else "max_tokens"] = limit
        body |= profile.thinking_body(request.thinking) | dict(profile.extra_body)
        body = {key: value for key, value in body.items() if key not in lessons.dropped}
        if request.tools and not lessons.no_tools:
            body["tools"] = self.encoder.tools(request.tools)
        return body | {"messages": messages}


class OpenAIChat:
    """Fits `engine.model.Model`. One object serves many turns at once; it opens no connection before the first.

    Args:
        profile: The model.
        sleep: Waits between tries; tests put their own.
    """

    def __init__(self, profile: ModelProfile, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        self.profile = profile
        self._sleep = sleep
        self._targets = [_Target(profile, Lessons())]
        if profile.fallback and profile.fallback != profile.name:
            self._targets.append(_Target(dataclasses.replace(profile, name=profile.fallback), Lessons()))
        self._client: AsyncOpenAI | None = None

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""
        return self.profile.name

    @property
    def context_window(self) -> int:
        """Tokens that fit into one request."""
        return self.profile.context_window

    async def warm(self) -> None:
        """Imports the client library in a thread, so that the first answer does not wait for it."""
        if self._client is None:
            await anyio.to_thread.run_sync(importlib.import_module, "openai")

    async def aclose(self) -> None:
        """Closes idle connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelItem]]:
        """Opens one streamed answer; see `engine.model.Model.stream`."""
        items = self._answer(request)
        try:
            yield items
        finally:
            with anyio.CancelScope(shield=True):
                await items.aclose()

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelItem]:
        """The first model's answer, or the fallback's if the first failed before any output."""
        for target, following in zip(self._targets, [*self._targets[1:], None], strict=True):
            try:
                async with aclosing(self._attempts(target, request)) as items:
                    async for item in items:
                        yield item
                return
            except ModelError as error:
                if following is None or error.shown or error.kind in ("auth", "context_length"):
                    raise
                notice = f"{error.message} Asking {following.profile.name} instead."
            yield ModelNotice(notice, "warning")

    async def _attempts(self, target: _Target, request: ModelRequest) -> AsyncGenerator[ModelItem]:
        """Tries until an answer comes: at most three times for faults that pass, once for each lesson."""
        tries, taught, complaint = 1, 0, ""
        while True:
            body = target.body(request, complaint)
            try:
                async with aclosing(self._once(target, request, body)) as items:
                    async for item in items:
                        yield item
                return
            except _Refused as refused:
                found = refused.found
                error = model_error(found, target.profile)
            except ModelError as failed:
                found, error = None, failed
            lesson = learn(found, body, target.lessons) if found and taught < LESSONS_AT_MOST else None
            if lesson is not None:
                taught += 1
                yield ModelNotice(f"{target.profile.name} refused part of the request; trying {lesson}.")
                continue
            if found and "tool_use_failed" in found.raw and not complaint:
                complaint = found.text or "it could not be read"
                continue
            wait = self._wait(error, found, tries)
            if wait is None:
                raise error
            yield ModelNotice(f"{error.message} Trying again in {wait:.0f} s (try {tries + 1} of {TRIES}).")
            tries += 1
            await self._sleep(wait)

    def _wait(self, error: ModelError, found: Refusal | None, tries: int) -> float | None:
        """Seconds until the next try; None if there is none."""
        if error.shown or tries >= TRIES:
            return None
        if error.kind == "rate_limited":
            if found is not None and found.quota:
                return None
            asked = error.retry_after_s
            if asked is not None and asked > MAX_WAIT_S:
                error.hint = f"It asks to wait {span(asked)}."
                return None
            return asked if asked is not None else 4.0**tries
        if error.kind in ("unavailable", "broken_stream"):
            asked = error.retry_after_s
            pause = 2.0 ** (tries - 2) * (1 + random.random() / 4)
            return pause if asked is None or asked > MAX_WAIT_S else asked
        return None

    async def _once(self, target: _Target, request: ModelRequest, body: dict[str, Any]) -> AsyncGenerator[ModelItem]:
        """One request and its stream. Raises `_Refused` or `ModelError` only while nothing was shown."""
        profile = target.profile
        collector = Collector(
            tools={tool.name for tool in request.tools},
            origin=origin_of(profile),
            thinks_first=target.lessons.thinks_first,
        )
        problem: ModelError | None = None
        try:
            async with AsyncExitStack() as stack:
                response = await self._open(stack, profile, body)
                async with aclosing(self._chunks(response, profile, collector)) as chunks:
                    async for chunk in chunks:
                        for item in collector.take(chunk):
                            yield item
                        if len(collector.text) + len(collector.reasoning) > MAX_ANSWER_CHARS:
                            raise failure("broken_stream", profile, "The answer has no end.")
        except _Refused as refused:
            if not collector.shown:
                raise
            problem = model_error(refused.found, profile, shown=True)
        except ModelError as error:
            if not collector.shown:
                raise
            problem = error
        for item in self._close(target, collector, request, body, problem):
            yield item

    def _close(
        self,
        target: _Target,
        collector: Collector,
        request: ModelRequest,
        body: dict[str, Any],
        problem: ModelError | None,
    ) -> list[ModelItem]:
        """The end of a stream: what was held back, notices, the reply."""
        profile = target.profile
        size = _size(body)
        if problem is None and (trouble := collector.trouble()):
            problem = failure("bad_answer" if collector.done else "broken_stream", profile, trouble)
            if not collector.shown:
                raise problem
        items = collector.end()
        usage = collector.usage or Usage(
            size, (len(collector.text) + len(collector.reasoning)) // 4 + 1, estimated=True
        )
        if problem is not None:
            problem.shown = True
            return [*items, collector.interrupted(usage, problem.message, model=profile.name)]
        if _overflowed(collector, usage, profile):
            raise failure("context_length", profile, "The request fills its whole context window.")
        if not target.lessons.warned_cut and collector.usage and 4000 < size > 3 * usage.input:
            target.lessons.warned_cut = True
            items.append(ModelNotice(cut_notice(profile, size, usage.input), "warning"))
        reply = collector.reply(usage, model=profile.name)
        target.lessons.thinks_first = target.lessons.thinks_first or collector.orphan
        return [*items, reply]

    async def _open(self, stack: AsyncExitStack, profile: ModelProfile, body: dict[str, Any]) -> Any:
        """Sends the request; the response's headers are there, and its socket closes with the stack."""
        client = await self._connected()
        import openai  # loaded by now; kept out of the module so that the server starts without it

        manager = client.chat.completions.with_streaming_response.create(
            model=profile.name, messages=[], stream=True, extra_body=body
        )
        try:
            with anyio.move_on_after(profile.first_timeout_s) as scope:
                response = await manager.__aenter__()
                stack.push_async_callback(_close_shielded, response)
                return response
        except openai.APIStatusError as error:
            raise _Refused(_read_refusal(error, profile, _size(body))) from None
        except openai.APIConnectionError as error:
            cause = redact(str(error.__cause__ or error), profile)
            hint = f"Is a server running at {profile.shown_url}? `model.base_url` changes it."
            message = f"{profile.shown_url} could not be reached for model {profile.name}: {cause}."
            raise ModelError(message, kind="unavailable", hint=hint) from None
        assert scope.cancelled_caught
        raise timed_out(profile, "no answer", profile.first_timeout_s)

    async def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            await self.warm()
            import httpx2
            import openai

            profile = self.profile
            self._client = self._client or openai.AsyncOpenAI(
                base_url=profile.base_url,
                api_key=profile.api_key.reveal() if profile.api_key else "none",
                max_retries=0,
                timeout=httpx2.Timeout(None, connect=10.0),
                http_client=openai.DefaultAsyncHttpxClient(trust_env=not profile.is_local),
            )
        return self._client

    async def _chunks(
        self, response: Any, profile: ModelProfile, collector: Collector
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """The stream's chunks. Sets `collector.done` at [DONE]; raises what is no stream of this protocol."""
        kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
        reader = EventReader()
        source: AsyncIterator[bytes] = response.iter_bytes()
        if kind in ("application/json", "text/html"):
            source = _as_events(source)
        async with aclosing(reader.events(source)) as events:
            while (event := await self._next(events, profile, collector)) is not None:
                if event.data.startswith("[DONE]"):
                    collector.done = True
                    with anyio.move_on_after(DRAIN_S):  # a connection read to its end is used again
                        await self._next(events, profile, collector)
                    return
                if (chunk := _chunk(event.data, event.name, profile)) is not None:
                    yield chunk
        if not collector.chunks and (kind != "text/event-stream" or reader.head.strip()):
            raise no_stream(profile, kind, reader.head)

    async def _next(
        self, events: AsyncGenerator[ServerEvent], profile: ModelProfile, collector: Collector
    ) -> ServerEvent | None:
        """The next event; None at the end, which is also when nothing follows an answer that has ended."""
        import httpx2

        limit = profile.idle_timeout_s if collector.chunks else profile.first_timeout_s
        if collector.finish:
            limit = min(TAIL_S, profile.idle_timeout_s)
        try:
            with anyio.move_on_after(limit) as scope:
                return await anext(events, None)
        except (httpx2.HTTPError, httpx2.StreamError, TooLong) as error:
            if collector.finish or collector.done:
                return None
            raise failure("broken_stream", profile, f"The connection broke ({type(error).__name__}).") from None
        if scope.cancelled_caught and not collector.finish:
            raise timed_out(profile, "nothing", limit)
        return None


def _chunk(data: str, name: str, profile: ModelProfile) -> Mapping[str, Any] | None:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        if name == "error":
            raise _Refused(refusal(None, data, profile)) from None
        raise failure("broken_stream", profile, "It sent something that is not JSON.") from None
    if isinstance(chunk, list):
        chunk = chunk[0] if chunk and isinstance(chunk[0], dict) else None
    if not isinstance(chunk, dict):
        return None
    if chunk.get("error") or chunk.get("object") == "error" or name == "error":
        raise _Refused(refusal(None, chunk, profile))
    return chunk


async def _as_events(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body that claims to be no event stream: JSON becomes one event; anything else is read as it is."""
    body = bytearray()
    async for block in source:
        body += block
        if len(body) > MAX_BODY:
            raise TooLong(f"more than {MAX_BODY} bytes")
    text = bytes(body).strip()
    if text[:1] in (b"{", b"["):
        yield b"data: " + b" ".join(text.splitlines()) + b"\n\ndata: [DONE]\n\n"
    else:
        yield text + b"\n"


async def _close_shielded(response: Any) -> None:
    with anyio.CancelScope(shield=True):
        await response.close()


def _read_refusal(error: Any, profile: ModelProfile, size: int) -> Refusal:
    text = error.response.text
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        body = text
    found = refusal(error.status_code, body, profile, dict(error.response.headers))
    if found.status == 400 and not text.strip() and size > profile.context_window // 2:
        return dataclasses.replace(found, status=413)  # Cerebras says no more than that
    return found


def _size(body: Mapping[str, Any]) -> int:
    """A rough count of the request's tokens, four characters each; tools count as what their schemas weigh."""
    chars = 0
    for message in body["messages"]:
        chars += 16 + len(message.get("content", ""))
        for call in message.get("tool_calls", ()):
            chars += 40 + len(call["function"]["arguments"])
    for tool in body.get("tools", ()):
        chars += 200 + len(tool["function"]["description"])
    return chars // 4


def _overflowed(collector: Collector, usage: Usage, profile: ModelProfile) -> bool:
    """Whether an answer with nothing in it says that the prompt filled the window."""
    if collector.shown or collector.calls() or usage.estimated:
        return False
    full = usage.input >= 0.99 * profile.context_window and collector.finish.lower() == "length"
    return full or collector.finish.lower() == "model_context_window_exceeded"

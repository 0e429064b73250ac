"""A deterministic model that plays a script: for tests, demonstrations and bug reports. It ships, and needs no network.

A script is JSON, either a list of replies or an object:

    {"name": "scripted", "context_window": 128000,
     "replies": [REPLY, …],                                   played in order over the whole conversation
     "turns": [[REPLY, …], {"match": "regex", "replies": [REPLY, …]}, …]}

`turns` gives each user message its own replies, by position; a turn with `match` is played instead for every user message
in which the regular expression is found (case is ignored), in the order of the file. In a list of replies, one with `match`
begins such a turn, which goes on to the next `match`. A reply is an object; every field may be left out:

    thought      reasoning that is streamed first
    text         the answer, streamed word by word
    calls        [{"name": "read_file", "arguments": {…}}]; arguments given as a string are sent as they are, broken or not;
                 "id" sets the call's id
    chunks       how `text` is cut: a number of words a delta (default 1), or the list of deltas itself (`text` may then be left out)
    delay_ms     before anything comes
    chunk_ms     between two deltas
    finish       stop, tool_calls, length, refusal, interrupted; by default what fits. `interrupted` drops the calls
    problem      what is said to have broken off
    error        kind of a `ModelError` (see errors.py) raised instead of a reply; after a text it breaks the answer off
    retry_after_s, status    of that error
    usage        {"input": n, "output": n, "cached": n}; by default an estimate, marked as one
    cite         true: adds the quotes that the turn's tools reported, with paper and page
    wait_for     name of a file that must exist before the reply goes on (looked for 20 times a second)
    match        see above

Where the script stands follows from the history alone: the user messages and the answers since the last one. So parallel
conversations do not disturb one another, and a conversation that is resumed goes on at its place. Replies that leave no
message behind (errors, empty answers) are counted by conversation while the object lives. When the replies are used up, the
model says so.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import anyio

from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.model import (
    FinishReason,
    ModelItem,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from astroresearch.errors import InvalidInput, ModelError, ModelErrorKind

OUT_OF_REPLIES = "The script has no further reply."
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Reply:
    """One entry of a script; the module's docstring explains the fields."""

    text: str = ""
    thought: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    chunks: int | tuple[str, ...] = 1
    delay_ms: float = 0
    chunk_ms: float = 0
    finish: FinishReason | None = None
    problem: str = ""
    error: ModelErrorKind | None = None
    retry_after_s: float | None = None
    status: int | None = None
    usage: Mapping[str, int] | None = None
    cite: bool = False
    wait_for: str = ""
    match: str = ""

    @classmethod
    def of(cls, value: Mapping[str, Any] | str | Reply, where: str = "reply") -> Reply:
        """Reads one entry; a bare string is a text.

        Raises:
            InvalidInput: A field is unknown or does not fit.
        """
        if isinstance(value, Reply):
            return value
        if isinstance(value, str):
            return cls(text=value)
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{where} of the script must be an object, not {type(value).__name__}.")
        if unknown := set(value) - set(cls.__dataclass_fields__):
            raise InvalidInput(f"{where} of the script has unknown fields: {', '.join(sorted(map(str, unknown)))}.")
        fields = dict(value)
        for name, allowed in (("finish", FinishReason), ("error", ModelErrorKind)):
            if fields.get(name) is not None and fields[name] not in get_args(allowed):
                raise InvalidInput(
                    f"`{name}` in {where} of the script must be one of {', '.join(get_args(allowed))}.", field=name
                )
        for call in fields.get("calls", ()):
            if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
                raise InvalidInput(f"A call in {where} of the script needs a `name`.", field="calls")
        fields["calls"] = tuple(fields.get("calls", ()))
        if isinstance(fields.get("chunks"), list):
            fields["chunks"] = tuple(fields["chunks"])
            fields.setdefault("text", "".join(fields["chunks"]))
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class _Script:
    """A script, sorted by how its replies are found."""

    replies: tuple[Reply, ...] = ()
    turns: tuple[tuple[Reply, ...], ...] = ()
    matched: tuple[tuple[re.Pattern[str], tuple[Reply, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a conversation stands."""

    key: str
    question: str
    turn: int
    "From 0."
    step: int
    "Answers since the question."
    answers: int
    "Answers in all."
    messages: Sequence[Message] = field(default=())
    "Since the question."


class Scripted:
    """Plays a script (see the module's docstring). Fits `engine.model.Model`.

    Args:
        script: Replies, or the object of the file format.
        name: For people; the file's own name wins.
        record: Keep every request in `requests`, for tests.
    """

    def __init__(
        self, script: Sequence[Any] | Mapping[str, Any], *, name: str = "scripted", record: bool = False
    ) -> None:
        given: Mapping[str, Any] = script if isinstance(script, Mapping) else {"replies": script}
        if unknown := set(given) - {"name", "context_window", "replies", "turns"}:
            raise InvalidInput(f"The script has unknown fields: {', '.join(sorted(map(str, unknown)))}.")
        self._name = str(given.get("name", name))
        self._window = int(given.get("context_window", 128_000))
        self._script = _sorted(given)
        self._gone: Counter[tuple[str, int]] = Counter()
        self._record = record
        self.requests: list[ModelRequest] = []

    @classmethod
    def from_file(cls, path: Path) -> Scripted:
        """Reads a script.

        Raises:
            InvalidInput: The file can't be read, is not JSON, or is no script.
        """
        try:
            script = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"The script {path} can't be read: {error}.", field="model.script") from error
        if not isinstance(script, (list, dict)):
            raise InvalidInput(f"The script {path} must be a list or an object.", field="model.script")
        return cls(script, name=path.stem)

    @property
    def name(self) -> str:
        """For people and records."""
        return self._name

    @property
    def context_window(self) -> int:
        """Tokens that are said to fit."""
        return self._window

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelItem]]:
        """Plays the reply that is due."""
        if self._record:
            self.requests.append(request)
        place = _place(request.messages)
        reply = self._due(place)
        items = self._play(reply, request, place)
        try:
            yield items
        finally:
            await items.aclose()

    def _due(self, place: _Place) -> Reply:
        gone_here = self._gone[place.key, place.turn]
        for pattern, replies in self._script.matched:
            if pattern.search(place.question):
                return self._count(place, _at(replies, place.step + gone_here))
        if self._script.turns:
            replies = self._script.turns[place.turn] if place.turn < len(self._script.turns) else ()
            return self._count(place, _at(replies, place.step + gone_here))
        gone = sum(n for (key, _), n in self._gone.items() if key == place.key)
        return self._count(place, _at(self._script.replies, place.answers + gone))

    def _count(self, place: _Place, reply: Reply) -> Reply:
        """Remembers a reply that the history will not show."""
        if (
            not reply.text.strip()
            and not reply.cite
            and (not reply.calls or reply.error or reply.finish == "interrupted")
        ):
            self._gone[place.key, place.turn] += 1
        return reply

    async def _play(self, reply: Reply, request: ModelRequest, place: _Place) -> AsyncGenerator[ModelItem, None]:
        await anyio.sleep(reply.delay_ms / 1_000)
        while reply.wait_for and not await anyio.Path(reply.wait_for).exists():  # noqa: ASYNC110
            await anyio.sleep(_POLL_S)
        text = reply.text + (_quotes(place.messages) if reply.cite else "")
        if reply.error and not text:
            raise _error(reply)
        pause = reply.chunk_ms / 1_000
        for piece in _cut(reply.thought, 1):
            yield ThoughtDelta(piece)
            await anyio.sleep(pause)
        for piece in _pieces(reply, text):
            yield TextDelta(piece)
            await anyio.sleep(pause)
        yield _end(reply, text, request, place, self._name)


def _sorted(given: Mapping[str, Any]) -> _Script:
    replies, matched = _groups(given.get("replies", ()), "reply")
    turns: list[tuple[Reply, ...]] = []
    for number, turn in enumerate(given.get("turns", ()), 1):
        if isinstance(turn, Mapping) and "replies" in turn:
            own = tuple(Reply.of(r, f"turn {number}") for r in turn["replies"])
            if turn.get("match"):
                matched.append((_pattern(turn["match"]), own))
            else:
                turns.append(own)
        elif isinstance(turn, list):
            own, inner = _groups(turn, f"turn {number}")
            matched += inner
            if own or not inner:
                turns.append(own)
        else:
            raise InvalidInput(f"Turn {number} of the script must be a list of replies, or an object with `replies`.")
    return _Script(replies, tuple(turns), tuple(matched))


def _groups(
    entries: Sequence[Any], where: str
) -> tuple[tuple[Reply, ...], list[tuple[re.Pattern[str], tuple[Reply, ...]]]]:
    plain: list[Reply] = []
    groups: list[tuple[re.Pattern[str], list[Reply]]] = []
    for number, entry in enumerate(entries, 1):
        reply = Reply.of(entry, f"{where} {number}")
        if reply.match:
            groups.append((_pattern(reply.match), []))
        (groups[-1][1] if groups else plain).append(reply)
    return tuple(plain), [(pattern, tuple(replies)) for pattern, replies in groups]


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise InvalidInput(
            f"`match` {text!r} of the script is no regular expression: {error}.", field="match"
        ) from error


def _place(messages: Sequence[Message]) -> _Place:
    """A turn begins with its first user message: steering and our own remarks carry the same turn id, or a mark."""
    starts: list[int] = []
    turn_id: str | None = None
    for index, message in enumerate(messages):
        fresh = not message.turn_id or message.turn_id != turn_id
        if message.role == "user" and not message.meta.get("synthetic") and fresh:
            starts.append(index)
            turn_id = message.turn_id
    begin = starts[-1] if starts else 0
    since = messages[begin:]
    return _Place(
        key=messages[starts[0]].content if starts else "",
        question=messages[begin].content if messages else "",
        turn=max(0, len(starts) - 1),
        step=sum(m.role == "assistant" for m in since),
        answers=sum(m.role == "assistant" for m in messages),
        messages=since,
    )


def _at(replies: Sequence[Reply], index: int) -> Reply:
    return replies[index] if index < len(replies) else Reply(text=OUT_OF_REPLIES)


def _error(reply: Reply) -> ModelError:
    assert reply.error is not None
    message = reply.problem or f"The script answers with the error `{reply.error}`."
    return ModelError(message, kind=reply.error, status=reply.status, retry_after_s=reply.retry_after_s)


def _pieces(reply: Reply, text: str) -> Sequence[str]:
    if isinstance(reply.chunks, int):
        return _cut(text, reply.chunks)
    given = "".join(reply.chunks)
    if not text.startswith(given):
        return _cut(text, 1)
    rest = text[len(given) :]
    return (*reply.chunks, rest) if rest else reply.chunks


def _cut(text: str, words: int) -> Sequence[str]:
    parts = re.findall(r"\s*\S+\s*?(?=\s|$)|\s+$", text)
    size = max(1, words)
    return ["".join(parts[i : i + size]) for i in range(0, len(parts), size)]


def _end(reply: Reply, text: str, request: ModelRequest, place: _Place, name: str) -> ModelReply:
    broken = reply.error is not None or reply.finish == "interrupted"
    calls = () if broken else tuple(_call(c, place, i) for i, c in enumerate(reply.calls))
    finish: FinishReason = reply.finish or ("tool_calls" if calls else "stop")
    problem = reply.problem or ("The script breaks this answer off." if broken else "")
    usage = _usage(reply.usage) if reply.usage is not None else _estimate(request, text + reply.thought)
    answer = ModelReply(text, calls, finish, usage, reasoning=reply.thought, problem=problem, model=name)
    return replace(answer, finish="interrupted") if broken else answer


def _call(call: Mapping[str, Any], place: _Place, index: int) -> ToolCall:
    given = call.get("arguments", {})
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    ident = call.get("id") or f"c{place.turn % 1_000:03d}{place.step % 1_000:03d}{index % 100:02d}"
    return ToolCall(str(ident), str(call["name"]), arguments)


def _usage(given: Mapping[str, int]) -> Usage:
    return Usage(given.get("input", 0), given.get("output", 0), given.get("cached", 0))


def _estimate(request: ModelRequest, output: str) -> Usage:
    return Usage(sum(len(m.content) for m in request.messages) // 4 + 1, len(output) // 4 + 1, estimated=True)


def _quotes(messages: Sequence[Message]) -> str:
    """The citations that tools reported since the question, a line each."""
    lines: list[str] = []
    for message in messages:
        for citation in message.meta.get("metadata", {}).get("citations", ()):
            paper = citation.get("bibcode") or citation.get("paperId", "")
            line = f"“{citation.get('quote', '')}” ({paper}, p. {citation.get('page', '?')})"
            if line not in lines:
                lines.append(line)
    return "".join(f"\n\n[{number}] {line}" for number, line in enumerate(lines, 1))

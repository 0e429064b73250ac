"""What the engine asks of a language model; models/ holds what answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from astroresearch.engine.messages import Message, ToolCall

FinishReason = Literal["stop", "tool_calls", "length", "refusal", "interrupted"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a model is told of a tool; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step's request. `messages` is a valid history (see `engine.history.normalise`)."""

    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    thinking: bool = False
    max_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. `estimated` where the provider did not say."""

    input: int = 0
    output: int = 0
    cached: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """Some reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Something the user should see while waiting: a retry, a field that the provider refused."""

    text: str
    level: Literal["info", "warning"] = "info"


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole answer; always the last item of a stream that did not raise."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: FinishReason
    usage: Usage
    reasoning: str = ""
    reasoning_field: str = ""
    problem: str = ""
    "With finish `interrupted`: what broke, for people."
    model: str = ""


ModelItem = TextDelta | ThoughtDelta | ModelNotice | ModelReply


class Model(Protocol):
    """A language model. One object serves many turns at once."""

    @property
    def name(self) -> str:
        """For people and records."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens that fit."""
        ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelItem]]:
        """Opens one streamed answer; leaving the context closes its socket at once, also on cancel.

        The iterator ends with exactly one `ModelReply`, or raises `ModelError`. An answer that broke off after output
        was shown ends with a `ModelReply` whose finish is `interrupted` and that holds what came, without calls.
        """
        ...

"""Short words for tests of the model client: a profile for a fake provider, a request, an answer collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from astroresearch.config import Secret
from astroresearch.engine.messages import Message
from astroresearch.engine.model import (
    Model,
    ModelItem,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThoughtDelta,
    ToolDefinition,
)
from astroresearch.models.openai_chat import OpenAIChat
from astroresearch.models.profiles import ModelProfile
from tests.fakes.provider import FakeProvider

KEY = "sk-canary-0123456789abcdef"
READ_FILE = ToolDefinition(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
SYSTEM = Message("system", "You help astronomers.")
HELLO = Message("user", "What heats cool cores?")


@dataclass
class Answer:
    """What a stream gave."""

    items: list[ModelItem] = field(default_factory=list)

    @property
    def shown(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, TextDelta))

    @property
    def thoughts(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, ThoughtDelta))

    @property
    def notices(self) -> list[str]:
        return [i.text for i in self.items if isinstance(i, ModelNotice)]

    @property
    def reply(self) -> ModelReply:
        last = self.items[-1]
        assert isinstance(last, ModelReply)
        assert not any(isinstance(i, ModelReply) for i in self.items[:-1])
        return last


def client(provider: FakeProvider, *, waits: list[float] | None = None, **changes: Any) -> OpenAIChat:
    """The client of a fake provider, which notes its waits instead of waiting."""
    noted = [] if waits is None else waits

    async def note(seconds: float) -> None:
        noted.append(seconds)

    options: dict[str, Any] = {"name": "m", "api_key": Secret(KEY), **changes}
    return OpenAIChat(ModelProfile(base_url=provider.base_url, **options), sleep=note)


async def ask(
    model: Model,
    messages: Sequence[Message] = (SYSTEM, HELLO),
    tools: Sequence[ToolDefinition] = (READ_FILE,),
    **options: Any,
) -> Answer:
    """One answer, to its end."""
    answer = Answer()
    async with model.stream(ModelRequest(messages, tools, **options)) as items:
        async for item in items:
            answer.items.append(item)
    return answer

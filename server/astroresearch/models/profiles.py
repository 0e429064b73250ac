"""Where a model lives and how it wants to be spoken to: the profile, and what was learnt of its endpoint by being refused."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from astroresearch.config import OPENAI_URL, Secret, Settings
from astroresearch.errors import ModelError

IDLE_S = 60.0
"The default of `model.idle_timeout_s`."
READING_S = 300.0
"Until the first output of a model on this machine, whose processor may need minutes to read a prompt."


@dataclass(frozen=True)
class ModelProfile:
    """One model of one OpenAI-compatible endpoint."""

    name: str
    base_url: str = OPENAI_URL
    api_key: Secret | None = None
    context_window: int = 128_000
    thinking_style: str = "none"
    "How reasoning is switched: none, enable_thinking, thinking_type, chat_template, reasoning_effort."
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    "Further fields of each request."
    prices: tuple[float, float] | None = None
    "Price of a million input and output tokens; None: not known."
    fallback: str = ""
    "Another model of the same endpoint, tried when this one fails before any output."
    idle_timeout_s: float = IDLE_S
    max_output_tokens: int = 0
    "0 leaves it to the endpoint."
    key_source: str = ""
    "Where the key came from, for people: `environment`, a file."

    @classmethod
    def from_settings(cls, settings: Settings) -> ModelProfile:
        """The model that the user named.

        Raises:
            ModelError: None is named (kind `no_model`).
        """
        name = settings.text("model.name").strip()
        if not name:
            raise ModelError(
                "No language model is configured.",
                kind="no_model",
                hint="Set `model.name` (and `model.base_url`, `model.api_key`), or ASTRORESEARCH_MODEL.",
            )
        prices = (settings.number("model.price_input"), settings.number("model.price_output"))
        return cls(
            name=name,
            base_url=settings.text("model.base_url").strip().rstrip("/") or OPENAI_URL,
            api_key=settings.secret("model.api_key"),
            context_window=max(1, settings.integer("model.context_window")),
            thinking_style=settings.text("model.thinking_style"),
            extra_body=dict(settings["model.extra_body"]),
            prices=prices if any(prices) else None,
            fallback=settings.text("model.fallback").strip(),
            idle_timeout_s=max(1.0, settings.number("model.idle_timeout_s")),
            max_output_tokens=max(0, settings.integer("model.max_output_tokens")),
            key_source=settings.origins.get("model.api_key", ""),
        )

    @property
    def first_timeout_s(self) -> float:
        """How long to wait for the first output: longer than in between for a local model, unless the user set the time."""
        return READING_S if self.is_local and self.idle_timeout_s == IDLE_S else self.idle_timeout_s

    @property
    def host(self) -> str:
        """The endpoint's host name in lower case; empty where the base URL has none."""
        return (urlsplit(self.base_url).hostname or "").lower()

    @property
    def is_local(self) -> bool:
        """Whether the endpoint runs on this machine, where keys and proxies mean nothing."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def shown_url(self) -> str:
        """The base URL for people, without user, password, query and fragment."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def is_mistral(self) -> bool:
        """Whether the endpoint is Mistral's own, with its rules for call ids and roles."""
        return self.host == "mistral.ai" or self.host.endswith(".mistral.ai")

    @property
    def wants_reasoning_back(self) -> bool:
        """Whether the endpoint refuses tool turns that lack the reasoning it sent (DeepSeek's thinking mode)."""
        return self.host.endswith("deepseek.com") or "deepseek" in self.name.lower()

    def thinking_body(self, on: bool) -> dict[str, Any]:
        """The fields that switch reasoning on or off in this endpoint's own way."""
        match self.thinking_style:
            case "enable_thinking":
                return {"enable_thinking": on}
            case "thinking_type":
                return {"thinking": {"type": "enabled" if on else "disabled"}}
            case "chat_template":
                return {"chat_template_kwargs": {"enable_thinking": on}}
            case "reasoning_effort" if on:
                return {"reasoning_effort": "medium"}
            case _:
                return {}


@dataclass
class Lessons:
    """What one model of one endpoint taught by refusing a request; kept as long as the process lives."""

    dropped: set[str] = field(default_factory=set)
    "Fields of the body that it refuses."
    completion_tokens: bool = False
    "It wants `max_completion_tokens` in place of `max_tokens`."
    no_tools: bool = False
    omit_empty_content: bool = False
    "It refuses an empty `content` beside tool calls."
    answer_before_user: bool = False
    "It refuses a user message right after a tool result."
    reasoning_back: bool | None = None
    "None: as the profile says."
    thinks_first: bool = False
    "Its template opens the reasoning itself, so that an answer starts inside it."
    warned_cut: bool = False
    "The user was told that the server cuts prompts silently."

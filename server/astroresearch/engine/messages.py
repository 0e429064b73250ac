"""What a model is told and what it says, in our own shapes.

A history is a list of messages; each assistant message with calls is followed at once by one result per call, in call
order (invariants I1 and I2). `engine.history` mends a list for which that does not hold.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
_ALPHABET = string.ascii_letters + string.digits


def new_call_id() -> str:
    """Nine characters [A-Za-z0-9]: the strictest form that a provider asks for (Mistral's)."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(9))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asked for."""

    id: str
    "Ours, unique in the session."
    name: str
    arguments: str
    "The JSON text as the model wrote it, never repaired. Valid JSON only after the executor has said so."
    provider_id: str = ""
    "The provider's own id, sent back in its turn; may repeat between messages."
    extra: Mapping[str, Any] = field(default_factory=dict)
    "Unknown fields of the call (such as a thought signature), echoed unchanged."
    recovered: bool = False
    "It was written as text and recognised."


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the history."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    "For role `tool`: the id of the call that it answers (ours)."
    name: str = ""
    "For role `tool`: the tool's name."
    reasoning: str = ""
    reasoning_field: str = ""
    "The name under which the provider sent its reasoning, for providers that want it back."
    status: str = ""
    "For role `tool`: completed, failed, cancelled, denied, interrupted. For role `assistant`: `interrupted` if it broke off."
    tainted: bool = False
    "Holds a stranger's text."
    turn_id: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    "For front ends and exports; never sent to a model."

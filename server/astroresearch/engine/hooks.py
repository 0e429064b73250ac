"""Hooks: code or commands of the user that see a turn's events and may stop or change them.

Thirteen events are named; `CALLED` says which of them anything fires today: those of tools by the executor, the others by
agents/. Several hooks on one event run side by side; deny wins over ask, ask over allow; a hook can't
overrule a deny rule, and input that it changed is checked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import anyio

from astroresearch.errors import AstroResearchError

HookEvent = Literal[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Notification",
]
CALLED: frozenset[HookEvent] = frozenset(
    {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart",
     "SubagentStop", "Stop"}
)  # fmt: skip
_RANK = {"deny": 0, "ask": 1, "allow": 2, None: 3}


@dataclass(frozen=True, slots=True)
class HookInput:
    """What a hook is told."""

    event: HookEvent
    session_id: str
    agent: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    "PreToolUse: tool_name, tool_call_id, tool_input. PostToolUse: also tool_output, is_error."


@dataclass(frozen=True, slots=True)
class HookOutput:
    """What a hook wants. The default wants nothing."""

    decision: Literal["allow", "ask", "deny"] | None = None
    reason: str = ""
    updated_input: Mapping[str, Any] | None = None
    updated_output: str | None = None
    context: str = ""
    "Added for the model."
    warning: str = ""
    "Shown to the user."


HookFunction = Callable[[HookInput], Awaitable[HookOutput | None]]


@dataclass(frozen=True, slots=True)
class Hook:
    """One registered hook; `matcher` is a glob on the tool's name, or several with `|` (empty or `*`: every tool)."""

    event: HookEvent
    run: HookFunction
    matcher: str = "*"
    timeout_s: float = 60.0
    fail_closed: bool = False
    name: str = ""

    def matches(self, tool: str) -> bool:
        """Whether it is about this tool; for events without one, about the empty name."""
        return any(fnmatchcase(tool, one.strip()) for one in (self.matcher or "*").split("|"))


class Hooks:
    """All hooks in force."""

    def __init__(self, hooks: Sequence[Hook] = ()) -> None:
        self._hooks = list(hooks)
        self._configured: list[Hook] = []

    def configure(self, hooks: Sequence[Hook]) -> None:
        """Replaces those of the settings; those that were registered otherwise stay, and come before them."""
        self._configured = list(hooks)

    def add(self, hook: Hook) -> None:
        """Registers one more."""
        self._hooks.append(hook)

    async def fire(self, given: HookInput) -> HookOutput:
        """Runs the matching hooks side by side and joins what they want."""
        tool = str(given.payload.get("tool_name", ""))
        hooks = [h for h in (*self._hooks, *self._configured) if h.event == given.event and h.matches(tool)]
        if not hooks:
            return HookOutput()
        outputs: list[HookOutput] = [HookOutput()] * len(hooks)

        async def one(index: int, hook: Hook) -> None:
            outputs[index] = await _run(hook, given)

        async with anyio.create_task_group() as group:
            for index, hook in enumerate(hooks):
                group.start_soon(one, index, hook)
        return _join(outputs)


async def _run(hook: Hook, given: HookInput) -> HookOutput:
    label = hook.name or "hook"
    try:
        with anyio.fail_after(hook.timeout_s):
            return await hook.run(given) or HookOutput()
    except TimeoutError:
        problem = f"{label} gave no answer within {hook.timeout_s:g} s."
    except (AstroResearchError, OSError, ValueError, TypeError, KeyError) as error:
        problem = f"{label} failed: {error}"
    return HookOutput(decision="deny" if hook.fail_closed else None, reason=problem, warning=problem)


def _join(outputs: Sequence[HookOutput]) -> HookOutput:
    strongest = min(outputs, key=lambda o: _RANK[o.decision])
    inputs = [o.updated_input for o in outputs if o.updated_input is not None]
    results = [o.updated_output for o in outputs if o.updated_output is not None]
    return HookOutput(
        decision=strongest.decision,
        reason=strongest.reason,
        updated_input=inputs[-1] if inputs else None,
        updated_output=results[-1] if results else None,
        context="\n".join(o.context for o in outputs if o.context),
        warning="\n".join(o.warning for o in outputs if o.warning),
    )

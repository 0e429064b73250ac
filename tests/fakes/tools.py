"""Tools that do what a test says, and a memory of what they did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import anyio

from astroresearch.engine.tool import AnyTool, Arguments, Effect, Kind, Registry, Rule, Tool, ToolContext, ToolOutput


class Nothing(Arguments):
    pass


class Text(Arguments):
    text: str = ""


class Named(Arguments):
    path: str
    limit: int = 10


class Flagged(Arguments):
    path: str = ""
    replace_all: bool = False
    tags: tuple[str, ...] = ()


@dataclass
class Journal:
    """What happened to the tools of one test, in order."""

    began: list[tuple[str, Any]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    alive: int = 0
    most_alive: int = 0

    def names(self) -> list[str]:
        return [name for name, _ in self.began]


Behaviour = Callable[[Any, ToolContext[Any]], Any]


def tool(
    name: str,
    behaviour: Behaviour | str = "ok",
    *,
    journal: Journal | None = None,
    arguments: type[Arguments] = Text,
    effect: Effect = "none",
    kind: Kind = "other",
    decision: Literal["deny", "ask", "allow"] = "allow",
    interrupt: Literal["cancel", "block"] = "cancel",
    safe: bool = True,
    untrusted: bool = False,
    aborts: bool = False,
    timeout_s: float | None = None,
    resources: Callable[[Any], frozenset[str] | None] | None = None,
    own_rule: Rule | None = None,
    exempt: bool = False,
    max_chars: int | None = None,
    value: Callable[[Any], str] | None = None,
    describe: str = "",
) -> AnyTool:
    """A tool with these traits. `behaviour`: a text to answer, or a function (async or not) of arguments and context that
    answers a text or a `ToolOutput`, or raises."""
    diary = journal or Journal()

    class Fake(Tool[Any, Any]):
        description: ClassVar[str] = f"does {name}"

        def is_concurrency_safe(self, args: Any) -> bool:
            return safe

        def resources(self, args: Any) -> frozenset[str] | None:
            return resources(args) if resources else None

        def rule_value(self, args: Any) -> str:
            return value(args) if value else getattr(args, "path", "")

        async def check_permissions(self, args: Any, context: ToolContext[Any]) -> Rule | None:
            return own_rule

        def taint_exempt(self, args: Any, context: ToolContext[Any]) -> bool:
            return exempt

        async def describe(self, args: Any, context: ToolContext[Any]) -> str:
            return describe or self.title(args)

        async def execute(self, args: Any, context: ToolContext[Any]) -> ToolOutput:
            diary.began.append((name, args))
            diary.alive += 1
            diary.most_alive = max(diary.most_alive, diary.alive)
            try:
                answer = behaviour if isinstance(behaviour, str) else behaviour(args, context)
                if hasattr(answer, "__await__"):
                    answer = await answer
                diary.ended.append(name)
                return answer if isinstance(answer, ToolOutput) else ToolOutput(str(answer))
            finally:
                diary.alive -= 1

    made: AnyTool = Fake()
    traits = {
        "name": name,
        "arguments": arguments,
        "effect": effect,
        "kind": kind,
        "default_decision": decision,
        "interrupt_behavior": interrupt,
        "reads_untrusted": untrusted,
        "causes_sibling_abort": aborts,
        "timeout_s": timeout_s,
        "max_result_chars": max_chars,
    }
    for trait, given in traits.items():
        setattr(Fake, trait, given)
    return made


async def forever(args: Any, context: ToolContext[Any]) -> str:
    """Waits until it is cancelled."""
    await anyio.sleep_forever()
    return ""


def registry(*tools: AnyTool) -> Registry:
    return Registry(tools)

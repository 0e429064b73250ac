"""The session's plan: what is to be done, in which order, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from astroresearch.engine.tool import Arguments, Effect, Kind, Tool, ToolContext, ToolOutput
from astroresearch.errors import InvalidInput
from astroresearch.tools.ports import ToolServices


class TodoItem(BaseModel):
    """One task."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(min_length=1, max_length=40, description="Short and unique in the list.")
    content: str = Field(min_length=1, max_length=500, description="What is to be done.")
    status: Literal["pending", "in_progress", "completed"] = Field("pending", description="How far it is.")
    blocked_by: list[str] = Field([], max_length=50, description="Ids of tasks that must be completed first.")


class TodoWriteArguments(Arguments):
    """The whole list; it replaces the former one."""

    items: list[TodoItem] = Field(max_length=100, description="All tasks, in order.")


class TodoWrite(Tool[TodoWriteArguments, ToolServices]):
    """Replaces the plan."""

    name = "todo_write"
    description = (
        "Writes the plan of this session for work of three steps or more: give the whole list each time. At most one task is "
        "in_progress; blocked_by says what must be completed first. The user sees it."
    )
    kind: ClassVar[Kind] = "think"
    arguments = TodoWriteArguments
    effect: ClassVar[Effect] = "library_write"
    default_decision = "allow"

    def title(self, args: TodoWriteArguments) -> str:
        """How far the plan is."""
        done = sum(item.status == "completed" for item in args.items)
        return f"Plan: {done} of {len(args.items)} done"

    def resources(self, args: TodoWriteArguments) -> frozenset[str]:
        """Touches the plan alone."""
        return frozenset({"plan"})

    async def execute(self, args: TodoWriteArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Checks the list and stores it."""
        check(args.items)
        items = [
            {"id": item.id, "content": item.content, "status": item.status, "blockedBy": list(item.blocked_by)}
            for item in args.items
        ]
        await context.services.todos.save(context.session_id, items, context)
        left = [item for item in args.items if item.status != "completed"]
        following = next_of(args.items)
        then = f" Next: {following.id}, {following.content}" if following else ""
        return ToolOutput(f"Plan saved: {len(left)} of {len(items)} tasks left.{then}", metadata={"items": items})


def check(items: Sequence[TodoItem]) -> None:
    """Whether the list is a plan.

    Raises:
        InvalidInput: A repeated or unknown id, a cycle, two tasks in progress, or one begun before what blocks it.
    """
    by_id = {item.id: item for item in items}
    if len(by_id) < len(items):
        repeated = sorted({item.id for item in items if sum(other.id == item.id for other in items) > 1})
        raise InvalidInput(f"Ids repeat: {', '.join(repeated)}.", field="items")
    for item in items:
        for name in item.blocked_by:
            if name not in by_id:
                raise InvalidInput(f"Task {item.id} is blocked by {name}, which is not in the list.", field="items")
    try:
        TopologicalSorter({item.id: item.blocked_by for item in items}).prepare()
    except CycleError as error:
        raise InvalidInput(f"Tasks block each other in a circle: {' → '.join(error.args[1])}.", field="items") from None
    active = [item.id for item in items if item.status == "in_progress"]
    if len(active) > 1:
        raise InvalidInput(f"At most one task may be in progress, not {', '.join(active)}.", field="items")
    for item in items:
        waiting = [name for name in item.blocked_by if by_id[name].status != "completed"]
        if item.status != "pending" and waiting:
            raise InvalidInput(f"Task {item.id} can't be {item.status} before {', '.join(waiting)}.", field="items")


def next_of(items: Sequence[TodoItem]) -> TodoItem | None:
    """The task in progress, else the first that nothing blocks."""
    done = {item.id for item in items if item.status == "completed"}
    active = [item for item in items if item.status == "in_progress"]
    free = [item for item in items if item.status == "pending" and set(item.blocked_by) <= done]
    return next(iter([*active, *free]), None)

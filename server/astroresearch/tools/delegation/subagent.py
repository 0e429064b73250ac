"""Handing a task to a subagent."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.engine.tool import Arguments, Kind, Rule, Tool, ToolContext, ToolOutput
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import clip


class SubagentArguments(Arguments):
    """What it shall do."""

    task: str = Field(
        min_length=1,
        max_length=8_000,
        description="The whole task: it sees nothing of this conversation. Say what to report back.",
    )
    name: str = Field(
        "helper", pattern=r"^[a-z][a-z0-9_-]{0,29}$", description="A short name for it, such as `reader`."
    )
    max_steps: int = Field(5, ge=1, le=10, description="Steps that it may take.")
    may_write: bool = Field(
        False, description="Whether it also gets the tools that change the manuscript; the user is asked then."
    )


class Subagent(Tool[SubagentArguments, ToolServices]):
    """A task in a context of its own, of which only the summary comes back."""

    name = "subagent"
    description = (
        "Gives a task to a subagent with its own context; only its summary and the list of its calls come back. Use it for "
        "work that reads much and reports little, such as going through several papers."
    )
    kind: ClassVar[Kind] = "think"
    arguments = SubagentArguments
    timeout_s: ClassVar[float | None] = 900.0
    default_decision = "allow"

    def title(self, args: SubagentArguments) -> str:
        """Names it and its task."""
        return f"Subagent {args.name}: {clip(' '.join(args.task.split()), 80)}"

    def is_concurrency_safe(self, args: SubagentArguments) -> bool:
        """Subagents that only read may work side by side."""
        return not args.may_write

    async def check_permissions(self, args: SubagentArguments, context: ToolContext[ToolServices]) -> Rule | None:
        """No subagents of subagents; tools that write need the user's word."""
        if context.depth > 0:
            return Rule("deny", "A subagent can't start another one.")
        return Rule("ask", "The subagent would get tools that change the manuscript.") if args.may_write else None

    async def describe(self, args: SubagentArguments, context: ToolContext[ToolServices]) -> str:
        """The whole task."""
        return f"Start the subagent {args.name} for at most {args.max_steps} steps with this task:\n{args.task}"

    async def execute(self, args: SubagentArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Runs it to its end."""
        report = await context.services.spawner.spawn(
            args.task, name=args.name, max_steps=args.max_steps, context=context, read_only=not args.may_write
        )
        calls = ", ".join(f"{tool} ({status})" for tool, status in report.calls) or "none"
        return ToolOutput(
            f"{report.summary or '(no summary)'}\n\n[Subagent {args.name}: {report.status}, {report.steps} steps; calls: {calls}]",
            is_error=report.status == "failed",
            metadata={
                "sessionId": report.session_id,
                "status": report.status,
                "calls": [{"tool": tool, "status": status} for tool, status in report.calls],
            },
            tainted=report.tainted,
            taint_source=f"what the subagent {args.name} read",
        )

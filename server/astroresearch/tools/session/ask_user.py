"""Asking the user."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from astroresearch.engine.tool import Arguments, Kind, Rule, Tool, ToolContext, ToolOutput
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import clip


class AskUserArguments(Arguments):
    """One question."""

    question: str = Field(min_length=1, max_length=2_000, description="One question, in plain words.")
    choices: list[str] = Field([], max_length=10, description="Answers to choose from; leave empty for a free answer.")


class AskUser(Tool[AskUserArguments, ToolServices]):
    """One question, and the user's answer."""

    name = "ask_user"
    description = (
        "Asks the user one question and waits for the answer. Use it when the request can be understood in ways that lead to "
        "different work, not for what you can find out yourself."
    )
    kind: ClassVar[Kind] = "other"
    arguments = AskUserArguments
    interrupt_behavior: ClassVar[Literal["cancel", "block"]] = "block"
    # The wait has its own limit, a setting; a cancel withdraws the question, which ends the call.
    timeout_s: ClassVar[float | None] = 3_600.0
    default_decision = "allow"

    def title(self, args: AskUserArguments) -> str:
        """The question."""
        return f"Ask: {clip(args.question, 100)}"

    async def check_permissions(self, args: AskUserArguments, context: ToolContext[ToolServices]) -> Rule | None:
        """Refused where nobody can answer."""
        if context.silent:
            return Rule("deny", "Nobody can be asked here. Decide by yourself, and say what you assumed.")
        return None

    async def execute(self, args: AskUserArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Asks and waits."""
        answer = await context.services.questions.ask(args.question, args.choices, context)
        if answer is None:
            return ToolOutput("No answer came. Go on by your best judgement, and say what you assumed.", is_error=True)
        return ToolOutput(f"The user answered: {answer}", metadata={"answer": answer})

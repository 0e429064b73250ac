"""Loading a skill's instructions."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.engine.tool import Arguments, Kind, Tool, ToolContext, ToolOutput
from astroresearch.tools.ports import ToolServices


class LoadSkillArguments(Arguments):
    """Which skill."""

    name: str = Field(min_length=1, max_length=100, description="Name of a skill from the list in the instructions.")


class LoadSkill(Tool[LoadSkillArguments, ToolServices]):
    """The body of one skill."""

    name = "load_skill"
    description = "Loads the full instructions of a skill. Do so before work that one of the listed skills describes."
    kind: ClassVar[Kind] = "read"
    arguments = LoadSkillArguments
    default_decision = "allow"

    def title(self, args: LoadSkillArguments) -> str:
        """Names the skill."""
        return f"Load the skill {args.name}"

    def is_concurrency_safe(self, args: LoadSkillArguments) -> bool:
        """Reading never disturbs."""
        return True

    def rule_value(self, args: LoadSkillArguments) -> str:
        """The skill's name."""
        return args.name

    async def execute(self, args: LoadSkillArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Loads it."""
        info, body = await context.services.skills.load(args.name)
        return ToolOutput(
            f"Skill {info.name}, in {info.path}:\n\n{body}",
            metadata={"name": info.name, "path": str(info.path)},
            tainted=not info.trusted,
            taint_source=f"the skill {info.name}",
        )

"""One paper's record."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.domain.plain import plain
from astroresearch.engine.tool import Arguments, Effect, Kind, Rule, Tool, ToolContext, ToolOutput
from astroresearch.tools.leaks import egress_rule, is_identifier
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import clip, paper_record


class GetPaperMetadataArguments(Arguments):
    """Which paper."""

    paper: str = Field(
        min_length=1,
        max_length=500,
        description="Any identifier: bibcode, DOI, arXiv id, URL, or the library's paper id.",
    )


class GetPaperMetadata(Tool[GetPaperMetadataArguments, ToolServices]):
    """Title, authors, identifiers, abstract and state of one paper."""

    name = "get_paper_metadata"
    description = "Gives the record of one paper by any identifier, from the library or else from ADS and arXiv."
    kind: ClassVar[Kind] = "read"
    arguments = GetPaperMetadataArguments
    effect: ClassVar[Effect] = "egress"
    reads_untrusted = True
    default_decision = "allow"

    def title(self, args: GetPaperMetadataArguments) -> str:
        """Names the paper."""
        return f"Look up {clip(args.paper, 80)}"

    def is_concurrency_safe(self, args: GetPaperMetadataArguments) -> bool:
        """Look-ups never disturb one another."""
        return True

    def rule_value(self, args: GetPaperMetadataArguments) -> str:
        """The identifier."""
        return args.paper

    def taint_exempt(self, args: GetPaperMetadataArguments, context: ToolContext[ToolServices]) -> bool:
        """An identifier tells nothing."""
        return is_identifier(args.paper)

    async def check_permissions(
        self, args: GetPaperMetadataArguments, context: ToolContext[ToolServices]
    ) -> Rule | None:
        """Asks where the "identifier" carries the manuscript's text."""
        return await egress_rule(args.paper, context)

    async def execute(self, args: GetPaperMetadataArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Looks it up."""
        paper = await context.services.catalogue.get(args.paper)
        source = f"the record of {clip(paper.title, 60)}"
        return ToolOutput(paper_record(paper), metadata={"paper": plain(paper)}, taint_source=source)

"""Getting a paper's PDF into the library."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.domain.plain import plain
from astroresearch.engine.tool import Arguments, Effect, Kind, Rule, Tool, ToolContext, ToolOutput
from astroresearch.tools.leaks import egress_rule, is_identifier
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import clip, paper_line


class DownloadPaperArguments(Arguments):
    """Which paper."""

    paper: str = Field(
        min_length=1,
        max_length=500,
        description="Any identifier: bibcode, DOI, arXiv id, URL, or the library's paper id.",
    )


class DownloadPaper(Tool[DownloadPaperArguments, ToolServices]):
    """The PDF, from arXiv or through ADS."""

    name = "download_paper"
    description = "Downloads a paper's PDF from arXiv or ADS's links into the library. Then parse_paper makes its text searchable."
    kind: ClassVar[Kind] = "fetch"
    arguments = DownloadPaperArguments
    effect: ClassVar[Effect] = "egress"
    reads_untrusted = True
    causes_sibling_abort = True
    timeout_s: ClassVar[float | None] = 180.0
    default_decision = "allow"

    def title(self, args: DownloadPaperArguments) -> str:
        """Names the paper."""
        return f"Download {clip(args.paper, 80)}"

    def resources(self, args: DownloadPaperArguments) -> frozenset[str]:
        """Different papers may come side by side."""
        return frozenset({f"paper:{args.paper}"})

    def rule_value(self, args: DownloadPaperArguments) -> str:
        """The identifier or URL."""
        return args.paper

    def taint_exempt(self, args: DownloadPaperArguments, context: ToolContext[ToolServices]) -> bool:
        """An identifier tells nothing, and it is looked up at the built-in services only."""
        return is_identifier(args.paper)

    async def check_permissions(self, args: DownloadPaperArguments, context: ToolContext[ToolServices]) -> Rule | None:
        """Refuses what is no paper's name: an address of somebody's own would be a way out of this machine."""
        if not is_identifier(args.paper):
            return Rule(
                "deny",
                f"{clip(args.paper, 80)!r} is not a paper's identifier; only papers of ADS and arXiv are downloaded.",
            )
        return await egress_rule(args.paper, context)

    async def execute(self, args: DownloadPaperArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Downloads, reporting bytes."""
        paper = await context.services.files.download(args.paper, progress=context.progress)
        then = " Its text is in the library." if paper.state == "searchable" else " Parse it to search its text."
        return ToolOutput(
            f"Downloaded: {paper_line(paper)}.{then}",
            metadata={"paper": plain(paper)},
            taint_source=f"the record of {clip(paper.title, 60)}",
        )

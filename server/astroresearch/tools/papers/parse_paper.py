"""Making a downloaded paper's text searchable."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.domain.plain import plain
from astroresearch.engine.tool import Arguments, Effect, Kind, Tool, ToolContext, ToolOutput
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import clip, paper_line


class ParsePaperArguments(Arguments):
    """Which paper."""

    paper: str = Field(
        min_length=1, max_length=500, description="Any identifier of a paper whose PDF is in the library."
    )


class ParsePaper(Tool[ParsePaperArguments, ToolServices]):
    """Text, passages and full-text index of one paper."""

    name = "parse_paper"
    description = "Reads a downloaded paper's PDF into text with pages and passages, so that rag_search and get_paper_content find it."
    kind: ClassVar[Kind] = "read"
    arguments = ParsePaperArguments
    effect: ClassVar[Effect] = "library_write"
    reads_untrusted = True
    causes_sibling_abort = True
    timeout_s: ClassVar[float | None] = 180.0
    default_decision = "allow"

    def title(self, args: ParsePaperArguments) -> str:
        """Names the paper."""
        return f"Read {clip(args.paper, 80)} into the library"

    def resources(self, args: ParsePaperArguments) -> frozenset[str]:
        """Different papers may be parsed side by side."""
        return frozenset({f"paper:{args.paper}"})

    def rule_value(self, args: ParsePaperArguments) -> str:
        """The identifier."""
        return args.paper

    async def execute(self, args: ParsePaperArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Parses, reporting pages."""
        paper = await context.services.files.parse(args.paper, progress=context.progress)
        found = [f"[Warning: {clip(warning, 300)}]" for warning in paper.warnings[:5]]
        return ToolOutput(
            "\n".join([f"Parsed {paper.pages_count} pages: {paper_line(paper)}.", *found]),
            is_error=paper.state == "failed",
            metadata={"paper": plain(paper)},
            taint_source=f"PDF of {clip(paper.title, 60)}",
        )

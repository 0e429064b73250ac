"""Reading a paper of the library page by page."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.engine.tool import Arguments, Kind, Tool, ToolContext, ToolOutput
from astroresearch.errors import InvalidInput
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import PAGE_BUDGET, by_line, clip


class GetPaperContentArguments(Arguments):
    """Which part of which paper."""

    paper: str = Field(min_length=1, max_length=500, description="Any identifier of a paper in the library.")
    page: int = Field(1, ge=1, description="Page, counted from 1.")
    offset: int = Field(0, ge=0, description="Characters of that page to skip, as a former answer said.")


class GetPaperContent(Tool[GetPaperContentArguments, ToolServices]):
    """The text of one page."""

    name = "get_paper_content"
    description = "Gives the text of one page of a paper in the library. Long pages come in parts. To find the right page use rag_search."
    kind: ClassVar[Kind] = "read"
    arguments = GetPaperContentArguments
    reads_untrusted = True
    max_result_chars: ClassVar[int | None] = 2 * PAGE_BUDGET
    default_decision = "allow"

    def title(self, args: GetPaperContentArguments) -> str:
        """Names the paper and the page."""
        return f"Read {clip(args.paper, 60)}, p. {args.page}"

    def is_concurrency_safe(self, args: GetPaperContentArguments) -> bool:
        """Reading never disturbs."""
        return True

    def rule_value(self, args: GetPaperContentArguments) -> str:
        """The identifier."""
        return args.paper

    async def execute(self, args: GetPaperContentArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Reads the page."""
        paper = await context.services.catalogue.get(args.paper, online=False)
        pages = await context.services.files.text(paper.id)
        page = next((page for page in pages if page.page == args.page), None)
        if page is None:
            raise InvalidInput(f"The paper has {len(pages)} pages; there is no page {args.page}.", field="page")
        if args.offset and args.offset >= len(page.text):
            raise InvalidInput(f"Page {args.page} has {len(page.text)} characters.", field="offset")
        stop = args.offset + PAGE_BUDGET
        text = page.text[args.offset : stop]
        left = len(page.text) - stop
        if left > 0:
            rest = f"[{left} more characters: offset={stop}]"
        else:
            rest = f"[end of page {args.page}]" if args.page < len(pages) else "[end of the paper]"
        head = f"{by_line(paper)}: {clip(paper.title, 120)} (paper {paper.id}), page {args.page} of {len(pages)}"
        return ToolOutput(
            f"{head}\n{text or '(no text on this page)'}\n{rest}",
            metadata={"paperId": paper.id, "page": args.page, "pages": len(pages)},
            taint_source=f"PDF of {by_line(paper)}",
        )

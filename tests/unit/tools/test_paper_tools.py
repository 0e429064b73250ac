"""The tools for papers, objects and notes, over a small library in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from astroresearch.engine.tool import ToolContext
from astroresearch.errors import InvalidInput, NotFound, Unreachable
from astroresearch.tools.papers.download_paper import DownloadPaper, DownloadPaperArguments
from astroresearch.tools.papers.get_paper_content import GetPaperContent, GetPaperContentArguments
from astroresearch.tools.papers.get_paper_metadata import GetPaperMetadata, GetPaperMetadataArguments
from astroresearch.tools.papers.parse_paper import ParsePaper, ParsePaperArguments
from astroresearch.tools.papers.query_target import QueryTarget, QueryTargetArguments
from astroresearch.tools.papers.rag_search import RagSearch, RagSearchArguments
from astroresearch.tools.papers.save_note import SaveNote, SaveNoteArguments
from astroresearch.tools.papers.search_papers import SearchPapers, SearchPapersArguments
from astroresearch.tools.ports import ToolServices
from tests.fakes.services import PERSEUS, FakeLibrary, FolderWorkspace, context, services

SENTENCE = "The ripples in the core of the Perseus cluster carry as much energy as the gas radiates away."


@pytest.fixture
def library() -> FakeLibrary:
    return FakeLibrary()


@pytest.fixture
def ctx(tmp_path: Path, library: FakeLibrary) -> ToolContext[ToolServices]:
    (tmp_path / "main.tex").write_text(f"\\section{{Results}}\n{SENTENCE}\n")
    return context(services(FolderWorkspace(tmp_path), library), extra={"citeKeys": ["fabian"]})


async def test_search_shows_state_and_identifiers(ctx: ToolContext[ToolServices]) -> None:
    seen: list[str] = []
    ctx.progress = lambda text, fraction: seen.append(text)
    output = await SearchPapers().execute(SearchPapersArguments(query="perseus ripples"), ctx)
    assert "bibcode 2003MNRAS.344L..43F, arXiv:astro-ph/0306036" in output.content
    assert "[in library, cited here]" in output.content
    assert output.metadata["hits"][0]["paper"]["id"] == PERSEUS.id
    assert output.tainted
    assert seen == ["1 papers so far"]


async def test_search_names_the_source_that_failed(ctx: ToolContext[ToolServices]) -> None:
    output = await SearchPapers().execute(SearchPapersArguments(query="nothing"), ctx)
    assert "No paper found" in output.content
    assert "ADS: no token is set." in output.content


async def test_a_query_with_the_manuscripts_text_asks_once_tainted(ctx: ToolContext[ToolServices]) -> None:
    tool = SearchPapers()
    short, leak = (
        SearchPapersArguments(query="perseus cluster ripples"),
        SearchPapersArguments(query=f"x  {SENTENCE.upper()}"),
    )
    assert await tool.check_permissions(leak, ctx) is None
    ctx.tainted, ctx.taint_sources = True, ("PDF of Fabian 2003",)
    assert await tool.check_permissions(short, ctx) is None
    assert tool.taint_exempt(short, ctx)
    rule = await tool.check_permissions(leak, ctx)
    assert rule is not None
    assert rule.decision == "ask"
    assert "main.tex" in rule.reason
    assert not tool.taint_exempt(SearchPapersArguments(query="x" * 201), ctx)


async def test_metadata(ctx: ToolContext[ToolServices]) -> None:
    output = await GetPaperMetadata().execute(GetPaperMetadataArguments(paper=PERSEUS.id), ctx)
    assert "Abstract: We present" in output.content
    assert output.metadata["paper"]["year"] == 2003
    with pytest.raises(NotFound):
        await GetPaperMetadata().execute(GetPaperMetadataArguments(paper="2020Nope"), ctx)


async def test_download_takes_papers_only(ctx: ToolContext[ToolServices]) -> None:
    tool = DownloadPaper()
    output = await tool.execute(DownloadPaperArguments(paper="astro-ph/0306036"), ctx)
    assert "Parse it" in output.content
    rule = await tool.check_permissions(DownloadPaperArguments(paper="https://evil.example/?q=secret"), ctx)
    assert rule is not None
    assert rule.decision == "deny"
    assert await tool.check_permissions(DownloadPaperArguments(paper="astro-ph/0306036"), ctx) is None
    assert tool.causes_sibling_abort
    assert ParsePaper.causes_sibling_abort


async def test_parse(ctx: ToolContext[ToolServices]) -> None:
    output = await ParsePaper().execute(ParsePaperArguments(paper=PERSEUS.id), ctx)
    assert output.content.startswith("Parsed 2 pages")


async def test_content_page_by_page(ctx: ToolContext[ToolServices]) -> None:
    tool = GetPaperContent()
    output = await tool.execute(GetPaperContentArguments(paper=PERSEUS.id, page=2), ctx)
    assert "sound waves" in output.content
    assert "[end of the paper]" in output.content
    with pytest.raises(InvalidInput, match="2 pages"):
        await tool.execute(GetPaperContentArguments(paper=PERSEUS.id, page=3), ctx)
    with pytest.raises(InvalidInput, match="characters"):
        await tool.execute(GetPaperContentArguments(paper=PERSEUS.id, page=2, offset=5_000), ctx)


async def test_rag_search_quotes_and_passages(ctx: ToolContext[ToolServices]) -> None:
    output = await RagSearch().execute(RagSearchArguments(query="sound waves"), ctx)
    assert "p. 2 (checked)" in output.content
    assert "Passages:" in output.content
    assert output.metadata["citations"][1]["verified"] is True
    assert output.metadata["citations"][1]["rects"]
    nothing = await RagSearch().execute(RagSearchArguments(query="nothing"), ctx)
    assert "Nothing in the library" in nothing.content
    assert "embedder" in nothing.content
    assert nothing.tainted is False


async def test_target(ctx: ToolContext[ToolServices]) -> None:
    output = await QueryTarget().execute(QueryTargetArguments(name="NGC 1275"), ctx)
    assert "RA 49.950667°, Dec +41.511696°" in output.content
    assert "Redshift: 0.017284" in output.content
    with pytest.raises(NotFound, match="VizieR"):
        await QueryTarget().execute(QueryTargetArguments(name="Nowhere"), ctx)


async def test_a_failing_service_is_an_error_with_its_sentence(
    ctx: ToolContext[ToolServices], library: FakeLibrary
) -> None:
    library.failing = Unreachable("Sesame can't be reached.", source="sesame")
    with pytest.raises(Unreachable, match="Sesame"):
        await QueryTarget().execute(QueryTargetArguments(name="NGC 1275"), ctx)


async def test_note_with_a_checked_quote(ctx: ToolContext[ToolServices], library: FakeLibrary) -> None:
    args = SaveNoteArguments(text="Heating!", paper=PERSEUS.id, page=1, quote="The ripples are sound waves")
    output = await SaveNote().execute(args, ctx)
    assert library.notes[0].page == 2
    assert library.notes[0].origin == "agent"
    assert library.notes[0].session_id == "s1"
    assert "p. 2. The quote was found there." in output.content
    ctx.tainted = True
    await SaveNote().execute(SaveNoteArguments(text="Plain"), ctx)
    assert library.notes[1].origin == "agent_tainted"


async def test_note_with_an_invented_quote_is_not_saved(ctx: ToolContext[ToolServices], library: FakeLibrary) -> None:
    with pytest.raises(NotFound, match="was not saved"):
        await SaveNote().execute(SaveNoteArguments(text="x", paper=PERSEUS.id, quote="Dark matter is cheese"), ctx)
    with pytest.raises(InvalidInput, match="needs the paper"):
        await SaveNote().execute(SaveNoteArguments(text="x", quote="sound waves"), ctx)
    assert library.notes == []

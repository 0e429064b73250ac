"""From files to verified citations through the real store, child and shelf."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.errors import DocumentError, NotFound, Unreachable
from astroresearch.library.answer import Answerer
from astroresearch.library.index import Indexer
from astroresearch.library.parse import PdfParser
from astroresearch.library.retrieve import Retriever
from astroresearch.library.shelf import Shelf
from astroresearch.store.database import Store
from tests.unit.library.pdfs import draw, lines

TITLE = "Gas motions in the core of a cluster"
PAGE = [
    TITLE,
    "arXiv:1607.04487v1 [astro-ph.GA] 15 Jul 2016",
    "The velocity dispersion of the gas is 164 km/s in the core.",
    "Bubbles rise through the gas and do not heat it at once.",
    "Nobody has seen a cooling flow of the rate that was expected.",
]


class Records:
    def __init__(self, record: Paper | None) -> None:
        self.record = record

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        if self.record is None:
            raise Unreachable("No route.", source="arxiv")
        return self.record


class Downloads:
    async def download_file(self, paper: Paper, *, progress: object = None) -> Path:
        raise NotFound("No PDF.")


@dataclass
class Library:
    store: Store
    shelf: Shelf
    answerer: Answerer
    records: Records
    data: Path


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    data = tmp_path / "data"
    data.mkdir()
    store, parser, records = await Store.open(data / "library.db"), PdfParser(), Records(None)
    shelf = Shelf(data, store.papers, store.passages, parser, Indexer(store.passages, None), records, Downloads())
    answerer = Answerer(Retriever(store.passages, None), store.papers, store.passages)
    yield Library(store, shelf, answerer, records, data)
    await parser.aclose()
    await store.aclose()


async def test_import_ask_verify_remove(library: Library, tmp_path: Path) -> None:
    path = draw(tmp_path / "mine.pdf", [lines(PAGE)], metadata={"title": TITLE})
    paper = await library.shelf.import_file(path)
    assert (paper.title, paper.state, paper.pages_count) == (TITLE, "searchable", 1)
    assert paper.identifiers.arxiv == ""
    assert (library.data / paper.file).read_bytes() == path.read_bytes()
    assert (await library.shelf.import_file(path)).id == paper.id
    found = await library.answerer.passages("What is the velocity dispersion of the gas?")
    assert found.mode == "text"
    quotes = await library.answerer.citations("velocity dispersion of the gas", found)
    assert "164 km/s" in quotes[0].quote
    assert all(q.verified and q.rects and q.page == 1 for q in quotes)
    assert (await library.answerer.verify(paper.id, "dispersion of the gas is 164 km/s")).verified
    assert not (await library.answerer.verify(paper.id, "dispersion of the gas is 184 km/s")).verified
    assert not (await library.answerer.verify(paper.id, "Bubbles rise through the gas and do heat it")).verified
    assert await library.shelf.remove(paper.id)
    assert not (library.data / paper.file).exists()
    assert not await library.shelf.remove(paper.id)


async def test_a_record_is_taken_only_if_its_title_stands_on_the_page(library: Library, tmp_path: Path) -> None:
    ids = Identifiers(arxiv="1607.04487", bibcode="2016Natur.535..117H")
    library.records.record = Paper("", "Something quite different about stars", identifiers=ids, sources=("arxiv",))
    other = await library.shelf.import_file(draw(tmp_path / "a.pdf", [lines(PAGE)]))
    assert other.identifiers.bibcode == ""
    library.records.record = Paper("", TITLE, ("Hitomi Collaboration",), 2016, identifiers=ids, sources=("arxiv",))
    paper = await library.shelf.import_file(draw(tmp_path / "b.pdf", [lines(PAGE), lines(PAGE)]))
    assert paper.identifiers.bibcode == "2016Natur.535..117H"
    assert (paper.year, paper.state) == (2016, "searchable")


async def test_a_refused_file_leaves_nothing(library: Library, tmp_path: Path) -> None:
    page = tmp_path / "page.pdf"
    page.write_text("<html>Log in</html>")
    with pytest.raises(DocumentError, match=r"page\.pdf is not a PDF"):
        await library.shelf.import_file(page)
    assert await library.store.papers.count() == 0
    assert not list(library.data.rglob("*.pdf"))
    with pytest.raises(NotFound):
        await library.answerer.passages("gas", papers=["nothing"])

"""Papers' files (fits tools.ports.PaperFiles)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from astroresearch.domain.paper import Paper
from astroresearch.domain.passage import PageText
from astroresearch.library.index import Indexer
from astroresearch.library.parse import PdfParser
from astroresearch.store.papers import PaperStore
from astroresearch.store.passages import PassageStore

Progress = Callable[[str, float | None], None]


class Downloads(Protocol):
    """library.acquire.Acquirer."""

    async def download_file(self, paper: Paper, *, progress: Progress | None = None) -> Path: ...


class Records(Protocol):
    """library.search.Catalogue."""

    async def get(self, paper: str, *, online: bool = True) -> Paper: ...


class Shelf:
    """Download, import, parse, read, remove."""

    def __init__(
        self,
        data: Path,
        papers: PaperStore,
        passages: PassageStore,
        parser: PdfParser,
        indexer: Indexer,
        catalogue: Records,
        acquirer: Downloads,
    ) -> None: ...

    async def download(self, paper: str, *, progress: Progress | None = None) -> Paper:
        """Fetches the PDF."""
        raise NotImplementedError

    async def import_file(self, path: Path, *, progress: Progress | None = None) -> Paper:
        """Copies a file of the user's into the library and parses it."""
        raise NotImplementedError

    async def parse(self, paper: str, *, progress: Progress | None = None) -> Paper:
        """Text, passages and full-text index."""
        raise NotImplementedError

    async def text(self, paper: str, *, page: int | None = None) -> Sequence[PageText]:
        """The text of all pages, or of one."""
        raise NotImplementedError

    async def remove(self, paper: str) -> bool:
        """Removes the paper, its text and our copy of its file."""
        raise NotImplementedError

"""From a PDF to pages and passages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from astroresearch.domain.passage import PageRecord, Passage

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class PdfLimits:
    """What one document may cost."""

    max_bytes: int = 100 * 1024 * 1024
    max_pages: int = 2000
    wall_s: float = 60.0
    cpu_s: int = 30
    memory_mb: int = 1536


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document's text; `passages` have no id and no paper yet."""

    file_hash: str
    pages_count: int
    pages: tuple[PageRecord, ...]
    passages: tuple[Passage, ...]
    title: str = ""
    "As the file's metadata or first page has it; a guess."
    metadata: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


class PdfParser:
    """Parses PDFs in one warm child process. Use one object for the whole server."""

    def __init__(self, limits: PdfLimits = PdfLimits()) -> None: ...

    async def parse(self, path: Path, *, progress: Progress | None = None) -> ParsedDocument:
        """Text, places and passages. Raises `DocumentError`; a cancel kills the child at once."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Ends the child."""

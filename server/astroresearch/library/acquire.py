"""Getting a paper's PDF: channels in order, each with its reason when it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from astroresearch.domain.paper import Paper
from astroresearch.sources.http import Http

Progress = Callable[[str, float | None], None]


class Acquirer:
    """Downloads PDFs from the built-in hosts into the papers folder."""

    def __init__(
        self, http: Http, folder: Path, *, arxiv_url: str = "", ads_url: str = "", max_pdf_mb: int = 100
    ) -> None: ...

    async def download_file(self, paper: Paper, *, progress: Progress | None = None) -> Path:
        """`<folder>/<paper id>/paper.pdf`, complete and checked. Raises `ServiceError`, `NotFound`, `DocumentError`."""
        raise NotImplementedError

"""Finding papers: ADS and arXiv at once, merged, marked with what is known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from astroresearch.domain.note import Note
from astroresearch.domain.paper import Identifiers, Paper, SearchOutcome
from astroresearch.sources.ads import Ads
from astroresearch.sources.arxiv import Arxiv


class Papers(Protocol):
    """What the catalogue asks of the store's papers."""

    async def get(self, paper_id: str) -> Paper | None: ...
    async def find(self, ids: Identifiers) -> list[Paper]: ...


class Cache(Protocol):
    """What is kept of answers."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, value: bytes, ttl_s: float) -> None: ...


class Notes(Protocol):
    """What the catalogue asks of the store's notes."""

    async def list(self, paper_id: str = "", *, limit: int = 50) -> list[Note]: ...


class Catalogue:
    """Fits `tools.ports.PaperCatalogue`."""

    def __init__(
        self, papers: Papers, cache: Cache, ads: Ads | None, arxiv: Arxiv, notes: Notes | None = None
    ) -> None: ...

    async def search(
        self,
        query: str,
        *,
        sources: Sequence[str] = (),
        limit: int = 10,
        sort: str = "relevance",
        cite_keys: Sequence[str] = (),
        on_partial: Callable[[SearchOutcome], None] | None = None,
    ) -> SearchOutcome:
        """ADS and arXiv at once, merged."""
        raise NotImplementedError

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        """By any identifier: our id, bibcode, DOI, arXiv id, URL; the library first, then ADS and arXiv."""
        raise NotImplementedError

"""Names of celestial objects, resolved and kept for 30 days."""

from __future__ import annotations

from astroresearch.domain.target import Target
from astroresearch.library.search import Cache
from astroresearch.sources.cds import Cds


class Targets:
    """Fits `tools.ports.Objects`."""

    def __init__(self, cache: Cache, cds: Cds) -> None: ...

    async def resolve(self, name: str) -> Target:
        """Raises `NotFound` naming the services that were asked."""
        raise NotImplementedError

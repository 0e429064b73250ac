"""Sesame, and SIMBAD for more."""

from __future__ import annotations

from astroresearch.domain.target import Target
from astroresearch.sources.http import Http


class Cds:
    """Name resolution at the CDS."""

    def __init__(self, http: Http, sesame_url: str, simbad_url: str) -> None: ...

    async def resolve(self, name: str) -> Target:
        """Raises `NotFound` naming the services that were asked."""
        raise NotImplementedError

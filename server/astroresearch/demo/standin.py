"""ADS, arXiv, Sesame and SIMBAD for the demo: a real HTTP server on this machine, with a few real papers and objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self


class Standin:
    """`async with Standin() as s:`; `s.urls` holds the environment variables that point AstroResearch at it."""

    @property
    def urls(self) -> Mapping[str, str]:
        """ASTRORESEARCH_{ADS,ARXIV,SESAME,SIMBAD}_URL."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

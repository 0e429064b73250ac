"""Names of celestial objects, resolved and kept for 30 days."""

from __future__ import annotations

from dataclasses import replace

from astroresearch.domain.target import Target
from astroresearch.library.records import dump_target, load_target
from astroresearch.library.search import Cache
from astroresearch.sources.cds import Cds

TTL_S = 30 * 24 * 3600.0


class Targets:
    """Fits `tools.ports.Objects`."""

    def __init__(self, cache: Cache, cds: Cds) -> None:
        self._cache = cache
        self._cds = cds

    async def resolve(self, name: str) -> Target:
        """The object of that name, from the cache or the CDS. What nobody knows is asked for anew each time.

        Raises:
            InvalidInput: No name.
            NotFound: Names the services that were asked.
            ServiceError: They could not be asked.
        """
        name = " ".join(name.split())
        key = f"target:{name.casefold()}"
        data = await self._cache.get(key)
        if data and (known := load_target(data)):
            return replace(known, query=name, cached=True)
        target = await self._cds.resolve(name)
        await self._cache.put(key, dump_target(target), TTL_S)
        return target

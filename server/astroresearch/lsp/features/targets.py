"""`astroresearch/targets/resolve`: an object's name to its position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astroresearch.lsp.params import TargetResolve

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def resolve(server: Server, params: TargetResolve) -> Any:
    """Sesame, cached for 30 days."""
    services = await server.ready()
    return await services.targets.resolve(params.name)

"""`astroresearch/permissions/*`: what the user has allowed, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astroresearch.lsp.params import Nothing, PermissionRule
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def list_grants(server: Server, params: Nothing) -> dict[str, Any]:
    """Those of the workspace first, then those of each session of this window."""
    services = await server.ready()
    return {"grants": services.admin.grants()}


async def revoke(server: Server, params: PermissionRule) -> dict[str, bool]:
    """From the next call on, also of a turn that runs."""
    services = await server.ready()
    revoked = await services.admin.revoke(params.rule)
    if revoked:
        server.send_notification(SERVER_NOTIFICATIONS[0], await services.admin.status())
    return {"revoked": revoked}

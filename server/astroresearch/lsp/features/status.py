"""`astroresearch/status`, models, tools and secrets: what is configured, what is missing, why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astroresearch.lsp.params import ModelChoose, Nothing, SecretSet
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def status(server: Server, params: Nothing) -> Any:
    """What is configured and what is missing."""
    services = await server.ready()
    return await services.admin.status()


async def models(server: Server, params: Nothing) -> dict[str, Any]:
    """The models that can be chosen."""
    services = await server.ready()
    return {"models": services.admin.models()}


async def choose(server: Server, params: ModelChoose) -> dict[str, str]:
    """Chooses a model for this window."""
    services = await server.ready()
    services.admin.choose_model(params.name)
    await _changed(server)
    return {"active": params.name}


async def set_secret(server: Server, params: SecretSet) -> dict[str, bool]:
    """Takes a secret from the editor's store; it is kept in memory only."""
    services = await server.ready()
    services.admin.set_secret(params.key, params.value)
    await _changed(server)
    return {"accepted": True}


async def tools(server: Server, params: Nothing) -> dict[str, Any]:
    """The agent's tools as the model sees them."""
    services = await server.ready()
    found = [services.tools.get(name) for name in services.tools.names()]
    return {
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "kind": tool.kind,
                "effect": tool.effect,
                "decision": services.admin.outlook(tool),
                "parameters": tool.definition().parameters,
            }
            for tool in found
            if tool is not None
        ]
    }


async def _changed(server: Server) -> None:
    services = await server.ready()
    server.send_notification(SERVER_NOTIFICATIONS[0], await services.admin.status())

"""`astroresearch/session/*`: the stored conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astroresearch.lsp.params import SessionEvents, SessionList, SessionRef, SessionRename
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def list_sessions(server: Server, params: SessionList) -> dict[str, Any]:
    """Newest first."""
    services = await server.ready()
    return {"sessions": await services.sessions.list(params.limit, params.offset)}


async def get(server: Server, params: SessionRef) -> dict[str, Any]:
    """A session with its messages."""
    services = await server.ready()
    return await services.sessions.get(params.session_id)


async def events(server: Server, params: SessionEvents) -> dict[str, Any]:
    """Replays the timeline."""
    services = await server.ready()
    found, following = await services.sessions.events(
        params.session_id, params.from_seq, params.limit, last=params.last
    )
    return {"events": list(found), "nextSeq": following}


async def rename(server: Server, params: SessionRename) -> dict[str, Any]:
    """Gives it a title."""
    services = await server.ready()
    renamed = await services.sessions.rename(params.session_id, params.title)
    server.send_notification(SERVER_NOTIFICATIONS[3], {"sessionId": params.session_id})
    return renamed


async def delete(server: Server, params: SessionRef) -> dict[str, bool]:
    """Removes it for good."""
    services = await server.ready()
    deleted = await services.sessions.delete(params.session_id)
    server.send_notification(SERVER_NOTIFICATIONS[3], {"sessionId": params.session_id})
    return {"deleted": deleted}


async def export(server: Server, params: SessionRef) -> dict[str, str]:
    """The conversation as Markdown."""
    services = await server.ready()
    return {"markdown": await services.sessions.export(params.session_id)}


async def audit(server: Server, params: SessionRef) -> dict[str, Any]:
    """What was allowed or refused, and how it ended."""
    services = await server.ready()
    return {"entries": await services.sessions.audit(params.session_id)}

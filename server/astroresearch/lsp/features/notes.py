"""`astroresearch/notes/*`: the user's notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astroresearch.domain.note import Place
from astroresearch.lsp.params import NoteCreate, NoteList, NoteRef, NoteSearch, NoteUpdate
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def create(server: Server, params: NoteCreate) -> Any:
    """Saved durably before it answers."""
    services = await server.ready()
    note = await services.notes.create(
        params.text,
        paper=params.paper,
        page=params.page,
        quote=params.quote,
        cite_key=params.cite_key,
        place=Place(params.uri, params.line, params.context) if params.uri else None,
        tags=params.tags,
        color=params.color,
    )
    _changed(server, note.id)
    return note


async def list_notes(server: Server, params: NoteList) -> dict[str, Any]:
    """Newest first."""
    services = await server.ready()
    notes = await services.notes.list(
        paper=params.paper, cite_key=params.cite_key, tag=params.tag, limit=params.limit, offset=params.offset
    )
    return {"notes": list(notes)}


async def get(server: Server, params: NoteRef) -> Any:
    """One note."""
    services = await server.ready()
    return await services.notes.get(params.id)


async def update(server: Server, params: NoteUpdate) -> Any:
    """Changes what is given."""
    services = await server.ready()
    seen = params.updated or (await services.notes.get(params.id)).updated
    note = await services.notes.update(
        params.id, text=params.text, tags=params.tags, color=params.color, expected_updated=seen
    )
    _changed(server, params.id)
    return note


async def delete(server: Server, params: NoteRef) -> dict[str, bool]:
    """Removes one note."""
    services = await server.ready()
    deleted = await services.notes.delete(params.id)
    _changed(server, params.id)
    return {"deleted": deleted}


async def search(server: Server, params: NoteSearch) -> dict[str, Any]:
    """Full-text search."""
    services = await server.ready()
    return {"notes": list(await services.notes.search(params.query, limit=params.limit))}


async def export(server: Server, params: NoteList) -> dict[str, str]:
    """As Markdown."""
    services = await server.ready()
    return {"markdown": await services.notes.export(paper=params.paper, tag=params.tag)}


def _changed(server: Server, note_id: str) -> None:
    server.send_notification(SERVER_NOTIFICATIONS[2], {"noteId": note_id})

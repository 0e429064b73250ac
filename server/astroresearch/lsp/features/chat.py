"""`astroresearch/chat/*`: asks, streams the timeline, cancels, answers questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types as T

from astroresearch.agents.session import EditorContext, SendOutcome, SendRequest
from astroresearch.lsp.params import Answer, ChatCancel, ChatContext, ChatSend
from astroresearch.lsp.progress import ProgressStream
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS
from astroresearch.lsp.text import path_of

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def send(server: Server, params: ChatSend) -> dict[str, Any]:
    """Runs one turn and answers when it has ended, or at once when it is queued."""
    services = await server.ready()
    sessions = services.sessions
    opened = params.session_id

    def sink(event: dict[str, Any]) -> None:
        nonlocal opened
        if event["type"] == "session" and event.get("agent", "main") == "main":
            opened = event["sessionId"]
        stream.event(event)
        if event["type"] == "done":
            stream.__exit__()
            server.send_notification(SERVER_NOTIFICATIONS[3], {"sessionId": opened})

    def stop() -> None:
        if opened is not None:
            server.spawn(sessions.cancel, opened)

    stream = await ProgressStream.open(server, params.work_done_token, "AstroResearch", stop)
    stream.__enter__()
    request = SendRequest(
        text=params.text,
        session_id=params.session_id,
        mode=params.mode,
        model=params.model,
        thinking=params.thinking,
        steer=params.steer,
        context=await _context(server, params.context),
    )
    queued = False
    try:
        outcome = await sessions.send(request, sink)
        queued = outcome.queued and not outcome.steered
        return _answer(outcome)
    finally:
        if not queued:  # a queued turn's stream lives on until its own `done`
            stream.__exit__()


async def cancel(server: Server, params: ChatCancel) -> None:
    """Stops the running turn and drops its queue."""
    services = await server.ready()
    await services.sessions.cancel(params.session_id)


async def answer(server: Server, params: Answer) -> dict[str, bool]:
    """Answers a permission or a question by its id."""
    services = await server.ready()
    return {"accepted": services.sessions.answer(params.id, choice=params.choice, text=params.text)}


def _answer(outcome: SendOutcome) -> dict[str, Any]:
    if outcome.queued:
        return {
            "sessionId": outcome.session_id,
            "queued": True,
            "position": outcome.position,
            "steered": outcome.steered,
        }
    return {
        "sessionId": outcome.session_id,
        "turnId": outcome.turn_id,
        "answer": outcome.answer,
        "citations": list(outcome.citations),
        "usage": outcome.usage,
        "stopReason": outcome.stop_reason,
        "error": outcome.error,
    }


async def _context(server: Server, given: ChatContext | None) -> EditorContext | None:
    if given is None or given.text_document is None:
        return EditorContext(cite_keys=tuple(given.cite_keys)) if given and given.cite_keys else None
    uri = given.text_document.uri
    document = server.documents.get(uri)
    selection, start_line, end_line, at = "", 0, 0, 0
    if given.range and document is not None:
        chosen = _range(given.range)
        at, end = document.offset(chosen.start), document.offset(chosen.end)
        selection = document.text[at:end]
        start_line, end_line = chosen.start.line + 1, chosen.end.line + 1
    keys = tuple(given.cite_keys) or await _keys_near(server, uri, at)
    return EditorContext(
        path=str(path_of(uri) or uri),
        unsaved=document is not None,
        start_line=start_line,
        end_line=end_line,
        selection=selection,
        cite_keys=keys,
        trusted=server.trusted,
    )


async def _keys_near(server: Server, uri: str, offset: int) -> tuple[str, ...]:
    """Keys cited within about a screen of the cursor."""
    project = await server.projects.project(uri, fresh=False)
    file = project.tex.get(server.projects.path(uri))
    if file is None:
        return ()
    near = [key.name for citation in file.citations if abs(citation.start - offset) < 2_000 for key in citation.keys]
    return tuple(dict.fromkeys(near))


def _range(given: dict[str, Any]) -> T.Range:
    def position(name: str) -> T.Position:
        part = given.get(name) or {}
        return T.Position(max(0, int(part.get("line", 0))), max(0, int(part.get("character", 0))))

    return T.Range(position("start"), position("end"))

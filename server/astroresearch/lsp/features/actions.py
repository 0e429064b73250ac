"""`_astroresearch.act`: what a code action does, shown by plain LSP means, so that it works in every editor.

A front end of ours catches the command and uses its own views; docs/protocol.md names the actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types as T
from pygls.exceptions import JsonRpcException

from astroresearch.errors import InvalidInput

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server

CHOICES = 5
CHOICE_TIMEOUT_S = 300


async def act(server: Server, given: Mapping[str, Any]) -> None:
    """Runs one action: `{action, …}`.

    Raises:
        InvalidInput: There is no such action.
    """
    action = {
        "findCitations": _find_citations,
        "findEntry": _find_entry,
        "lookUp": _look_up,
        "download": _download,
        "ask": _ask,
    }.get(str(given.get("action")))
    if action is None:
        raise InvalidInput(f"There is no action `{given.get('action')}`.", field="action")
    await action(server, given)


async def _find_citations(server: Server, given: Mapping[str, Any]) -> None:
    paper = await _chosen_paper(server, given, "Cite one of these for the sentence?")
    if paper:
        place = {"textDocument": given["textDocument"], "position": given["range"]["end"]}
        await server.call("astroresearch/bib/insert", {"paper": paper, **place})


async def _find_entry(server: Server, given: Mapping[str, Any]) -> None:
    paper = await _chosen_paper(server, given, f"Which paper is `{given['key']}`?")
    if paper:
        wanted = {"textDocument": given["textDocument"], "key": given["key"]}
        await server.call("astroresearch/bib/insert", {"paper": paper, **wanted})


async def _chosen_paper(server: Server, given: Mapping[str, Any], question: str) -> str:
    params = {"query": given["query"], "limit": CHOICES, "textDocument": given["textDocument"]}
    answer = await server.call("astroresearch/papers/search", params)
    if not answer["hits"]:
        _say(server, " ".join([f"No paper was found for “{given['query']}”.", *answer["notices"]]))
        return ""
    titles = {_line(hit["paper"]): hit["paper"] for hit in answer["hits"]}
    chosen = await _choose(server, question, list(titles))
    return _name(titles[chosen]) if chosen is not None else ""


async def _look_up(server: Server, given: Mapping[str, Any]) -> None:
    found = await server.call("astroresearch/targets/resolve", {"name": given["name"]})
    redshift = f", z = {found['redshift']:g}" if found["redshift"] is not None else ""
    where = f"RA {found['raDeg']:.6f}°, Dec {found['decDeg']:+.6f}° (ICRS, J2000)"
    _say(
        server, f"{found['name']}: {where}{redshift}; {found['objectType'] or 'type unknown'}, by {found['resolver']}."
    )


async def _download(server: Server, given: Mapping[str, Any]) -> None:
    paper = await server.call("astroresearch/papers/download", {"paper": given["paper"]})
    state = "is in your library" if paper["state"] == "searchable" else f"could not be read: {paper['stateReason']}"
    _say(server, f"“{paper['title']}” {state}.")


async def _ask(server: Server, given: Mapping[str, Any]) -> None:
    answer = await server.call("astroresearch/chat/send", {"text": given["text"], "context": given.get("context")})
    _say(server, answer.get("answer") or "The question waits for its turn.")


async def _choose(server: Server, question: str, titles: list[str]) -> str | None:
    actions = [T.MessageActionItem(title=title) for title in titles]
    params = T.ShowMessageRequestParams(T.MessageType.Info, question, actions)
    try:
        answer = await server.protocol.ask_client(T.WINDOW_SHOW_MESSAGE_REQUEST, params, timeout_s=CHOICE_TIMEOUT_S)
    except (TimeoutError, JsonRpcException):
        return None
    return getattr(answer, "title", None)


def _say(server: Server, text: str) -> None:
    server.window_show_message(T.ShowMessageParams(T.MessageType.Info, text))


def _line(paper: Mapping[str, Any]) -> str:
    first = str(paper["authors"][0]).split(",")[0] if paper["authors"] else "?"
    return f"{first} {paper['year'] or ''}: {paper['title'][:80]}"


def _name(paper: Mapping[str, Any]) -> str:
    ids = paper["identifiers"]
    return str(ids["bibcode"] or ids["doi"] or ids["arxiv"] or paper["id"])

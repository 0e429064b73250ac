"""`astroresearch/library/*`: passages, checked quotes, and what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astroresearch.lsp.params import LibraryAsk, LibrarySearch, Nothing

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def search(server: Server, params: LibrarySearch) -> Any:
    """Passages with page anchors."""
    services = await server.ready()
    return await services.answerer.passages(params.query, limit=params.limit, papers=params.papers)


async def ask(server: Server, params: LibraryAsk) -> dict[str, Any]:
    """Quotes that answer a question, each checked against its page; no sentence of ours about science."""
    services = await server.ready()
    retrieval = await services.answerer.passages(params.question, limit=4 * params.limit, papers=params.papers)
    citations = await services.answerer.citations(params.question, retrieval, limit=params.limit)
    answer = "\n\n".join(f"> {c.quote}\n>\n> — {c.label or c.title}, p. {c.page}" for c in citations)
    return {"answer": answer, "citations": list(citations), "notice": retrieval.notice}


async def status(server: Server, params: Nothing) -> Any:
    """How many papers, passages and vectors there are."""
    services = await server.ready()
    return await services.admin.library_status()

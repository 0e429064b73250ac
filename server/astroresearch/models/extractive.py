"""Answers without a language model: quotes from the library, chosen by rules (an `engine.model.Model`).

It plans by the rules of `models/rules.py`, calls the same tools as any model, and then shows what they found: quotes as they
stand, records as they are. It writes no sentence about science itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from astroresearch.engine.messages import Message, ToolCall, new_call_id
from astroresearch.engine.model import ModelItem, ModelReply, ModelRequest, TextDelta, ThoughtDelta, Usage
from astroresearch.engine.untrusted import unwrap
from astroresearch.models.rules import Plan, plan

NO_MODEL = (
    "*No language model is configured: this answer is made of quotes. To add one, set `model.name` "
    "(and `model.base_url`, `model.api_key`) in the settings.*"
)
QUOTES = 3
_SPECIAL = re.compile(r"([\[\]<`*])")
Metadata = Mapping[str, Any]


class Extractive:
    """Plans by rules and answers with quotes. Needs no network and no key."""

    name = "extractive"
    context_window = 1_000_000

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncGenerator[ModelItem, None]]:
        """One step: calls first, the quoted answer after their results."""
        return _stream(request)


@asynccontextmanager
async def _stream(request: ModelRequest) -> AsyncGenerator[AsyncGenerator[ModelItem, None], None]:
    items = _items(request)
    try:
        yield items
    finally:
        await items.aclose()


async def _items(request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
    before, question, since = _turn(request.messages)
    wanted = plan(question, {t.name for t in request.tools})
    thoughts, calls = _next(wanted, since, {t.name for t in request.tools})
    for thought in thoughts:
        yield ThoughtDelta(thought + "\n")
    if calls:
        yield ModelReply("", tuple(calls), "tool_calls", Usage(), reasoning="\n".join(thoughts), model=Extractive.name)
        return
    text = answer(wanted, since, introduce=not any(NO_MODEL in m.content for m in before))
    for block in re.split(r"(?<=\n\n)", text):
        yield TextDelta(block)
    yield ModelReply(text, (), "stop", Usage(), model=Extractive.name)


def _turn(messages: Sequence[Message]) -> tuple[Sequence[Message], str, Sequence[Message]]:
    """What came before the last user message, its text, and what came after it."""
    at = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    return messages[: max(at, 0)], messages[at].content if at >= 0 else "", messages[at + 1 :]


def _next(wanted: Plan, since: Sequence[Message], tools: set[str]) -> tuple[list[str], list[ToolCall]]:
    """The thoughts and calls of this step; no calls when it is time to answer."""
    done = [call.name for m in since if m.role == "assistant" for call in m.tool_calls]
    if not done:
        return [why for _, _, why in wanted.calls], [_call(name, arguments) for name, arguments, _ in wanted.calls]
    quotes = _gather(since, "citations")
    if wanted.keep_quote and quotes and "save_note" not in done:
        best = next((q for q in quotes if q.get("verified")), quotes[0])
        arguments = {
            "text": f"Quote on: {wanted.query[:300]}",
            "paper": str(best.get("paperId", "")),
            "page": best.get("page", 0),
            "quote": best.get("quote", ""),
        }
        return ["Keep the best quote as a note."], [_call("save_note", arguments)]
    if "rag_search" in done and not quotes and "search_papers" in tools - set(done):
        return ["The library holds nothing on this; ask ADS and arXiv."], [
            _call("search_papers", {"query": wanted.query[:190]})
        ]
    return [], []


def _call(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(new_call_id(), name, json.dumps(arguments, ensure_ascii=False))


def _results(since: Sequence[Message], name: str = "") -> list[tuple[Message, Metadata]]:
    return [(m, m.meta.get("metadata") or {}) for m in since if m.role == "tool" and name in ("", m.name)]


def _gather(since: Sequence[Message], key: str) -> list[Metadata]:
    return [item for _, metadata in _results(since) for item in metadata.get(key, ())]


def answer(wanted: Plan, since: Sequence[Message], *, introduce: bool) -> str:
    """The whole answer, Markdown, from the results of this turn's calls."""
    blocks: list[str] = []
    done = {m.name for m, _ in _results(since)}
    quotes, hits = _gather(since, "citations")[:QUOTES], _gather(since, "hits")
    blocks += [_target(metadata["target"]) for _, metadata in _results(since) if metadata.get("target")]
    if quotes:
        blocks.append("From the papers in your library:")
        blocks += [_quote(q) for q in quotes]
        blocks.append(_sources(quotes))
    elif "rag_search" in done:
        blocks.append("No passage in your library fits this question.")
    if hits:
        blocks.append("Papers found:\n\n" + "\n".join(f"- {_paper(hit.get('paper', {}))}" for hit in hits[:10]))
    elif "search_papers" in done and not _failed(since, "search_papers"):
        blocks.append("The search for papers found none.")
    blocks += ["Saved as a note." for _, metadata in _results(since, "save_note") if metadata.get("note")]
    blocks += [f"{_plain(notice)}" for notice in dict.fromkeys(_notices(since))]
    blocks += [f"`{m.name}` did not work: {_plain(unwrap(m.content))[:300]}" for m in _failed(since)]
    if not blocks:
        blocks.append(
            "Ask a question about the papers in your library, name an object, or ask for papers to be searched."
        )
    if introduce:
        blocks.append(NO_MODEL)
    return "\n\n".join(blocks)


def _failed(since: Sequence[Message], name: str = "") -> list[Message]:
    return [m for m, _ in _results(since, name) if m.status not in ("", "completed")]


def _notices(since: Sequence[Message]) -> list[str]:
    out = [str(metadata["notice"]) for _, metadata in _results(since, "rag_search") if metadata.get("notice")]
    return out + [str(n) for n in _gather(since, "notices")]


def _plain(text: object) -> str:
    """A stranger's text within Markdown: on one line, no link, image, tag or code of its own."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _quote(quote: Metadata) -> str:
    mark = "✓ verified" if quote.get("verified") else "✗ not found on its page"
    where = [f"**{_plain(quote.get('label') or quote.get('title') or quote.get('paperId', ''))}**"]
    if quote.get("page"):
        where.append(f"p. {quote['page']}")
    if quote.get("section"):
        where.append(_plain(quote["section"]))
    return f"> {_plain(quote.get('quote', ''))}\n>\n> — {', '.join(where)} ({mark})"


def _sources(quotes: Sequence[Metadata]) -> str:
    lines: dict[str, str] = {}
    for quote in quotes:
        name = quote.get("bibcode") or quote.get("doi") or (f"arXiv:{quote['arxiv']}" if quote.get("arxiv") else "")
        said, title = str(quote.get("label") or ""), str(quote.get("title") or "")
        parts = [_plain(said)] if said and said != title else []
        parts += [f"*{_plain(title)}*"] if title else []
        line = ", ".join(parts) or _plain(quote.get("paperId", ""))
        lines.setdefault(str(quote.get("paperId", "")), f"- {line}" + (f" ({_plain(name)})" if name else ""))
    return "Sources:\n\n" + "\n".join(lines.values())


def _paper(paper: Metadata) -> str:
    authors = list(paper.get("authors", ()))
    who = str(authors[0]).split(",")[0] + (" et al." if len(authors) > 1 else "") if authors else ""
    ids = paper.get("identifiers") or {}
    name = ids.get("bibcode") or (f"arXiv:{ids['arxiv']}" if ids.get("arxiv") else ids.get("doi", ""))
    year = str(paper.get("year") or "")
    head = " ".join(part for part in (_plain(who), year) if part)
    return f"{head + ', ' if head else ''}*{_plain(paper.get('title', ''))}*" + (f" ({_plain(name)})" if name else "")


def _target(target: Metadata) -> str:
    facts = [f"RA {target.get('raDeg', 0):.6f}°, Dec {target.get('decDeg', 0):+.6f}° (ICRS, J2000)"]
    for key, name in (("objectType", "type"), ("morphology", "morphology"), ("spectralType", "spectral type")):
        if target.get(key):
            facts.append(f"{name} {_plain(target[key])}")
    if target.get("redshift") is not None:
        facts.append(f"z = {target['redshift']:g}")
    aliases = [_plain(a) for a in list(target.get("aliases", ()))[:6]]
    known = f"\n\nAlso known as {', '.join(aliases)}." if aliases else ""
    return f"**{_plain(target.get('name', ''))}** ({_plain(target.get('resolver', ''))}): {', '.join(facts)}.{known}"

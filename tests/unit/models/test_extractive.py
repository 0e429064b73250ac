"""The answerer without a model: its plan, its answer, and that it adds nothing of its own."""

from __future__ import annotations

import json

import pytest

from astroresearch.engine.messages import Message
from astroresearch.engine.model import ModelReply, ModelRequest, ToolDefinition
from astroresearch.models.extractive import NO_MODEL, Extractive
from astroresearch.models.rules import plan

TOOLS = ("query_target", "rag_search", "save_note", "search_papers")
QUOTE = {
    "paperId": "p1",
    "page": 3,
    "quote": "The gas moves at 164 km/s.",
    "verified": True,
    "label": "Hitomi 2016",
    "bibcode": "B",
}


async def _step(*messages: Message) -> ModelReply:
    request = ModelRequest(messages, tuple(ToolDefinition(name, "", {}) for name in TOOLS))
    async with Extractive().stream(request) as items:
        *_, last = [item async for item in items]
    assert isinstance(last, ModelReply)
    return last


def _result(reply: ModelReply, number: int, metadata: dict[str, object], status: str = "completed") -> Message:
    call = reply.tool_calls[number]
    return Message("tool", "text", tool_call_id=call.id, name=call.name, status=status, meta={"metadata": metadata})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What fills the bubbles?", ["rag_search"]),
        ("What is the redshift of NGC 1275?", ["query_target"]),
        ("How fast does the gas in NGC 1275 move?", ["query_target", "rag_search"]),
        ("Find papers on AGN feedback", ["search_papers"]),
        ("Save a note: look at this again", ["save_note"]),
    ],
)
def test_plans(text: str, names: list[str]) -> None:
    assert [name for name, _, _ in plan(text, set(TOOLS)).calls] == names


async def test_quotes_are_shown_and_the_missing_model_named_once() -> None:
    user = Message("user", "How fast does the gas move?")
    first = await _step(user)
    assert [c.name for c in first.tool_calls] == ["rag_search"]
    said = Message("assistant", "", tool_calls=first.tool_calls)
    answer = await _step(user, said, _result(first, 0, {"citations": [QUOTE]}))
    assert "> The gas moves at 164 km/s." in answer.text
    assert "p. 3" in answer.text
    assert "✓ verified" in answer.text
    assert NO_MODEL in answer.text
    again = await _step(user, Message("assistant", answer.text), user, said, _result(first, 0, {"citations": [QUOTE]}))
    assert NO_MODEL not in again.text


async def test_an_empty_library_leads_to_a_search() -> None:
    user = Message("user", "How fast does the gas move?")
    first = await _step(user)
    history = (user, Message("assistant", "", tool_calls=first.tool_calls), _result(first, 0, {"citations": []}))
    second = await _step(*history)
    assert [c.name for c in second.tool_calls] == ["search_papers"]


async def test_the_best_quote_becomes_a_note() -> None:
    user = Message("user", "How fast is the gas? Save the best quote as a note.")
    first = await _step(user)
    said = Message("assistant", "", tool_calls=first.tool_calls)
    second = await _step(user, said, _result(first, 0, {"citations": [QUOTE]}))
    assert json.loads(second.tool_calls[0].arguments)["quote"] == QUOTE["quote"]


async def test_a_quote_can_not_bring_an_image() -> None:
    user = Message("user", "What?")
    first = await _step(user)
    evil = {**QUOTE, "quote": "![x](http://evil.example/a) <img src=x>"}
    answer = await _step(
        user, Message("assistant", "", tool_calls=first.tool_calls), _result(first, 0, {"citations": [evil]})
    )
    assert "![" not in answer.text
    assert "<img" not in answer.text.replace("\\<", "")

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.engine.messages import Message
from astroresearch.engine.model import ModelItem, ModelReply, ModelRequest, TextDelta, ThoughtDelta
from astroresearch.errors import InvalidInput, ModelError
from astroresearch.models.scripted import OUT_OF_REPLIES, Scripted


async def play(model: Scripted, messages: Sequence[Message]) -> list[ModelItem]:
    async with model.stream(ModelRequest(list(messages))) as items:
        return [item async for item in items]


async def reply(model: Scripted, messages: Sequence[Message]) -> ModelReply:
    last = (await play(model, messages))[-1]
    assert isinstance(last, ModelReply)
    return last


def user(text: str, turn_id: str = "", **meta: Any) -> Message:
    return Message("user", text, turn_id=turn_id, meta=meta)


def said(text: str) -> Message:
    return Message("assistant", text)


async def test_it_streams_thoughts_then_words_then_the_whole() -> None:
    items = await play(Scripted([{"thought": "hm, well", "text": "Two words \n\nand more "}]), [user("hi")])
    assert [i.text for i in items if isinstance(i, ThoughtDelta)] == ["hm,", " well"]
    assert [i.text for i in items if isinstance(i, TextDelta)] == ["Two", " words", " \n\nand", " more", " "]
    end = items[-1]
    assert isinstance(end, ModelReply)
    assert (end.text, end.finish, end.reasoning) == ("Two words \n\nand more ", "stop", "hm, well")
    assert end.usage.estimated


@pytest.mark.parametrize(
    ("fields", "deltas"),
    [
        ({"text": "a b c d e", "chunks": 2}, ["a b", " c d", " e"]),
        ({"chunks": ["a b", "c"]}, ["a b", "c"]),
        ({"text": "abcd", "chunks": ["a", "b"]}, ["a", "b", "cd"]),
    ],
)
async def test_chunks(fields: dict[str, Any], deltas: list[str]) -> None:
    items = await play(Scripted([fields]), [user("hi")])
    assert [i.text for i in items if isinstance(i, TextDelta)] == deltas
    assert isinstance(items[-1], ModelReply)
    assert items[-1].text == "".join(deltas)


async def test_replies_are_played_over_the_whole_conversation() -> None:
    model = Scripted(["one", {"calls": [{"name": "a"}]}, "three"])
    history = [user("x"), said("one"), user("y")]
    first = await reply(model, history[:1])
    second = await reply(model, history)
    assert (first.text, second.finish) == ("one", "tool_calls")
    third = [*history, Message("assistant", "", second.tool_calls), Message("tool", "r")]
    assert (await reply(model, third)).text == "three"
    assert (await reply(model, [*third, said("three"), user("z")])).text == OUT_OF_REPLIES


async def test_turns_go_by_the_user_message_and_steering_is_none() -> None:
    model = Scripted({"turns": [["a", "b"], [{"text": "c"}]]})
    assert (await reply(model, [user("1", "t1")])).text == "a"
    steered = [user("1", "t1"), said("a"), user("more", "t1"), user("go on", "t1", synthetic=True)]
    assert (await reply(model, steered)).text == "b"
    assert (await reply(model, [*steered, said("b"), user("2", "t2")])).text == "c"
    assert (
        await reply(model, [*steered, said("b"), user("2", "t2"), said("c"), user("3", "t3")])
    ).text == OUT_OF_REPLIES


async def test_turns_and_replies_that_match() -> None:
    script = {"turns": [["first"], {"match": "NGC 1275", "replies": ["a galaxy", "indeed"]}, ["second"]]}
    model = Scripted(script)
    galaxy = [user("What is ngc 1275?")]
    assert (await reply(model, galaxy)).text == "a galaxy"
    assert (await reply(model, [*galaxy, said("a galaxy")])).text == "indeed"
    assert (await reply(model, [user("hello")])).text == "first"
    flat = Scripted(["plain", {"match": "^sub", "text": "found"}, "done"])
    assert (await reply(flat, [user("subagent task")])).text == "found"
    assert (await reply(flat, [user("subagent task"), said("found")])).text == "done"
    assert (await reply(flat, [user("other")])).text == "plain"


async def test_calls_have_stable_ids_and_their_own_text() -> None:
    calls = [{"name": "read_file", "arguments": {"path": "α.tex"}}, {"name": "x", "arguments": '{"cut', "id": "call_0"}]
    model = Scripted([{"calls": calls}])
    one, other = (await reply(model, [user("hi")])).tool_calls, (await reply(model, [user("hi")])).tool_calls
    assert one == other
    assert (one[0].arguments, one[1].arguments, one[1].id) == ('{"path": "α.tex"}', '{"cut', "call_0")
    assert len(one[0].id) == 9
    assert one[0].id.isalnum()


async def test_errors_are_raised_and_the_next_reply_follows() -> None:
    model = Scripted([{"error": "rate_limited", "retry_after_s": 5, "status": 429}, "fine"])
    with pytest.raises(ModelError) as raised:
        await play(model, [user("hi")])
    assert (raised.value.kind, raised.value.retry_after_s, raised.value.status) == ("rate_limited", 5, 429)
    assert (await reply(model, [user("hi"), user("again")])).text == "fine"


async def test_an_error_after_a_text_breaks_it_off() -> None:
    end = await reply(Scripted([{"text": "It is", "calls": [{"name": "a"}], "error": "broken_stream"}]), [user("hi")])
    assert (end.finish, end.text, end.tool_calls) == ("interrupted", "It is", ())
    assert end.problem


async def test_empty_answers_are_counted() -> None:
    model = Scripted([{"thought": "hm"}, "then"])
    await play(model, [user("hi")])
    assert (await reply(model, [user("hi")])).text == "then"


async def test_parallel_conversations_do_not_disturb_one_another() -> None:
    model = Scripted([{"text": "a", "delay_ms": 1}, {"text": "b", "chunk_ms": 1}])
    answers: list[str] = []

    async def talk(name: str) -> None:
        first = await reply(model, [user(name)])
        second = await reply(model, [user(name), said(first.text), user("more")])
        answers.append(first.text + second.text)

    async with anyio.create_task_group() as group:
        for name in "xyz":
            group.start_soon(talk, name)
    assert answers == ["ab"] * 3


async def test_it_waits_for_a_file_and_can_be_cancelled(tmp_path: Path) -> None:
    flag = tmp_path / "go"
    model = Scripted([{"text": "now", "wait_for": str(flag)}])
    with anyio.move_on_after(0.01) as scope:
        await play(model, [user("hi")])
    assert scope.cancelled_caught
    flag.touch()
    assert (await reply(model, [user("hi")])).text == "now"


async def test_quotes_of_the_turns_tools_are_added() -> None:
    cited = {"citations": [{"paperId": "p1", "bibcode": "2012ARA&A..50..455F", "page": 3, "quote": "AGN feedback"}]}
    tool = Message("tool", "x", meta={"metadata": cited})
    end = await reply(Scripted([{"text": "old"}, {"text": "See:", "cite": True}]), [user("q"), said("old"), tool])
    assert end.text == "See:\n\n[1] “AGN feedback” (2012ARA&A..50..455F, p. 3)"


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "galaxy.json"
    path.write_text(json.dumps({"replies": ["hi"], "context_window": 4096}), "utf-8")
    model = Scripted.from_file(path)
    assert (model.name, model.context_window) == ("galaxy", 4096)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ({"turn": []}, "turn"),
        ([{"txt": "x"}], "txt"),
        ([3], "object"),
        ([{"error": "boom"}], "error"),
        ([{"finish": "done"}], "finish"),
        ([{"calls": [{"arguments": {}}]}], "name"),
        ([{"match": "("}], "regular expression"),
        ({"turns": ["x"]}, "Turn 1"),
    ],
)
def test_a_script_with_a_slip_is_refused_with_its_place(script: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Scripted(script)


@pytest.mark.parametrize("content", ["{", "3", None, "\xff"])
def test_a_file_that_is_no_script(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content, "latin-1")
    with pytest.raises(InvalidInput, match=r"script\.json"):
        Scripted.from_file(path)

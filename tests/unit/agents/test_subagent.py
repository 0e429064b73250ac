"""Subagents on the one engine: their own context, their parent's limits and front end."""

from __future__ import annotations

from typing import Any

import anyio

from astroresearch.agents.subagent import offered
from astroresearch.models.scripted import OUT_OF_REPLIES
from astroresearch.tools.registry import standard
from tests.unit.agents.conftest import DeskMaker, FakeFrontEnd, check_history, check_timeline

TASK = {"task": "TASK: read the paper", "name": "reader"}


def script(*child: Any, parent: Any = "Summed up.", **task: Any) -> dict[str, Any]:
    """Turns by what the user message says: the child's holds TASK."""
    return {
        "turns": [
            {"match": "^TASK", "replies": list(child)},
            {"match": "^Go", "replies": [{"calls": [{"name": "subagent", "arguments": {**TASK, **task}}]}, parent]},
        ]
    }


def calls(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def test_only_the_summary_comes_back(desk: DeskMaker) -> None:
    async with desk(script(calls("rag_search", query="ripples"), "They are sound waves (p. 2).")) as d:
        outcome = await d.send("Go")
        assert outcome.answer == "Summed up."
        check_timeline(d.events)
        (begin,), (end,) = d.of("subagent.start"), d.of("subagent.end")
        assert (begin["name"], begin["task"]) == ("reader", "TASK: read the paper")
        assert (end["status"], end["summary"]) == ("completed", "They are sound waves (p. 2).")
        assert {event["agent"] for event in d.events} == {"main", "reader"}
        last = d.model.requests[-1].messages[-1]
        assert "They are sound waves (p. 2)." in last.content
        assert "rag_search (completed)" in last.content
        assert last.tainted
        assert "Perseus cluster is the brightest" not in str(d.model.requests[-1].messages)
        child = (await d.store.sessions.list(parent=outcome.session_id))[0]
        assert child.agent == "reader"
        stored = await d.store.sessions.messages(child.id)
        assert [message.role for message in stored] == ["system", "user", "assistant", "tool", "assistant"]
        check_history(stored)
        assert [session["id"] for session in await d.manager.list()] == [outcome.session_id]


async def test_a_subagent_has_no_subagent_and_no_user(desk: DeskMaker) -> None:
    async with desk(script("Ok.")) as d:
        await d.send("Go")
        names = {definition.name for definition in d.model.requests[1].tools}
        assert {"subagent", "ask_user", "file_edit"}.isdisjoint(names)
        assert {"rag_search", "read_file", "download_paper", "parse_paper"} <= names
    assert "file_edit" in offered(standard(), read_only=False).names()


async def test_its_steps_are_limited(desk: DeskMaker) -> None:
    replies = [calls("query_target", name="NGC 1275"), calls("rag_search", query="a"), calls("rag_search", query="b")]
    async with desk(script(*replies, max_steps=2)) as d:
        await d.send("Go")
        assert d.of("subagent.end")[0]["status"] == "completed"
        assert len(d.model.requests) == 1 + 3 + 1


async def test_its_questions_reach_the_user_with_its_name(desk: DeskMaker) -> None:
    front_end = FakeFrontEnd(choices=["once", "deny"], answers_in_timeline=False)
    edit = calls("file_edit", path="main.tex", old_string="old", new_string="new")
    async with desk(
        script(calls("read_file", path="main.tex"), edit, "Tried.", may_write=True), front_end=front_end
    ) as d:
        await d.send("Go")
        assert [(request.tool, request.agent) for request in front_end.requests] == [
            ("subagent", "main"),
            ("file_edit", "reader"),
        ]
        assert d.workspace.writes == []
        check_timeline(d.events)


async def test_a_subagent_is_cancelled_with_its_parent(desk: DeskMaker) -> None:
    async with desk(script(calls("waiter"))) as d:
        async with anyio.create_task_group() as group:
            group.start_soon(d.send, "Go")
            await d.waiter.until(1)
            (record,) = await d.store.sessions.list()
            assert await d.manager.cancel(record.id)
        assert d.waiter.ended == 1
        check_timeline(d.events)
        assert d.of("subagent.end")[0]["status"] == "cancelled"
        child = (await d.store.sessions.list(parent=record.id))[0]
        check_history(await d.store.sessions.messages(child.id))


async def test_two_subagents_of_one_name_are_told_apart(desk: DeskMaker) -> None:
    both = {
        "calls": [
            {"name": "subagent", "arguments": TASK},
            {"name": "subagent", "arguments": {**TASK, "task": "TASK: two"}},
        ]
    }
    turns = {"turns": [{"match": "^TASK", "replies": ["Ok."]}, {"match": "^Go", "replies": [both, "Done."]}]}
    async with desk(turns) as d:
        await d.send("Go")
        assert sorted(event["name"] for event in d.of("subagent.start")) == ["reader", "reader-2"]
        assert {event["agent"] for event in d.events} == {"main", "reader", "reader-2"}
        check_timeline(d.events)


async def test_a_subagent_that_fails_is_said_to_have_failed(desk: DeskMaker) -> None:
    async with desk(script({"error": "auth", "problem": "The key was refused."})) as d:
        await d.send("Go")
        assert d.of("subagent.end")[0]["status"] == "failed"
        assert d.of("tool.end")[0]["isError"]
        assert OUT_OF_REPLIES not in str(d.events)

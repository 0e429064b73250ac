from __future__ import annotations

import itertools
import json
from typing import Any

import anyio
import pytest

from astroresearch.engine.events import Failed, MessageDelta, Noticed, ThoughtDelta, ToolStarted, UsageReported
from astroresearch.engine.messages import Message
from astroresearch.engine.tool import ToolContext
from astroresearch.engine.turn import Limits
from astroresearch.errors import StoreUnavailable
from tests.fakes.log import Letters, MemoryLog, complaints, unclosed
from tests.fakes.tools import Journal, tool
from tests.unit.engine.rig import Rig, calls

SEARCH = {"text": "cooling flow"}


async def test_thoughts_text_calls_and_an_answer() -> None:
    last = {"text": "Two papers say so.", "usage": {"input": 70, "output": 5}}
    first = calls(("search", SEARCH), text="I look.", thought="Which papers?")
    rig = Rig([first, last], [tool("search", "two papers")], prices=(2.0, 10.0))
    result = await rig.send()
    assert (result.answer, result.stop_reason, result.steps) == ("Two papers say so.", "end_turn", 2)
    assert [e.text for e in rig.of(MessageDelta)] == ["I", " look.", "Two", " papers", " say", " so."]
    assert "".join(e.text for e in rig.of(ThoughtDelta)) == "Which papers?"
    assert rig.of(ToolStarted)[0].step == 1
    usage = rig.of(UsageReported)[-1]
    assert usage.input == result.usage.input > 70
    assert usage.estimated
    assert usage.cost == pytest.approx((usage.input * 2 + usage.output * 10) / 1e6)
    stored = [(m.role, m.turn_id) for m in rig.log.messages]
    assert stored == [("user", "t1"), ("assistant", "t1"), ("tool", "t1"), ("assistant", "t1")]
    assert rig.log.messages[1].reasoning == "Which papers?"


async def test_the_reply_is_stored_before_its_calls_run() -> None:
    rows: list[list[str]] = []
    rig = Rig([calls(("a", {})), "Done."], [tool("a", lambda a, c: rows.append([r for r, _ in rig.log.rows]) or "ok")])
    await rig.send()
    assert rows == [["append", "append", "tool_started"]]


async def test_deltas_are_shown_while_the_model_still_speaks() -> None:
    stored: list[int] = []
    rig = Rig(["one two three"], watch=lambda event: stored.append(len(rig.log.messages)))
    await rig.send()
    assert stored[:3] == [1, 1, 1]  # only the user's message


@pytest.mark.parametrize(
    ("limits", "prices", "reason"),
    [
        (Limits(max_steps=3), None, "max_steps"),
        (Limits(max_turn_tokens=300), None, "budget"),
        (Limits(max_cost=0.003), (10.0, 10.0), "budget"),
    ],
)
async def test_a_limit_asks_once_more_without_tools(limits: Limits, prices: Any, reason: str) -> None:
    step = {"usage": {"input": 90, "output": 10}}
    script = [calls(("a", {"text": str(i)}), **step) for i in range(3)] + [{"text": "So far.", **step}]
    journal = Journal()
    rig = Rig(script, [tool("a", journal=journal)], limits=limits, prices=prices)
    result = await rig.send()
    assert (result.stop_reason, result.answer) == (reason, "So far.")
    assert len(journal.began) == 3
    assert (rig.model.requests[-1].tools, len(rig.model.requests)) == ((), 4)
    assert result.usage.input + result.usage.output == 400
    assert "limit" in rig.of(Noticed)[0].text
    assert complaints(rig.model.requests[-1].messages) == []


async def test_a_model_that_calls_tools_to_the_last_gets_no_result() -> None:
    rig = Rig([calls(("a", {}), text="More.")] * 5, [tool("a")], limits=Limits(max_steps=1))
    result = await rig.send()
    assert (result.stop_reason, result.answer, result.steps) == ("max_steps", "More.", 2)
    assert complaints(rig.log.messages) == []
    assert unclosed(rig.events) == []


async def test_the_same_call_with_the_same_result() -> None:
    journal = Journal()
    rig = Rig([calls(("grep", SEARCH))] * 5 + ["Nothing new."], [tool("grep", "no match", journal=journal)])
    result = await rig.send()
    assert len(journal.began) == 4
    contents = [m.content for m in rig.results_of()]
    assert contents[:2] == ["no match", "no match"]
    assert "time 3" in contents[2]
    assert "Refused" in contents[4]
    assert (result.stop_reason, result.answer, len(rig.model.requests)) == ("loop", "Nothing new.", 6)
    assert "circles" in rig.of(Noticed)[0].text


async def test_arguments_in_another_order_are_the_same() -> None:
    journal = Journal()
    one, other = '{"text": "a", "x": [1, 2]}', '{"x":[1,2],"text":"a"}'
    await Rig([calls(("a", t)) for t in (one, other, one, other, one)] + ["Done."], [tool("a", journal=journal)]).send()
    assert len(journal.began) == 4


async def test_a_changed_result_starts_anew() -> None:
    journal = Journal()
    answers = iter(["same"] * 3 + ["other"] + ["same"] * 3)
    rig = Rig([calls(("a", {}))] * 7 + ["Done."], [tool("a", lambda a, c: next(answers), journal=journal)])
    assert (await rig.send()).stop_reason == "end_turn"
    assert len(journal.began) == 7


async def test_two_calls_in_turn_are_a_circle_too() -> None:
    journal = Journal()
    script = [calls((n, {})) for n in "abababababab"] + ["Done."]
    result = await Rig(script, [tool("a", journal=journal), tool("b", journal=journal)]).send()
    assert result.stop_reason == "loop"
    assert len(journal.began) == 8


async def test_looking_again_after_a_change_is_no_circle() -> None:
    journal = Journal()
    script: list[Any] = []
    for i in range(6):
        script += [calls(("check", {})), calls(("edit", {"text": str(i)}))]
    edit = tool("edit", effect="library_write")
    result = await Rig([*script, "Done."], [tool("check", "1 error", journal=journal), edit]).send()
    assert result.stop_reason == "end_turn"
    assert len(journal.began) == 6


async def test_broken_arguments_for_ever_are_a_circle() -> None:
    result = await Rig([calls(("a", '{"text": "cut'))] * 9, [tool("a")]).send()
    assert result.stop_reason == "loop"


async def test_a_last_answer_that_is_one_more_call_is_none() -> None:
    written = '```json\n{"name": "a", "arguments": {}}\n```'
    rig = Rig([calls(("a", {})), written], [tool("a")], limits=Limits(max_steps=1))
    result = await rig.send()
    assert result.stop_reason == "max_steps"
    assert "instead of answering" in result.error
    assert rig.of(Failed)[0].code == "model_empty"


async def test_an_empty_answer_is_asked_for_again_and_three_are_a_circle() -> None:
    rig = Rig([{"thought": "hm"}, "Here."], [tool("a")])
    assert (await rig.send()).answer == "Here."
    assert complaints(rig.log.messages) == []
    silent = Rig([{}] * 9, [tool("a")])
    result = await silent.send()
    assert result.stop_reason == "loop"
    assert "no answer" in result.error
    assert silent.of(Failed)[0].code == "model_empty"
    assert len(silent.model.requests) == 4


async def test_an_answer_that_breaks_off_is_kept_and_marked() -> None:
    rig = Rig(
        [{"text": "The gas is", "finish": "interrupted", "problem": "The connection was cut."}, "Again."], [tool("a")]
    )
    result = await rig.send()
    assert (result.stop_reason, result.answer) == ("interrupted", "The gas is")
    assert (rig.log.messages[-1].content, rig.log.messages[-1].status) == ("The gas is", "interrupted")
    assert rig.of(Failed)[0].message == "The connection was cut."
    assert (await rig.send("Go on")).answer == "Again."
    assert rig.model.requests[-1].messages[-2].content == "The gas is"


async def test_calls_of_an_answer_that_broke_off_never_run() -> None:
    journal = Journal()
    rig = Rig([calls(("a", {}), text="I", error="broken_stream"), "Fine."], [tool("a", journal=journal)])
    assert (await rig.send()).stop_reason == "interrupted"
    assert journal.began == []
    assert (await rig.send()).answer == "Fine."


@pytest.mark.parametrize(
    "kind", ["auth", "no_model", "rate_limited", "context_length", "refused", "unavailable", "timeout", "bad_answer"]
)
async def test_errors_of_the_model_are_told_and_the_next_turn_works(kind: str) -> None:
    rig = Rig([calls(("a", {})), {"error": kind, "problem": "It failed."}, "Fine."], [tool("a")])
    result = await rig.send()
    assert (result.stop_reason, result.error) == ("error", "It failed.")
    assert rig.of(Failed)[0].code == f"model_{kind}"
    assert (await rig.send()).answer == "Fine."
    assert complaints(rig.model.requests[-1].messages) == []


async def test_a_refusal() -> None:
    result = await Rig([{"text": "I can't.", "finish": "refusal"}]).send()
    assert (result.stop_reason, result.answer) == ("refusal", "I can't.")


async def test_an_answer_cut_by_its_length_says_so() -> None:
    rig = Rig([{"text": "Long", "finish": "length"}])
    assert (await rig.send()).stop_reason == "end_turn"
    assert "cut" in rig.of(Noticed)[0].text


async def test_a_log_that_can_not_store_ends_the_turn() -> None:
    rig = Rig(["Hello."], log=MemoryLog())

    class Full(MemoryLog):
        async def append(self, message: Message) -> None:
            if message.role == "assistant":
                raise StoreUnavailable("The disk is full.")

    full = Rig(["Hello."], log=Full())
    result = await full.send()
    assert (result.stop_reason, result.error) == ("error", "The disk is full.")
    assert full.of(Failed)[0].code == "store_unavailable"
    assert (await rig.send()).answer == "Hello."


async def test_steering_between_steps_and_at_the_end() -> None:
    more = Message("user", "Only since 2015, please.")
    late = Message("user", "And in X-rays?")
    rig = Rig(
        [calls(("a", {})), "First.", "Second."],
        [tool("a")],
        inbox=Letters([[], [more], [late]]),
    )
    result = await rig.send()
    assert (result.answer, result.steps) == ("Second.", 3)
    users = [m.content for m in rig.model.requests[-1].messages if m.role == "user"]
    assert users == ["What is known?", more.content, late.content]
    assert {m.turn_id for m in rig.log.messages} == {"t1"}


async def test_steering_is_left_for_the_caller_where_no_step_follows() -> None:
    box = Letters([[], [Message("user", "wait")]])
    rig = Rig([calls(("a", {})), "So far."], [tool("a")], inbox=box, limits=Limits(max_steps=1))
    await rig.send()
    assert len(box.batches) == 1


async def test_a_cancel_keeps_what_was_said() -> None:
    rig = Rig([{"chunks": ["The gas ", "cools"], "chunk_ms": 3_600_000}, "Fine."])
    async with anyio.create_task_group() as group:
        group.start_soon(rig.send)
        while not rig.of(MessageDelta):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert (rig.log.messages[-1].content, rig.log.messages[-1].status) == ("The gas ", "interrupted")
    assert rig.of(UsageReported)[-1].estimated
    assert (await rig.send("And?")).answer == "Fine."


async def test_plan_mode_offers_what_reads() -> None:
    tools = [tool("read"), tool("edit", effect="workspace_write"), tool("todo", effect="library_write", kind="think")]
    rig = Rig([calls(("edit", {})), "Done."], tools)
    await rig.send(mode="plan")
    assert [t.name for t in rig.model.requests[0].tools] == ["read", "todo"]
    assert rig.results_of()[0].status == "denied"


async def test_ids_of_calls_are_ours_and_unique_in_the_session() -> None:
    same = {"calls": [{"name": "a", "arguments": {"text": t}, "id": "call_0"} for t in "xy"]}
    rig = Rig([same, {"calls": [{"name": "a", "id": "call_0"}]}, "Done.", same, "Done."], [tool("a")])
    await rig.send()
    await rig.send(known_call_ids=frozenset({"call_0"}))
    messages = rig.model.requests[-1].messages
    assert complaints(messages) == []
    ids = [c.id for m in messages for c in m.tool_calls]
    assert len(set(ids)) == len(ids) == 5


async def test_a_request_is_the_beginning_of_the_next_one() -> None:
    rig = Rig(
        [calls(("a", '{"cut'), ("b", {})), {}, calls(("a", {}), ("nix", "")), "One.", calls(("b", "")), "Two."],
        [tool("a", "x", untrusted=True), tool("b", "y" * 5_000)],
    )
    await rig.send()
    await rig.send()
    requests = [list(r.messages) for r in rig.model.requests]
    for before, after in itertools.pairwise(requests):
        assert after[: len(before)] == before
    assert len({json.dumps([t.name for t in r.tools]) for r in rig.model.requests}) == 1


async def test_one_engine_runs_several_turns_at_once() -> None:
    both = anyio.Event()
    running: list[str] = []

    async def meet(args: Any, context: ToolContext[Any]) -> str:
        running.append(context.turn_id)
        if len(running) == 2:
            both.set()
        await both.wait()
        return "met"

    turns = [{"match": word, "replies": [calls(("a", {})), f"{word.title()}."]} for word in ("one", "two")]
    rig = Rig({"turns": turns}, [tool("a", meet)])
    answers: list[str] = []

    async def send(text: str) -> None:
        answers.append((await rig.send(text)).answer)

    async with anyio.create_task_group() as group:
        group.start_soon(send, "one")
        group.start_soon(send, "two")
    assert sorted(answers) == ["One.", "Two."]


async def test_a_thousand_calls_in_one_answer() -> None:
    journal = Journal()
    rig = Rig([calls(*[("a", {"text": str(i)}) for i in range(1_000)]), "Done."], [tool("a", journal=journal)])
    assert (await rig.send()).answer == "Done."
    assert len(journal.began) == 1_000
    assert journal.most_alive <= 4

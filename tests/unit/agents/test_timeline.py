"""Timeline: numbering, coalescing, redaction, storing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astroresearch.agents.redact import MARK, Redactor
from astroresearch.agents.repair import closing_events
from astroresearch.agents.timeline import Timeline
from astroresearch.engine.events import MessageDelta, Noticed, ThoughtDelta, ToolStarted, TurnDone
from astroresearch.errors import Conflict, StoreUnavailable

KEY = "sk-canary-1234567890"


class Rig:
    def __init__(self, *, failures: Sequence[Exception] = (), secrets: Sequence[str] = ()) -> None:
        self.sent: list[dict[str, Any]] = []
        self.stored: list[dict[str, Any]] = []
        self.failures = list(failures)
        self.batches = anyio.Event()
        self.timeline = Timeline(
            turn_id="t1", next_seq=7, sink=self.sent.append, store=self.store, redactor=Redactor(secrets)
        )

    async def store(self, batch: Sequence[dict[str, Any]]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.stored += batch
        self.batches.set()

    def texts(self) -> list[str]:
        return [event["text"] for event in self.sent]


async def test_the_first_delta_goes_at_once_and_later_ones_together() -> None:
    rig = Rig()
    emit = rig.timeline.emitter("main")
    for letter in "abcdef":
        emit(MessageDelta(letter))
    assert rig.texts() == ["a"]
    emit(Noticed("info", "now"))
    assert rig.texts() == ["a", "bcdef", "now"]
    assert [event["seq"] for event in rig.sent] == [7, 8, 9]


async def test_deltas_that_wait_are_sent_and_stored_by_themselves() -> None:
    rig = Rig()
    async with anyio.create_task_group() as group:
        group.start_soon(rig.timeline.run)
        emit = rig.timeline.emitter("main")
        emit(MessageDelta("a"))
        emit(MessageDelta("b"))
        with anyio.fail_after(10):
            while len(rig.stored) < 2:
                await rig.batches.wait()
                rig.batches = anyio.Event()
        group.cancel_scope.cancel()
    assert rig.texts() == ["a", "b"]
    assert rig.stored == rig.sent


async def test_agents_and_kinds_are_never_mixed() -> None:
    rig = Rig()
    main, helper = rig.timeline.emitter("main"), rig.timeline.emitter("helper")
    main(ThoughtDelta("t"))
    main(MessageDelta("m"))
    helper(MessageDelta("h"))
    main(MessageDelta("n"))
    main(TurnDone("end_turn"))
    assert [(event["agent"], event["type"], event.get("text")) for event in rig.sent] == [
        ("main", "thought.delta", "t"),
        ("main", "message.delta", "m"),
        ("helper", "message.delta", "h"),
        ("main", "message.delta", "n"),
        ("main", "done", None),
    ]


async def test_nothing_comes_after_done() -> None:
    rig = Rig()
    emit = rig.timeline.emitter("main")
    emit(TurnDone("end_turn"))
    emit(Noticed("info", "late"))
    assert [event["type"] for event in rig.sent] == ["done"]


@given(cuts=st.lists(st.integers(1, 12), max_size=12), before=st.text(max_size=8), after=st.text(max_size=8))
async def test_a_secret_that_comes_in_pieces_is_still_hidden(cuts: list[int], before: str, after: str) -> None:
    rig = Rig(secrets=[KEY])
    emit = rig.timeline.emitter("main")
    text = before + KEY + after
    at = 0
    for cut in cuts:
        emit(MessageDelta(text[at : at + cut]))
        rig.timeline._flush_delta()
        at += cut
    emit(MessageDelta(text[at:]))
    emit(TurnDone("end_turn"))
    shown = "".join(event.get("text", "") for event in rig.sent)
    assert shown == text.replace(KEY, MARK)


async def test_secrets_in_arguments_and_keys() -> None:
    rig = Rig(secrets=[KEY])
    rig.timeline.emitter("main")(ToolStarted("c1", "read_file", "read", {"path": [f"x{KEY}"], KEY: 1}, 1))
    assert KEY not in str(rig.sent)


async def test_events_wait_for_a_store_that_fails_and_are_given_up_where_it_can_not_help() -> None:
    rig = Rig(failures=[StoreUnavailable("The disk is full.")])
    emit = rig.timeline.emitter("main")
    emit(Noticed("info", "one"))
    await rig.timeline.save()
    assert rig.stored == []
    emit(Noticed("info", "two"))
    await rig.timeline.close()
    assert [event["text"] for event in rig.stored] == ["one", "two"]
    rig.failures = [Conflict("taken")]
    emit(Noticed("info", "three"))
    await rig.timeline.close()
    await rig.timeline.close()
    assert len(rig.stored) == 2


def test_a_timeline_that_ended_needs_no_end() -> None:
    assert closing_events([], 1) == []
    assert closing_events([{"type": "done", "turnId": "t", "ts": ""}], 2) == []


@pytest.mark.parametrize("secret", ["", "abc"])
def test_short_secrets_are_no_secrets(secret: str) -> None:
    assert Redactor([secret]).text("abcabc") == "abcabc"

"""The invariants of the engine (docs/architecture.md) under random models, tools, answers, steering, cancels and crashes.

A session lives through any number of turns; after each one the log, the timeline and the model's requests are judged.
"""

from __future__ import annotations

import itertools
from typing import Any

import anyio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from astroresearch.engine.events import Event, MessageDelta, PermissionAsked, ToolFinished, ToolStarted
from astroresearch.engine.history import normalise
from astroresearch.engine.loop import ReactEngine
from astroresearch.engine.messages import Message
from astroresearch.engine.model import ModelRequest
from astroresearch.engine.permissions import PermissionGate, PermissionRules
from astroresearch.engine.tool import AnyTool, ToolContext, ToolOutput
from astroresearch.engine.turn import Limits, PermissionAnswer, PermissionRequest, TurnResult, TurnStart
from astroresearch.errors import NotFound
from astroresearch.models.scripted import Scripted
from tests.fakes.log import Letters, MemoryLog, MemoryResults, complaints, fold, unclosed
from tests.fakes.tools import Journal, registry, tool

STEP_TOKENS = 100
LIMITS = Limits(max_steps=5, max_turn_tokens=900, max_concurrent_tools=2, max_result_chars=200)


def fail(args: Any, context: ToolContext[Any]) -> str:
    raise NotFound(f"There is no {args.text}.")


async def slow(args: Any, context: ToolContext[Any]) -> str:
    for done in range(5):
        context.progress("working", done / 5)
        await anyio.lowlevel.checkpoint()
    return "done"


async def stubborn(args: Any, context: ToolContext[Any]) -> str:
    """Swallows the first cancel, as careless code does."""
    try:
        return await slow(args, context)
    except anyio.get_cancelled_exc_class():
        raise ValueError("cancelled?") from None


def all_tools(journal: Journal) -> list[AnyTool]:
    return [
        tool("ok", lambda a, c: f"found {a.text}", journal=journal),
        tool("fail", fail, journal=journal),
        tool("slow", slow, journal=journal),
        tool("stubborn", stubborn, journal=journal),
        tool("block", slow, journal=journal, interrupt="block", effect="library_write", safe=False),
        tool("abort", fail, journal=journal, aborts=True, safe=False),
        tool("paper", lambda a, c: ToolOutput("a stranger " * 30), journal=journal, untrusted=True),
        tool("edit", slow, journal=journal, effect="workspace_write", decision="ask", safe=False),
        tool("shell", slow, journal=journal, effect="exec"),
        tool("never", slow, journal=journal),
    ]


NAMES = [t.name for t in all_tools(Journal())]
ARGUMENTS = st.sampled_from(
    ['{"text": "a"}', '{"text": "b"}', "", "{}", '{"text": ', '{"text": 3}', '"{}"', '{"more": 1}']
)
CALL = st.fixed_dictionaries(
    {"name": st.sampled_from([*NAMES, "unknown", "OK"]), "arguments": ARGUMENTS}, optional={"id": st.just("c1")}
)
USAGE = {"usage": {"input": STEP_TOKENS - 10, "output": 10}}
CALLS = st.lists(CALL, min_size=1, max_size=4)
REPLY = st.one_of(
    st.builds(
        lambda calls, text: {"calls": calls, "text": text, **USAGE},
        CALLS,
        st.sampled_from(["", "I look."]),
    ),
    st.builds(lambda calls: {"calls": calls, "finish": "length", **USAGE}, st.lists(CALL, min_size=1, max_size=2)),
    st.sampled_from(
        [
            {"text": "An answer in words.", **USAGE},
            {"thought": "hm", **USAGE},
            {"text": "It broke", "finish": "interrupted", **USAGE},
            {"text": "It broke", "error": "broken_stream"},
            {"error": "unavailable"},
            {"text": "No.", "finish": "refusal", **USAGE},
        ]
    ),
)
CHOICES = st.sampled_from(["once", "session", "deny", "none", "other id"])


class Sessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.journal = Journal()
        self.log = MemoryLog()
        self.events: list[Event] = []
        self.requests: list[ModelRequest] = []
        self.answers: list[str] = []
        self.allowed: set[str] = set()
        self.whole = True
        self.turns = 0
        self.gate = PermissionGate(PermissionRules(deny=["never"], allow=["shell"]), self)

    async def permission(self, request: PermissionRequest) -> PermissionAnswer | None:
        """The user, who answers in the order that the test drew."""
        await anyio.lowlevel.checkpoint()
        choice = self.answers.pop(0) if self.answers else "none"
        if choice == "none":
            return None
        if choice in ("once", "session"):
            self.allowed.add(request.call_id)
        return PermissionAnswer(
            "other" if choice == "other id" else request.id, "once" if choice == "other id" else choice
        )  # type: ignore[arg-type]

    @rule(
        replies=st.lists(REPLY, min_size=1, max_size=7),
        answers=st.lists(CHOICES, max_size=4),
        steering=st.lists(st.booleans(), max_size=4),
        stop_after=st.one_of(st.none(), st.integers(0, 25)),
    )
    def turn(self, replies: list[Any], answers: list[str], steering: list[bool], stop_after: int | None) -> None:
        self.answers = answers
        begun = len(self.journal.began)
        events = len(self.events)
        stored = len(self.log.messages)
        self.turns += 1
        turn_id = f"t{self.turns}"
        result = anyio.run(self._turn, turn_id, replies, steering, stop_after)
        self._judge(self.events[events:], self.log.messages[stored:], begun)
        if result is not None:
            used = result.usage.input + result.usage.output
            assert result.steps <= LIMITS.max_steps + 1
            assert used < LIMITS.max_turn_tokens + 2 * STEP_TOKENS + 400  # one reply without usage is estimated
            assert result.answer or result.error or result.stop_reason in ("end_turn", "max_steps", "budget", "loop")

    async def _turn(
        self, turn_id: str, replies: list[Any], steering: list[bool], stop_after: int | None
    ) -> TurnResult | None:
        message = Message("user", f"Question {turn_id}", turn_id=turn_id)
        history = [Message("system", "You help."), *self.log.messages, message]
        await self.log.append(message)
        model = Scripted({"turns": [{"match": f"{turn_id}$", "replies": replies}]}, record=True)
        result: TurnResult | None = None
        with anyio.CancelScope() as scope:

            def emit(event: Event) -> None:
                self.events.append(event)
                nonlocal stop_after
                if stop_after is not None:
                    stop_after -= 1
                    if stop_after < 0:
                        scope.cancel()

            engine = ReactEngine(
                model=model,
                registry=registry(*all_tools(self.journal)),
                permissions=self.gate,
                log=self.log,
                emit=emit,
                results=MemoryResults(),
                limits=LIMITS,
                inbox=Letters([[Message("user", "By the way")] if yes else [] for yes in steering]),
            )
            result = await engine.run(TurnStart("s", turn_id, history))
        self._judge_requests(model.requests)
        return result

    def _judge_requests(self, requests: list[ModelRequest]) -> None:
        for request in requests:
            assert complaints(request.messages) == []
        chain = [*self.requests[-1:], *requests] if self.whole else requests
        for before, after in itertools.pairwise(chain):
            assert list(after.messages[: len(before.messages)]) == list(before.messages)  # I3
        self.requests += requests
        self.whole = True

    def _judge(self, events: list[Event], stored: list[Message], begun: int) -> None:
        assert unclosed(events) == []  # I5
        assert self.journal.alive == 0  # I6
        text, statuses = fold(events)
        said = "".join(m.content for m in stored if m.role == "assistant")
        assert said == text or said.strip() == text.strip()  # I4
        results = [m for m in stored if m.role == "tool"]
        assert {m.tool_call_id: m.status for m in results} == statuses  # I4
        assert len(results) == len(statuses)  # I1
        wanted = [c.id for m in stored for c in m.tool_calls]
        assert sorted(wanted) == sorted(statuses)  # I1, I2
        self._judge_permissions(events, begun)

    def _judge_permissions(self, events: list[Event], begun: int) -> None:
        ran = [name for name, _ in self.journal.began[begun:]]
        assert "never" not in ran  # I7
        asked = {e.tool_id for e in events if isinstance(e, PermissionAsked)}
        denied = {e.id for e in events if isinstance(e, ToolFinished) and e.status == "denied"}
        assert not (denied & self.allowed)
        names = {e.id: e.name for e in events if isinstance(e, ToolStarted)}
        done = [e.id for e in events if isinstance(e, ToolFinished) and e.status == "completed"]
        granted = bool(self.gate.grants)
        for ident in done:
            if ident in asked or (names[ident] == "edit" and not granted):
                assert ident in self.allowed  # I7

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """The process is killed: what was not stored is gone, and the next turn starts from what is there."""
        keep = data.draw(st.integers(max(0, len(self.log.messages) - 4), len(self.log.messages)))
        if keep < len(self.log.messages):
            del self.log.messages[keep:]
            self.whole = False

    @invariant()
    def the_log_mends_to_a_valid_history(self) -> None:
        mended = normalise(list(self.log.messages))
        assert complaints(mended) == []
        assert normalise(mended) is mended

    @invariant()
    def deltas_hold_text(self) -> None:
        assert all(e.text for e in self.events if isinstance(e, MessageDelta))


Sessions.TestCase.settings = settings(
    max_examples=60, stateful_step_count=6, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_sessions = Sessions.TestCase

"""One turn from the user's message to `done`: what is stored and shown in which order."""

from __future__ import annotations

import dataclasses
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import anyio.abc

from astroresearch.agents import answer_check
from astroresearch.agents.parts import EngineParts
from astroresearch.agents.prompt import system_prompt, user_message
from astroresearch.agents.repair import answered, closing_events
from astroresearch.agents.request import SendOutcome, SendRequest, Sink
from astroresearch.agents.running import LiveTurn
from astroresearch.agents.timeline import Timeline
from astroresearch.domain.session import SessionRecord
from astroresearch.domain.skill import SkillInfo
from astroresearch.engine.events import (
    Event,
    Failed,
    MessageDelta,
    Noticed,
    SessionOpened,
    StopReason,
    ToolStarted,
    TurnDone,
    UsageReported,
)
from astroresearch.engine.history import normalise
from astroresearch.engine.hooks import HookEvent, HookInput, HookOutput
from astroresearch.engine.messages import Message, new_call_id
from astroresearch.engine.model import Model
from astroresearch.engine.permissions import PermissionGate
from astroresearch.engine.tool import ReadState
from astroresearch.engine.turn import TurnResult, TurnStart, TurnUsage
from astroresearch.errors import AstroResearchError, NotAllowed

RENEW_S = 8.0
"Between two renewals of a session's lease, which lasts 30 s."
NO_COORDINATOR = "There is no coordinator yet: the question goes to the agent itself, which can use subagents."
MAX_STOP_HOOKS = 8
"How often `Stop` hooks may send the model back in one turn."
_log = logging.getLogger(__name__)


@dataclass
class Job:
    """One message and its turn."""

    request: SendRequest
    sink: Sink
    model: Model
    created: bool = False
    "The session was made for it."
    waited: bool = False
    "It stood behind another one, and its sender was told so."
    turn_id: str = field(default_factory=lambda: f"t{new_call_id()}")
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    finished: anyio.Event = field(default_factory=anyio.Event)
    outcome: SendOutcome | None = None
    failure: AstroResearchError | None = None


@dataclass
class Steer:
    """A message for the running turn; `settled` once it was read, came too late, or was cancelled."""

    request: SendRequest
    settled: anyio.Event = field(default_factory=anyio.Event)
    end: Literal["read", "late", "cancelled"] = "late"

    def settle(self, end: Literal["read", "late", "cancelled"]) -> None:
        """Says how it ended."""
        self.end = end
        self.settled.set()


class Steering:
    """Fits `engine.turn.Inbox`: what the user says to the running turn."""

    def __init__(self) -> None:
        self.waiting: list[Steer] = []
        self._turn_id = ""

    def begin(self, turn_id: str) -> None:
        """The turn that it speaks to from now on."""
        self._turn_id = turn_id

    def take(self) -> Sequence[Message]:
        """Everything since the last call."""
        return [_user(steer.request, self._turn_id, steer=True) for steer in self.settle("read")]

    def settle(self, end: Literal["read", "late", "cancelled"]) -> list[Steer]:
        """Ends the wait of all of them, and gives them."""
        settled, self.waiting = self.waiting, []
        for steer in settled:
            steer.settle(end)
        return settled


@dataclass
class Runtime:
    """One session that is open here."""

    session_id: str
    gate: PermissionGate
    reads: dict[str, ReadState] = field(default_factory=dict)
    queue: deque[Job] = field(default_factory=deque)
    steering: Steering = field(default_factory=Steering)
    current: Job | None = None
    timeline: Timeline | None = None
    working: bool = False
    greeted: bool = False
    "`SessionStart` hooks have run."


class Blocked(NotAllowed):
    """A hook of the user's stopped the message."""

    code = "blocked_by_hook"


class TurnRunner:
    """Runs the turns of all sessions, one at a time each (the manager sees to that)."""

    def __init__(self, parts: EngineParts, owner: str, skills: Any) -> None:
        self._parts = parts
        self._sessions = parts.sessions
        self._owner = owner
        self._skills = skills

    async def run(self, runtime: Runtime, job: Job, record: SessionRecord, *, silent: bool) -> None:
        """Runs one turn; how it ended is in `job.outcome`. Raises only what cancels the whole server."""
        await self._close_crashed(record.id)
        turn = await self._live(runtime, job, record)
        track = _Track(turn.emit)
        turn.emit = track.emit
        runtime.timeline = turn.timeline
        self._parts.running.add(turn)
        result: TurnResult | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(turn.timeline.run)
                group.start_soon(self._keep_lease, turn, job)
                with job.scope:
                    result = await self._attempt(runtime, job, record, turn, silent=silent)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                job.outcome = await self._end(turn, track, result)
            self._parts.running.remove(turn)
            runtime.timeline = None

    async def refuse(self, runtime: Runtime, job: Job, record: SessionRecord) -> None:
        """Gives a message that waited back to the user, since the conversation was cancelled before its turn came."""
        turn = await self._live(runtime, job, record)
        turn.emit(SessionOpened(record.id, record.title, job.request.text))
        turn.emit(Noticed("warning", f"Cancelled before it was read: {job.request.text}"))
        turn.emit(TurnDone("cancelled"))
        await turn.timeline.close()
        job.outcome = SendOutcome(record.id, job.turn_id, stop_reason="cancelled")

    async def apologise(self, session_id: str, job: Job, error: AstroResearchError) -> None:
        """Ends a queued message's turn that could not begin; nothing is stored, since that may be just what failed."""

        async def nowhere(batch: Sequence[dict[str, Any]]) -> None:
            return None

        timeline = Timeline(
            turn_id=job.turn_id, next_seq=0, sink=job.sink, store=nowhere, redactor=self._parts.redactor
        )
        emit = timeline.emitter("main")
        emit(SessionOpened(session_id, "", job.request.text))
        emit(Failed(error.code, error.message, error.hint))
        emit(TurnDone("error"))

    async def _live(self, runtime: Runtime, job: Job, record: SessionRecord) -> LiveTurn:
        async def store(batch: Sequence[dict[str, Any]]) -> None:
            await self._sessions.add_events(record.id, batch)

        timeline = Timeline(
            turn_id=job.turn_id,
            next_seq=await self._sessions.next_seq(record.id),
            sink=job.sink,
            store=store,
            redactor=self._parts.redactor,
        )
        return LiveTurn(
            session_id=record.id,
            root_id=record.id,
            turn_id=job.turn_id,
            agent="main",
            timeline=timeline,
            emit=timeline.emitter("main"),
            model=job.model,
            scope=job.scope,
            mode=job.request.mode,
            thinking=job.request.thinking,
            extra=_extra(job.request),
        )

    async def _attempt(
        self, runtime: Runtime, job: Job, record: SessionRecord, turn: LiveTurn, *, silent: bool
    ) -> TurnResult | None:
        """The turn's phases; what goes wrong is shown, and None means that it did."""
        turn.emit(SessionOpened(record.id, record.title, job.request.text))
        if job.request.mode == "coordinator":
            turn.emit(Noticed("info", NO_COORDINATOR))
        try:
            added = await self._greet(runtime, job, turn)
            await self._mend(record.id)
            await self._store_question(job, record, turn, added)
            return await self._steps(runtime, job, turn, silent=silent)
        except AstroResearchError as error:
            turn.emit(Failed(error.code, error.message, error.hint))
        except Exception:  # noqa: BLE001 - one turn's bug must not end the others
            _log.exception("Turn %s failed", turn.turn_id)
            turn.emit(Failed("internal", "Something went wrong inside AstroResearch.", "The log has the details."))
        return None

    async def _steps(self, runtime: Runtime, job: Job, turn: LiveTurn, *, silent: bool) -> TurnResult:
        runtime.steering.begin(turn.turn_id)
        engine = self._parts.engine(turn, runtime.gate, runtime.reads, inbox=runtime.steering)
        total = TurnUsage()
        for attempt in range(MAX_STOP_HOOKS + 1):
            history = normalise(await self._sessions.messages(turn.session_id))
            result = await engine.run(
                TurnStart(
                    session_id=turn.session_id,
                    turn_id=turn.turn_id,
                    history=history,
                    thinking=turn.thinking,
                    silent=silent,
                    mode=turn.mode,
                    extra=turn.extra,
                    known_call_ids=frozenset(call.id for message in history for call in message.tool_calls),
                )
            )
            total = _sum(total, result.usage)
            if result.stop_reason != "end_turn" or not await self._sent_back(turn, result, attempt):
                break
        return await self._checked(turn, dataclasses.replace(result, usage=total))

    async def _checked(self, turn: LiveTurn, result: TurnResult) -> TurnResult:
        """The result with the answer's own quotes looked up; what has no source is said."""
        services = self._parts.services
        if services is None or not result.answer.strip():
            return result
        messages = await self._sessions.messages(turn.session_id)
        checked = await answer_check.check(
            result.answer, messages, result.citations, library=services.passages, papers=services.catalogue
        )
        if checked.notice:
            turn.emit(Noticed("warning", checked.notice))
        return dataclasses.replace(result, citations=checked.citations)

    async def _sent_back(self, turn: LiveTurn, result: TurnResult, attempt: int) -> bool:
        """Whether a `Stop` hook wants the model to go on; its reason is then the next message."""
        wish = await self._fire("Stop", turn, {"answer": result.answer, "stop_reason": result.stop_reason})
        if wish.decision != "deny":
            return False
        if attempt == MAX_STOP_HOOKS:
            turn.emit(Noticed("warning", f"A Stop hook sent the model back {MAX_STOP_HOOKS} times; the turn ends now."))
            return False
        reason = wish.reason or "You are not done yet."
        message = Message("user", reason, turn_id=turn.turn_id, meta={"synthetic": True})
        await self._sessions.append(turn.session_id, message, durable=True)
        return True

    async def _greet(self, runtime: Runtime, job: Job, turn: LiveTurn) -> str:
        """Runs the hooks that come before the message; what they add for the model."""
        added = []
        if not runtime.greeted:
            runtime.greeted = True
            source = "startup" if job.created else "resume"
            added.append((await self._fire("SessionStart", turn, {"source": source})).context)
        wish = await self._fire("UserPromptSubmit", turn, {"prompt": job.request.text})
        if wish.decision == "deny":
            raise Blocked(f"A hook stopped this message: {wish.reason or 'it gave no reason'}.")
        return "\n".join(part for part in (*added, wish.context) if part)

    async def _fire(self, event: HookEvent, turn: LiveTurn, payload: dict[str, Any]) -> HookOutput:
        output = await self._parts.hooks.fire(HookInput(event, turn.session_id, turn.agent, payload))
        if output.warning:
            turn.emit(Noticed("warning", output.warning))
        return output

    async def _store_question(self, job: Job, record: SessionRecord, turn: LiveTurn, added: str) -> None:
        """The message is on disk before the model hears of it; the system prompt of a new session before it."""
        if not record.turn_count and not await self._sessions.messages(record.id):
            skills: tuple[SkillInfo, ...] = self._skills()
            prompt = Message("system", system_prompt(skills), turn_id=turn.turn_id)
            await self._sessions.append(record.id, prompt, durable=False)
        message = _user(job.request, turn.turn_id, added=self._parts.redactor.text(added))
        await self._sessions.append(record.id, message, durable=True)
        await turn.timeline.save()

    async def _mend(self, session_id: str) -> None:
        """Answers the calls that a crash left open; nothing is run again."""
        for open_call in await self._sessions.open_calls(session_id):
            call, result = answered(open_call)
            await self._sessions.tool_finished(session_id, call, result)

    async def _close_crashed(self, session_id: str) -> None:
        """Stores the end of a turn whose process died, so that each begun item of the timeline ends once."""
        newest = await self._sessions.events(session_id, last=1)
        if newest and newest[-1]["type"] != "done":
            events = await self._sessions.events(session_id, last=5_000)
            closing = closing_events(events, await self._sessions.next_seq(session_id))
            await self._sessions.add_events(session_id, closing)

    async def _keep_lease(self, turn: LiveTurn, job: Job) -> None:
        while True:
            await anyio.sleep(RENEW_S)
            try:
                kept = await self._sessions.renew_lease(turn.session_id, self._owner)
            except AstroResearchError as error:
                _log.warning("The lease of %s could not be renewed: %s", turn.session_id, error)
                continue
            if not kept:
                turn.emit(Failed("conflict", "Another window has taken this session over.", "Go on there."))
                job.scope.cancel()
                return

    async def _end(self, turn: LiveTurn, track: _Track, result: TurnResult | None) -> SendOutcome:
        stop: StopReason = "error" if track.error else "cancelled"
        if result is not None:
            stop = result.stop_reason
        usage = result.usage if result is not None else track.usage
        answer = self._parts.redactor.text(result.answer if result is not None else track.answer)
        try:
            await self._sessions.finish_turn(turn.session_id, turn.turn_id, stop, usage, answer)
        except AstroResearchError as error:
            _log.warning("The end of turn %s could not be stored: %s", turn.turn_id, error)
            if not track.error:
                turn.emit(Failed(error.code, error.message, error.hint))
        turn.emit(TurnDone(stop))
        await turn.timeline.close()
        return SendOutcome(
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            answer=answer,
            citations=result.citations if result is not None else (),
            usage=usage,
            stop_reason=stop,
            error=(result.error if result is not None else "") or track.error,
        )


class _Track:
    """Watches a turn's own events for what must be known when it is cancelled."""

    def __init__(self, emit: Any) -> None:
        self._emit = emit
        self.usage = TurnUsage()
        self.answer = ""
        self.error = ""

    def emit(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            self.usage = TurnUsage(event.input, event.output, event.cached, event.estimated, event.cost)
        elif isinstance(event, MessageDelta):
            self.answer += event.text
        elif isinstance(event, ToolStarted):
            self.answer = ""
        elif isinstance(event, Failed):
            self.error = event.message
        self._emit(event)


def _user(request: SendRequest, turn_id: str, *, added: str = "", steer: bool = False) -> Message:
    content, tainted = user_message(request.text, request.context, added=added)
    meta: dict[str, Any] = {"text": request.text}
    if steer:
        meta["steer"] = True
    if tainted:
        meta["taintSource"] = "selected text of a folder that is not trusted"
    return Message("user", content, tainted=tainted, turn_id=turn_id, meta=meta)


def _extra(request: SendRequest) -> dict[str, Any]:
    context = request.context
    if context is None:
        return {}
    return {"path": context.path, "citeKeys": list(context.cite_keys), "line": context.start_line}


def _sum(a: TurnUsage, b: TurnUsage) -> TurnUsage:
    cost = None if a.cost is None and b.cost is None else (a.cost or 0.0) + (b.cost or 0.0)
    return TurnUsage(a.input + b.input, a.output + b.output, a.cached + b.cached, a.estimated or b.estimated, cost)

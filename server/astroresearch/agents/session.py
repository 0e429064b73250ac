"""Sessions: opening and resuming them, one turn at a time each, queueing, steering, cancelling, and looking back at them.

`SessionManager` runs every turn inside its own task group (`async with manager:`), so that nothing outlives the server's
scope, and a cancel returns only when no task of the turn is alive.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import anyio
import anyio.abc

from astroresearch.agents.audit import Audit, AuditedGate
from astroresearch.agents.export import shown, to_markdown
from astroresearch.agents.frontend import FrontEnd
from astroresearch.agents.parts import EngineParts
from astroresearch.agents.prompt import title_of
from astroresearch.agents.questions import QuestionDesk
from astroresearch.agents.redact import Redactor
from astroresearch.agents.repair import closing_events
from astroresearch.agents.request import AgentSettings, EditorContext, SendOutcome, SendRequest, Sink
from astroresearch.agents.skills import SkillLibrary
from astroresearch.agents.subagent import SubagentSpawner
from astroresearch.agents.todos import Todos
from astroresearch.agents.turns import Job, Runtime, Steer, TurnRunner
from astroresearch.domain.plain import plain
from astroresearch.domain.session import SessionRecord
from astroresearch.engine.events import Noticed, StopReason
from astroresearch.engine.hooks import Hook, HookInput, HookOutput, Hooks
from astroresearch.engine.model import Model
from astroresearch.engine.permissions import Grant, PermissionGate
from astroresearch.engine.tool import Registry
from astroresearch.engine.turn import ResultStore
from astroresearch.errors import AstroResearchError, Conflict, InvalidInput, NotFound
from astroresearch.store.audit import AuditStore
from astroresearch.store.sessions import SessionStore

__all__ = ["AgentSettings", "EditorContext", "SendOutcome", "SendRequest", "SessionManager", "Sink"]

MAX_QUEUED = 20
_EVERY = "*"
_log = logging.getLogger(__name__)


class SessionManager:
    """All sessions of one server: `async with manager:` opens it, leaving it ends every turn.

    Methods raise `NotFound` for an unknown session and `Conflict` for one that another window is continuing.

    Args:
        sessions: Where everything is stored.
        models: The model of that name, or the active one for None; raises `ModelError` or `InvalidInput`.
        registry: The main agent's tools.
        hooks: The user's hooks.
        results: Where long results go.
        front_end: How the user is asked.
        skills: What `load_skill` knows.
        settings: What is the same for all turns.
        audit: Where the audit log is kept; None: nowhere.
    """

    def __init__(
        self,
        *,
        sessions: SessionStore,
        models: Callable[[str | None], Model],
        registry: Registry,
        hooks: Hooks,
        results: ResultStore,
        front_end: FrontEnd,
        skills: SkillLibrary,
        settings: AgentSettings | None = None,
        audit: AuditStore | None = None,
    ) -> None:
        self._sessions = sessions
        self._models = models
        self._settings = settings = settings or AgentSettings()
        self._front_end = front_end
        self.redactor = Redactor(settings.secrets)
        self._parts = EngineParts(
            sessions, registry, hooks, results, settings.limits, self.redactor, prices=settings.prices
        )
        hooks.add(Hook("PostToolUse", self._hide_secrets, name="redactor"))
        hooks.add(Hook("PostToolUseFailure", self._hide_secrets, name="redactor"))
        running = self._parts.running
        self._audit = Audit(audit, self.redactor, running)
        for hook in self._audit.hooks():
            hooks.add(hook)
        self.questions = QuestionDesk(running, front_end, timeout_s=settings.question_timeout_s)
        "For `ToolServices.questions`."
        self.todos = Todos(sessions, running)
        "For `ToolServices.todos`."
        self.spawner = SubagentSpawner(
            self._parts, lambda root: self._runtime(root).gate, lambda: tuple(skills.index())
        )
        "For `ToolServices.spawner`."
        self._owner = secrets.token_hex(8)
        self._turns = TurnRunner(self._parts, self._owner, lambda: tuple(skills.index()))
        self._runtimes: dict[str, Runtime] = {}
        self._group: anyio.abc.TaskGroup | None = None

    def use(self, services: Any) -> None:
        """What tools get (`tools.ports.ToolServices`); before the first `send`."""
        self._parts.services = services

    def configure(self, settings: AgentSettings) -> None:
        """New settings: limits from a session's next turn on, rules at once; what the user has allowed stays allowed."""
        self._settings = settings
        self.redactor.learn(settings.secrets)
        self._parts.limits = settings.limits
        self._parts.prices = settings.prices
        self.questions.timeout_s = settings.question_timeout_s
        for runtime in self._runtimes.values():
            runtime.gate.configure(settings.rules, self._kept(runtime.gate.grants), settings.on_grant)

    async def __aenter__(self) -> SessionManager:
        """Opens the task group in which turns run."""
        self._group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Cancels what runs and waits for its end."""
        group, self._group = self._group, None
        if group is None:
            return None
        for runtime in list(self._runtimes.values()):
            self._stop(runtime)
        group.cancel_scope.cancel()
        return await group.__aexit__(kind, error, trace)

    async def send(self, request: SendRequest, sink: Sink) -> SendOutcome:
        """Runs one turn and returns when it has ended, or queues it behind the running one and returns at once.

        The user's message is on disk before the model is called. Cancelling the caller's scope cancels the turn and
        raises on when it has ended.

        Raises:
            NotFound: There is no session of this id.
            Conflict: Another window is continuing it, or too many messages wait.
            InvalidInput: The text is empty.
            ModelError: There is no model of that name.
        """
        if not request.text.strip():
            raise InvalidInput("The message is empty.", field="text")
        if self._group is None:
            raise Conflict("The server is shutting down.")
        request = self._clean(request)
        model = self._models(request.model)
        record, created = await self._open(request)
        runtime = self._runtime(record.id)
        if runtime.current is not None and runtime.timeline is not None and runtime.timeline.done and not runtime.queue:
            await runtime.current.finished.wait()  # it has said `done`: for the user that turn is over
        if request.steer and runtime.working and runtime.timeline is not None:
            outcome = await self._steer(runtime, request)
            if outcome is not None:
                return outcome
        return await self._enqueue(runtime, Job(request, sink, model, created=created))

    async def _enqueue(self, runtime: Runtime, job: Job) -> SendOutcome:
        if self._group is None:
            raise Conflict("The server is shutting down.")
        if len(runtime.queue) >= MAX_QUEUED:
            raise Conflict(f"{MAX_QUEUED} messages wait already.", hint="Wait for the answers, or cancel.")
        runtime.queue.append(job)
        if runtime.working:
            job.waited = True
            position = len(runtime.queue)
            try:
                await self._acknowledge(runtime, f"Queued: {job.request.text}")
            except anyio.get_cancelled_exc_class():  # its sender took it back
                job.scope.cancel()
                raise
            return SendOutcome(runtime.session_id, job.turn_id, queued=True, position=position)
        runtime.working = True
        self._group.start_soon(self._work, runtime)
        return await self._finished(runtime, job)

    async def cancel(self, session_id: str) -> bool:
        """Stops the running turn and gives its queued messages back; True if there was one. Returns when it is over."""
        runtime = self._runtimes.get(session_id)
        if runtime is None or not runtime.working:
            return False
        jobs = [job for job in (runtime.current, *runtime.queue) if job is not None]
        self._stop(runtime)
        for job in jobs:
            await job.finished.wait()
        return True

    def answer(self, question_id: str, *, choice: str = "", text: str = "") -> bool:
        """Answers a permission (`choice`: once, session, workspace, deny) or a question; False if it no longer waits."""
        return self.questions.answer(question_id, choice, text)

    def grants(self, session_id: str) -> tuple[Grant, ...]:
        """What the user has allowed in this session since it was opened here."""
        runtime = self._runtimes.get(session_id)
        return tuple(g for g in runtime.gate.grants if g.agent != _EVERY) if runtime is not None else ()

    def revoke(self, session_id: str, rule: str) -> bool:
        """Takes one of them back, from the next call on; True if there was one."""
        runtime = self._runtimes.get(session_id)
        return runtime is not None and runtime.gate.revoke(rule)

    def all_grants(self) -> Sequence[tuple[str, Grant]]:
        """(session id, grant) of everything that was allowed in this window; those of the workspace are not repeated."""
        return [(id_, grant) for id_ in self._runtimes for grant in self.grants(id_)]

    async def revoke_everywhere(self, rule: str) -> bool:
        """Takes a rule back in all sessions of this window, also from turns that run; True if it held anywhere."""
        held = rule in self._settings.granted
        kept = tuple(r for r in self._settings.granted if r != rule)
        self._settings = dataclasses.replace(self._settings, granted=kept)
        for session_id, runtime in list(self._runtimes.items()):
            if runtime.gate.revoke(rule):
                held = True
                await self._audit.add(session_id, "user", "revoke", {"rule": rule})
        return held

    async def audit(self, session_id: str, limit: int = 1_000) -> Sequence[dict[str, Any]]:
        """The newest entries of a session's audit log as plain JSON, oldest first; a deleted session keeps its own."""
        entries = await self._audit.list(session_id, limit)
        if not entries:
            await self._record(session_id)
        return [plain(entry) for entry in entries]

    def is_running(self, session_id: str) -> bool:
        """Whether a turn runs or waits in this session, in this window."""
        runtime = self._runtimes.get(session_id)
        return runtime is not None and runtime.working

    async def list(self, limit: int = 50, offset: int = 0) -> Sequence[dict[str, Any]]:
        """Sessions of the user as plain JSON, newest first, with `running`."""
        return [self._shown(record) for record in await self._sessions.list(limit, offset)]

    async def get(self, session_id: str) -> dict[str, Any]:
        """A session as plain JSON with its `messages` and its plan, `tasks`."""
        record = await self._record(session_id)
        messages = [shown(m) for m in await self._sessions.messages(session_id) if m.role != "system"]
        tasks = [dict(item) for item in await self._sessions.todos(session_id)]
        return {**self._shown(record), "messages": messages, "tasks": tasks}

    async def events(
        self, session_id: str, from_seq: int = 0, limit: int = 5_000, *, last: bool = False
    ) -> tuple[Sequence[dict[str, Any]], int]:
        """The timeline as it was sent, and the next `seq`.

        Where a crash cut a turn off, its end is shown as the next message will store it; looking stores nothing.
        """
        await self._record(session_id)
        found = await self._sessions.events(session_id, from_seq, limit, last=limit if last else 0)
        next_seq = await self._sessions.next_seq(session_id)
        if self.is_running(session_id) or not next_seq or (found and found[-1]["seq"] + 1 < next_seq):
            return found, next_seq
        newest = await self._sessions.events(session_id, last=5_000)
        if newest and newest[-1]["type"] != "done" and not await self._held_elsewhere(session_id):
            closing = closing_events(newest, next_seq)
            return [*found, *(e for e in closing if e["seq"] >= from_seq)], next_seq + len(closing)
        return found, next_seq

    async def rename(self, session_id: str, title: str) -> dict[str, Any]:
        """Gives it a title."""
        if not title.strip():
            raise InvalidInput("The title is empty.", field="title")
        await self._record(session_id)
        await self._sessions.rename(session_id, title.strip())
        return self._shown(await self._record(session_id))

    async def delete(self, session_id: str) -> bool:
        """Cancels what runs and removes it with its subagents' sessions; False if there is none."""
        await self.cancel(session_id)
        if await self._held_elsewhere(session_id):
            raise Conflict("Another window is continuing this session.", hint="Wait for its answer, then delete it.")
        self._runtimes.pop(session_id, None)
        return await self._sessions.delete(session_id)

    async def export(self, session_id: str) -> str:
        """The conversation as Markdown."""
        record = await self._record(session_id)
        return to_markdown(record, await self._sessions.messages(session_id))

    async def _hide_secrets(self, given: HookInput) -> HookOutput:
        """What tools found goes to a model, so a secret in it is replaced as well."""
        output = str(given.payload.get("tool_output", ""))
        clean = self.redactor.text(output)
        return HookOutput(updated_output=clean) if clean != output else HookOutput()

    def _clean(self, request: SendRequest) -> SendRequest:
        """Without secrets: not even the model gets one that the user pasted."""
        context = request.context
        if context is not None:
            context = dataclasses.replace(context, selection=self.redactor.text(context.selection))
        return dataclasses.replace(request, text=self.redactor.text(request.text), context=context)

    def _shown(self, record: SessionRecord) -> dict[str, Any]:
        body: dict[str, Any] = plain(record)
        return {**body, "running": self.is_running(record.id)}

    async def _record(self, session_id: str) -> SessionRecord:
        record = await self._sessions.get(session_id)
        if record is None:
            raise NotFound(f"There is no session {session_id}.", hint="It may have been deleted; start a new one.")
        return record

    async def _open(self, request: SendRequest) -> tuple[SessionRecord, bool]:
        if request.session_id is None:
            return await self._sessions.create(title_of(request.text), workspace=self._settings.workspace), True
        return await self._record(request.session_id), False

    def _runtime(self, session_id: str) -> Runtime:
        runtime = self._runtimes.get(session_id)
        if runtime is None:
            runtime = self._runtimes[session_id] = Runtime(session_id, self._gate(session_id))
        return runtime

    def _gate(self, session_id: str) -> PermissionGate:
        settings, asker = self._settings, self.questions.asker(session_id)
        return AuditedGate(settings.rules, asker, self._audit, on_grant=settings.on_grant, grants=self._kept(()))

    def _kept(self, before: Sequence[Grant]) -> tuple[Grant, ...]:
        """What is allowed now: what is stored for the workspace, and what was allowed in this session before."""
        settings = self._settings
        stored = [Grant(rule, _EVERY, "workspace") for rule in settings.granted]
        # One for the workspace that is stored no longer was taken back in another window or in the file.
        lost = {g for g in before if g.scope == "workspace" and settings.on_grant and g.rule not in settings.granted}
        kept = [g for g in before if g.agent != _EVERY and g not in lost]
        return (*stored, *kept)

    async def _finished(self, runtime: Runtime, job: Job) -> SendOutcome:
        try:
            await job.finished.wait()
        except anyio.get_cancelled_exc_class():
            job.scope.cancel()
            self.questions.withdraw(runtime.session_id)
            with anyio.CancelScope(shield=True):
                await job.finished.wait()
            raise
        if job.failure is not None:
            raise job.failure
        assert job.outcome is not None
        return job.outcome

    async def _steer(self, runtime: Runtime, request: SendRequest) -> SendOutcome | None:
        """Waits until the running turn has read it; None where it ended before, and the message needs a turn of its own."""
        steer = Steer(request)
        runtime.steering.waiting.append(steer)
        turn_id = runtime.current.turn_id if runtime.current is not None else ""
        await self._acknowledge(runtime, f"Sent to the running turn: {request.text}")
        try:
            await steer.settled.wait()
        finally:
            if steer in runtime.steering.waiting:
                runtime.steering.waiting.remove(steer)
        if steer.end == "late":
            return None
        stop: StopReason = "cancelled" if steer.end == "cancelled" else "end_turn"
        return SendOutcome(runtime.session_id, turn_id, stop_reason=stop, queued=steer.end == "read", steered=True)

    async def _acknowledge(self, runtime: Runtime, text: str) -> None:
        """Shows in the running turn what was said to it, and keeps it there whatever happens to this process."""
        timeline = runtime.timeline
        if timeline is not None and not timeline.done:
            timeline.emitter("main")(Noticed("info", text))
            await timeline.save()

    def _stop(self, runtime: Runtime) -> None:
        """Cancels the running turn and those that wait behind it; also what was said to the running turn waits no more."""
        for steer in runtime.steering.settle("cancelled"):
            if runtime.timeline is not None and not runtime.timeline.done:
                runtime.timeline.emitter("main")(
                    Noticed("warning", f"Cancelled before it was read: {steer.request.text}")
                )
        for job in (runtime.current, *runtime.queue):
            if job is not None:
                job.scope.cancel()
        self.questions.withdraw(runtime.session_id)

    async def _work(self, runtime: Runtime) -> None:
        """Runs what waits, one after the other, under the session's lease; a sender hears of the end when it is given back."""
        held = False
        try:
            while runtime.queue:
                job = runtime.current = runtime.queue.popleft()
                try:
                    held = held or await self._acquire(runtime.session_id)
                    await self._one(runtime, job)
                except AstroResearchError as error:
                    job.failure = error
                    if job.waited:
                        await self._turns.apologise(runtime.session_id, job, error)
                runtime.current = None
                if held and not runtime.queue:
                    held = False
                    await self._release(runtime.session_id)
                runtime.working = bool(runtime.queue)
                job.finished.set()
        finally:
            runtime.working = False
            self._abandon(runtime, *filter(None, [runtime.current]))
            runtime.current = None
            if held:
                await self._release(runtime.session_id)

    async def _acquire(self, session_id: str) -> bool:
        if not await self._sessions.acquire_lease(session_id, self._owner):
            raise Conflict(
                "Another window is continuing this session; here it can only be read.",
                hint="Wait for its answer there, or start a new session.",
            )
        return True

    async def _one(self, runtime: Runtime, job: Job) -> None:
        try:
            record = await self._record(runtime.session_id)
            if job.scope.cancel_called and job.waited:
                await self._turns.refuse(runtime, job, record)
            else:
                await self._turns.run(runtime, job, record, silent=self._front_end.silent)
        finally:
            runtime.steering.settle("late")

    def _abandon(self, runtime: Runtime, *jobs: Job) -> None:
        """Tells senders that the server ends."""
        for job in (*jobs, *runtime.queue):
            if job.outcome is None and job.failure is None:
                job.failure = Conflict("The server is shutting down.")
            job.finished.set()
        runtime.queue.clear()

    async def _release(self, session_id: str) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._sessions.release_lease(session_id, self._owner)
            except AstroResearchError as error:
                _log.warning("The lease of %s could not be given back: %s", session_id, error)

    async def _held_elsewhere(self, session_id: str) -> bool:
        if self.is_running(session_id):
            return False
        if not await self._sessions.acquire_lease(session_id, self._owner):
            return True
        await self._release(session_id)
        return False

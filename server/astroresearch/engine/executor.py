"""Runs the calls of one step and answers each of them exactly once, whatever happens.

The order of a call: validate → `ToolStarted` → `PreToolUse` → permission → row `tool_started` → run → `PostToolUse` → row
`tool_finished` → `ToolFinished` → the model. All calls of a step are announced first; results are handled as they come and
handed back in call order. This file holds the engine's only `except Exception`: a failing tool is an answer, not a crash.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.lowlevel

from astroresearch import crash
from astroresearch.engine import arguments, untrusted
from astroresearch.engine.duplicates import REFUSE_AT, Duplicates, canonical
from astroresearch.engine.events import Noticed, ToolFinished, ToolProgressed, ToolStarted, ToolStatus
from astroresearch.engine.history import missing_result
from astroresearch.engine.hooks import HookEvent, HookInput, HookOutput, Hooks
from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.permissions import PermissionGate
from astroresearch.engine.tool import AnyTool, ReadState, Registry, ToolContext, ToolOutput
from astroresearch.engine.turn import Emit, Limits, ResultStore, TurnLog, TurnStart
from astroresearch.errors import AstroResearchError, InvalidInput

_PREVIEW_CHARS = 300


@dataclass(frozen=True)
class Surroundings:
    """What the calls of all turns share."""

    registry: Registry
    permissions: PermissionGate
    hooks: Hooks
    log: TurnLog
    emit: Emit
    results: ResultStore
    limits: Limits
    services: Any
    reads: dict[str, ReadState]


@dataclass
class _End:
    """How a call ended, before it is put into words for the model."""

    status: ToolStatus
    content: str
    output: ToolOutput | None = None
    added: list[str] = field(default_factory=list)
    "Our own remarks, after the result."


@dataclass
class _Running:
    """One call of the step."""

    call: ToolCall
    key: str = ""
    tool: AnyTool | None = None
    parsed: arguments.Parsed | None = None
    title: str = ""
    after: list[_Running] = field(default_factory=list)
    "Calls that must end before this one may begin."
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    announced_at: float = field(default_factory=time.monotonic)
    began: bool = False
    aborted_by: str = ""
    progress: str = ""
    end: _End | None = None
    message: Message | None = None


class Executor:
    """The calls of one turn, step by step."""

    def __init__(
        self, around: Surroundings, start: TurnStart, *, taint: untrusted.Taint, duplicates: Duplicates, nonce: str
    ) -> None:
        self._around = around
        self._start = start
        self._taint = taint
        self._duplicates = duplicates
        self._nonce = nonce
        self._slots = anyio.Semaphore(max(1, around.limits.max_concurrent_tools))
        self._fatal: AstroResearchError | None = None
        self.calls: list[tuple[str, str]] = []
        "(tool, status) of every call so far."
        self.citations: list[Mapping[str, Any]] = []
        self.ends_turn = False

    async def run(self, calls: Sequence[ToolCall], *, step: int, truncated: bool = False) -> list[Message]:
        """Runs them and returns their results in call order; all are in the log by then.

        Cancelled from outside, it ends and records every call before the cancellation goes on.

        Args:
            calls: Of one assistant message, which is stored already.
            step: From 1.
            truncated: The message was cut by the output limit: nothing runs.

        Raises:
            AstroResearchError: A result could not be stored.
        """
        running = [_Running(call) for call in calls]
        for one in running:
            one.end = await self._guarded(self._prepare(one, truncated))
            self._announce(one, step)
        _order(running)
        try:
            async with anyio.create_task_group() as group:
                for one in running:
                    group.start_soon(self._one, one, running, group.cancel_scope)
        finally:
            with anyio.CancelScope(shield=True):
                for one in running:  # tasks that were cancelled before they began
                    await self._record(one, running)
        if self._fatal is not None:
            raise self._fatal
        return [self._taken(one) for one in running if one.message is not None]

    async def _prepare(self, one: _Running, truncated: bool) -> _End | None:
        call = one.call
        one.key = call.arguments
        one.tool = self._around.registry.get(call.name)
        if truncated:
            return _End(
                "failed", f"The answer was cut by the output limit, so `{call.name}` did not run. Ask for less at once."
            )
        if one.tool is None:
            names = ", ".join(self._around.registry.names())
            return _End("failed", f"There is no tool `{untrusted.clean(call.name)[:80]}`. The tools are: {names}.")
        one.parsed = arguments.parse(one.tool, call.arguments)
        one.key = canonical(one.parsed.raw)
        one.title = one.tool.title(one.parsed.args)
        return None

    def _announce(self, one: _Running, step: int) -> None:
        name = one.tool.name if one.tool else untrusted.clean(one.call.name)[:80]
        kind = one.tool.kind if one.tool else "other"
        shown = untrusted.plain(one.parsed.raw) if one.parsed else {}
        self._around.emit(ToolStarted(one.call.id, name, kind, shown, step, untrusted.clean(one.title)))

    async def _one(self, one: _Running, all_: Sequence[_Running], group: anyio.CancelScope) -> None:
        try:
            with one.scope:
                for earlier in one.after:
                    await earlier.done.wait()
                if one.end is None:
                    one.end = await self._guarded(self._work(one))
        finally:
            with anyio.CancelScope(shield=True):
                await self._record(one, all_)
            if self._fatal is not None:
                group.cancel()

    async def _guarded(self, work: Awaitable[_End | None]) -> _End | None:
        try:
            return await work
        except AstroResearchError as error:
            return _End("failed", str(error))
        except Exception as error:  # noqa: BLE001 - the one place: a failing tool is an answer
            found: BaseException = error
            while isinstance(found, BaseExceptionGroup) and found.exceptions:
                found = found.exceptions[0]
            said = str(found) if isinstance(found, AstroResearchError) else f"{type(found).__name__}: {found}"
            return _End("failed", f"The tool failed. {said}"[:2_000])

    async def _work(self, one: _Running) -> _End:
        tool, parsed = one.tool, one.parsed
        assert tool is not None
        assert parsed is not None
        if self._duplicates.refuses(tool.name, one.key):
            return _End(
                "failed", f"Refused at time {REFUSE_AT}: the same call keeps giving the same result. It did not run."
            )
        hook = await self._hook("PreToolUse", tool, {"tool_call_id": one.call.id, "tool_input": parsed.raw})
        if hook.updated_input is not None:
            parsed = one.parsed = arguments.fit(tool, hook.updated_input)
            self._around.emit(Noticed("info", f"A hook changed the input of `{tool.name}`."))
        context = self._context(one)
        verdict = await self._around.permissions.decide(
            tool, parsed.args, context, taint=self._taint, emit=self._around.emit, mode=self._start.mode, hook=hook
        )
        if not verdict.allowed:
            return _End("denied", verdict.text)
        async with self._slots:
            await self._around.log.tool_started(one.call, parsed.raw, tool.effect)
            await anyio.lowlevel.checkpoint_if_cancelled()  # a shielded call must not begin after the cancel
            one.began = True
            one.end = await self._guarded(self._execute(one, tool, parsed, context))
        assert one.end is not None
        one.end.added += [hook.context] if hook.context else []
        return await self._after(one.call, one.end, tool, parsed)

    async def _execute(self, one: _Running, tool: AnyTool, parsed: arguments.Parsed, context: ToolContext[Any]) -> _End:
        seconds = tool.timeout_s if tool.timeout_s is not None else self._around.limits.tool_timeout_s
        output: ToolOutput | None = None
        with anyio.move_on_after(seconds, shield=tool.interrupt_behavior == "block"):
            crash.point("tool.running")
            try:
                output = await tool.execute(parsed.args, context)
            except anyio.get_cancelled_exc_class():
                if anyio.current_effective_deadline() != float(
                    "-inf"
                ):  # nobody wanted that: something inside broke off
                    raise InvalidInput(f"`{tool.name}` broke off by itself.") from None
                raise
        if output is None:
            more = "" if tool.effect == "none" else " Its side effects are unknown; check before you retry."
            return _End("failed", f"`{tool.name}` did not finish within {seconds:g} s and was stopped.{more}")
        return _End("failed" if output.is_error else "completed", output.content, output)

    async def _after(self, call: ToolCall, end: _End, tool: AnyTool, parsed: arguments.Parsed) -> _End:
        event: HookEvent = "PostToolUse" if end.status == "completed" else "PostToolUseFailure"
        payload = {
            "tool_call_id": call.id,
            "tool_input": parsed.raw,
            "tool_output": end.content,
            "is_error": end.status != "completed",
        }
        hook = await self._hook(event, tool, payload)
        if hook.updated_output is not None:
            end.content = hook.updated_output
        if hook.context:
            end.added.append(hook.context)
        return end

    async def _hook(self, event: HookEvent, tool: AnyTool, payload: Mapping[str, Any]) -> HookOutput:
        given = HookInput(event, self._start.session_id, self._start.agent, {"tool_name": tool.name, **payload})
        output = await self._around.hooks.fire(given)
        if output.warning:
            self._around.emit(Noticed("warning", output.warning))
        return output

    def _context(self, one: _Running) -> ToolContext[Any]:
        def progress(text: str, fraction: float | None = None) -> None:
            if one.end is None and one.message is None:
                one.progress = text
                self._around.emit(ToolProgressed(one.call.id, untrusted.clean(text), fraction))

        return ToolContext(
            services=self._around.services,
            session_id=self._start.session_id,
            turn_id=self._start.turn_id,
            agent=self._start.agent,
            call_id=one.call.id,
            silent=self._start.silent,
            tainted=self._taint.context,
            taint_sources=tuple(self._taint.sources),
            thinking=self._start.thinking,
            depth=self._start.depth,
            reads=self._around.reads,
            progress=progress,
            extra=self._start.extra,
        )

    async def _record(self, one: _Running, all_: Sequence[_Running]) -> None:
        """Puts the end into the log and the timeline, once; runs shielded."""
        if one.message is not None:
            return
        end = one.end = one.end or _cut_off(one)
        one.message = await self._worded(one, end)
        try:
            await self._around.log.tool_finished(one.call, one.message)
        except AstroResearchError as error:
            self._fatal = self._fatal or error
        metadata = untrusted.plain(end.output.metadata) if end.output else {}
        preview = untrusted.clean(end.content)[:_PREVIEW_CHARS]
        took = round((time.monotonic() - one.announced_at) * 1_000)
        failed = end.status != "completed"
        self._around.emit(ToolFinished(one.call.id, end.status, preview, failed, metadata, took))
        one.done.set()
        if one.began and end.status == "failed" and one.tool is not None and one.tool.causes_sibling_abort:
            for other in all_:
                if other.end is None:
                    other.aborted_by = one.tool.name
                    other.scope.cancel()

    async def _worded(self, one: _Running, end: _End) -> Message:
        """The result message as the model gets it."""
        tool, output = one.tool, end.output
        tainted = False
        if one.began and tool is not None and end.status in ("completed", "failed"):
            says = output.tainted if output is not None else None
            tainted = tool.reads_untrusted if says is None else says
        name = tool.name if tool else one.call.name
        added = list(end.added)
        if end.status in ("completed", "failed", "denied"):
            changes = end.status == "completed" and tool is not None and tool.effect not in ("none", "egress")
            added.append(self._duplicates.record(name, one.key, f"{end.status}\n{end.content}", changes=changes))
        if one.parsed is not None and one.parsed.unknown:
            added.append(f"Unknown arguments were ignored: {', '.join(map(repr, one.parsed.unknown))[:300]}.")
        content = untrusted.clean(end.content) if tainted else untrusted.sane(end.content)
        content = await self._shortened(content, one, name) if content.strip() else "(no output)"
        source = (output.taint_source if output else "") or one.title or name
        if tainted:
            content = untrusted.wrap(content, self._nonce, source)
        text = "\n\n".join([content, *(untrusted.sane(a) for a in added if a)])
        meta: dict[str, Any] = {"metadata": untrusted.plain(output.metadata)} if output else {}
        if tainted:
            meta["taintSource"] = untrusted.clean(source)
        return Message(
            "tool", text, tool_call_id=one.call.id, name=name, status=end.status, tainted=tainted,
            turn_id=self._start.turn_id, meta=meta,
        )  # fmt: skip

    async def _shortened(self, content: str, one: _Running, name: str) -> str:
        own = one.tool.max_result_chars if one.tool else None
        limit = own if own is not None else self._around.limits.max_result_chars
        if len(content) <= limit:
            return content
        try:
            return await self._around.results.persist(content, tool=name, call_id=one.call.id)
        except (AstroResearchError, OSError) as error:
            half = max(1, limit // 2)
            left = len(content) - 2 * half
            return f"{content[:half]}\n[… {left} characters are left out; they could not be kept: {error} …]\n{content[-half:]}"

    def _taken(self, one: _Running) -> Message:
        """What the turn learns from a result once the whole step is over: the model saw none of them before."""
        message = one.message
        assert message is not None
        self._taint.see(message, self._start.turn_id)
        self.calls.append((message.name, message.status))
        output = one.end.output if one.end else None
        self.ends_turn = self.ends_turn or bool(output and output.ends_turn)
        for citation in message.meta.get("metadata", {}).get("citations", ()):
            if isinstance(citation, Mapping) and citation not in self.citations:
                self.citations.append(citation)
        return message


def _cut_off(one: _Running) -> _End:
    """The end of a call that a cancel or a failed sibling stopped."""
    name = one.tool.name if one.tool else one.call.name
    if not one.began:
        if one.aborted_by:
            return _End("cancelled", f"`{name}` did not run, because `{one.aborted_by}` of the same step failed.")
        return _End("cancelled", missing_result(replace(one.call, name=name), "cancelled").content)
    by = f"because `{one.aborted_by}` of the same step failed" if one.aborted_by else "by the user"
    known = (
        "It changes nothing."
        if one.tool and one.tool.effect == "none"
        else "Its side effects are unknown; check before you retry."
    )
    partial = f" Last report: {one.progress}" if one.progress else ""
    return _End("interrupted", f"Interrupted: `{name}` was stopped {by} while it ran. {known}{partial}")


def _order(running: Sequence[_Running]) -> None:
    """Says which earlier calls each one must wait for."""
    traits: list[tuple[_Running, bool, frozenset[str] | None]] = []
    for one in running:
        if one.tool is None or one.parsed is None or one.end is not None:
            continue
        safe = one.tool.is_concurrency_safe(one.parsed.args)
        names = one.tool.resources(one.parsed.args)
        one.after = [other for other, its_safe, its_names in traits if _collide(safe, names, its_safe, its_names)]
        traits.append((one, safe, names))


def _collide(safe: bool, names: frozenset[str] | None, other_safe: bool, other_names: frozenset[str] | None) -> bool:
    if safe and other_safe:
        return False
    if names is not None and other_names is not None:
        return bool(names & other_names)
    return not (safe or other_safe)

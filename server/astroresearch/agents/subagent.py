"""Subagents: the one engine again, with a context, a session and a name of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from astroresearch.agents.parts import EngineParts
from astroresearch.agents.prompt import subagent_prompt, title_of
from astroresearch.agents.running import LiveTurn
from astroresearch.domain.skill import SkillInfo
from astroresearch.engine.events import Noticed, SubagentFinished, SubagentStarted, ToolStatus
from astroresearch.engine.hooks import HookInput
from astroresearch.engine.messages import Message, new_call_id
from astroresearch.engine.permissions import PermissionGate
from astroresearch.engine.tool import Registry, ToolContext
from astroresearch.engine.turn import SubagentReport, TurnResult, TurnStart
from astroresearch.errors import InvalidInput, NotAllowed

MAX_STEPS = 10
MAX_SPAWNS = 20
"Subagents of one turn."
_NEVER = ("subagent", "ask_user")
_WRITES = ("workspace_write", "exec", "memory")
_STATUS: dict[str, ToolStatus] = {"error": "failed", "cancelled": "cancelled", "interrupted": "interrupted"}


class SubagentSpawner:
    """Fits `tools.ports.Spawner`. A subagent asks through its parent's front end and can never approve anything itself."""

    def __init__(
        self, parts: EngineParts, gate_of: Callable[[str], PermissionGate], skills: Callable[[], tuple[SkillInfo, ...]]
    ) -> None:
        self._parts = parts
        self._gate_of = gate_of
        self._skills = skills

    async def spawn(
        self, task: str, *, name: str, max_steps: int, context: ToolContext[Any], read_only: bool = True
    ) -> SubagentReport:
        """Runs it to its end; cancelled with the call that asked for it.

        Raises:
            NotAllowed: A subagent asks for another one, or too many were started in this turn.
        """
        parent = self._parts.running.find(context.session_id)
        if parent is None:
            raise InvalidInput("The turn that asked for a subagent is over.")
        if context.depth > 0 or parent.session_id != parent.root_id:
            raise NotAllowed("A subagent can't start another one.")
        if parent.spawned >= MAX_SPAWNS:
            raise NotAllowed(
                f"This turn has started {MAX_SPAWNS} subagents already.", hint="Go on without another one."
            )
        parent.spawned += 1
        child = await self._child(parent, task, name)
        self._parts.running.add(child)
        event_id = context.call_id or new_call_id()
        parent.emit(SubagentStarted(event_id, child.agent, task))
        status: ToolStatus = "cancelled"
        summary = ""
        try:
            await self._fire("SubagentStart", parent, child)
            result = await self._run(child, task, max_steps, context, read_only=read_only)
            status = _STATUS.get(result.stop_reason, "completed")
            summary = result.answer or result.error
            await self._parts.sessions.finish_turn(
                child.session_id, child.turn_id, result.stop_reason, result.usage, summary
            )
        finally:
            self._parts.running.remove(child)
            parent.emit(SubagentFinished(event_id, status, summary[:500]))
        await self._fire("SubagentStop", parent, child)
        return SubagentReport(summary, status, result.steps, result.calls, child.session_id, result.tainted)

    async def _child(self, parent: LiveTurn, task: str, name: str) -> LiveTurn:
        agent, number = name, 2
        while agent in parent.names:
            agent, number = f"{name}-{number}", number + 1
        parent.names.add(agent)
        record = await self._parts.sessions.create(title_of(task), parent=parent.root_id, agent=agent)
        return LiveTurn(
            session_id=record.id,
            root_id=parent.root_id,
            turn_id=parent.turn_id,
            agent=agent,
            timeline=parent.timeline,
            emit=parent.timeline.emitter(agent),
            model=parent.model,
            scope=parent.scope,
            mode=parent.mode,
            thinking=parent.thinking,
            extra=parent.extra,
        )

    async def _run(
        self, child: LiveTurn, task: str, max_steps: int, context: ToolContext[Any], *, read_only: bool
    ) -> TurnResult:
        source = ", ".join(context.taint_sources) or "text that its parent read"
        meta = {"text": task, "taintSource": source} if context.tainted else {"text": task}
        history = (
            Message("system", subagent_prompt(self._skills()), turn_id=child.turn_id),
            Message("user", task, tainted=context.tainted, turn_id=child.turn_id, meta=meta),
        )
        for message in history:
            await self._parts.sessions.append(child.session_id, message, durable=False, agent=child.agent)
        limits = self._parts.limits
        engine = self._parts.engine(
            child,
            self._gate_of(child.root_id),
            {},
            registry=offered(self._parts.registry, read_only=read_only),
            limits=dataclasses.replace(
                limits, max_steps=min(max_steps, MAX_STEPS), max_turn_tokens=max(limits.max_turn_tokens // 4, 1)
            ),
        )
        return await engine.run(
            TurnStart(
                session_id=child.session_id,
                turn_id=child.turn_id,
                history=history,
                agent=child.agent,
                thinking=child.thinking,
                silent=context.silent,
                depth=context.depth + 1,
                mode=child.mode,
                extra=child.extra,
            )
        )

    async def _fire(self, event: Any, parent: LiveTurn, child: LiveTurn) -> None:
        output = await self._parts.hooks.fire(
            HookInput(event, parent.root_id, child.agent, {"parent": parent.agent, "child_session": child.session_id})
        )
        if output.warning:
            parent.emit(Noticed("warning", output.warning))


def offered(registry: Registry, *, read_only: bool) -> Registry:
    """What a subagent gets of its parent's tools: never another subagent, never the user; read-only without writers."""
    left_out = list(_NEVER)
    if read_only:
        left_out += [n for n in registry.names() if (tool := registry.get(n)) is not None and tool.effect in _WRITES]
    return registry.without(*left_out)

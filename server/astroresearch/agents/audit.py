"""The audit log: which call was allowed or refused and why, and how each one that ran ended.

Entries stand under the user's session, those of its subagents too, and outlive it. Secrets are replaced and long values cut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from astroresearch.agents.redact import Redactor
from astroresearch.agents.running import Running
from astroresearch.engine.hooks import Hook, HookInput, HookOutput
from astroresearch.engine.permissions import Grant, Mode, PermissionGate, PermissionRules, Verdict
from astroresearch.engine.tool import AnyTool, Arguments, ToolContext
from astroresearch.engine.turn import Asker, Emit
from astroresearch.engine.untrusted import Taint
from astroresearch.errors import AstroResearchError
from astroresearch.store.audit import AuditStore

MAX_VALUE = 500
"Characters of one text in an entry."
MAX_ITEMS = 50
"Items of one list or object in an entry."
_log = logging.getLogger(__name__)


class Audit:
    """Writes the log. What can't be written is said in the server's log and stops nothing.

    Args:
        store: None keeps no log.
        redactor: Takes secrets out.
        running: Tells a subagent's session from its user's.
    """

    def __init__(self, store: AuditStore | None, redactor: Redactor, running: Running) -> None:
        self._store = store
        self._redactor = redactor
        self._running = running

    def hooks(self) -> list[Hook]:
        """The built-in hooks that log how calls ended."""
        return [Hook(event, self._ended, name="audit") for event in ("PostToolUse", "PostToolUseFailure")]

    async def add(self, session_id: str, agent: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Adds an entry."""
        if self._store is None:
            return
        turn = self._running.find(session_id)
        root = turn.root_id if turn is not None else session_id
        try:
            await self._store.add(root, agent, kind, self._redactor.plain(shortened(payload)))
        except AstroResearchError as error:
            _log.warning("The audit log could not be written: %s", error)

    async def list(self, session_id: str, limit: int) -> list[Any]:
        """The newest entries of a session, oldest first."""
        return list(await self._store.list(session_id, limit)) if self._store is not None else []

    async def _ended(self, given: HookInput) -> HookOutput:
        told = given.payload
        entry = {
            "tool": told.get("tool_name", ""),
            "callId": told.get("tool_call_id", ""),
            "arguments": told.get("tool_input", {}),
            "status": "failed" if told.get("is_error") else "completed",
        }
        await self.add(given.session_id, given.agent, "tool", entry)
        return HookOutput()


class AuditedGate(PermissionGate):
    """The gate of one session, with each verdict in the log before the call begins."""

    def __init__(
        self,
        rules: PermissionRules,
        asker: Asker,
        audit: Audit,
        *,
        on_grant: Callable[[Grant], None] | None,
        grants: Sequence[Grant],
    ) -> None:
        super().__init__(rules, asker, on_grant=on_grant, grants=grants)
        self._audit = audit

    async def decide(
        self,
        tool: AnyTool,
        args: Arguments,
        context: ToolContext[Any],
        *,
        taint: Taint,
        emit: Emit,
        mode: Mode = "agent",
        hook: HookOutput | None = None,
    ) -> Verdict:
        """As `PermissionGate.decide`."""
        verdict = await super().decide(tool, args, context, taint=taint, emit=emit, mode=mode, hook=hook)
        entry: dict[str, Any] = {
            "tool": tool.name,
            "callId": context.call_id,
            "arguments": args.model_dump(mode="json", exclude_unset=True),
            "decision": "allowed" if verdict.allowed else "denied",
            "asked": verdict.asked,
            "reason": verdict.text,
        }
        if hook is not None and hook.decision is not None:
            entry["hook"] = {"decision": hook.decision, "reason": hook.reason}
        if taint.context:
            entry["readFrom"] = taint.named()
        await self._audit.add(context.session_id, context.agent, "permission", entry)
        return verdict


def shortened(value: Any) -> Any:
    """Plain JSON with long texts, lists and objects cut."""
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {str(k)[:MAX_VALUE]: shortened(v) for k, v in list(value.items())[:MAX_ITEMS]}
    if isinstance(value, list | tuple):
        return [shortened(v) for v in value[:MAX_ITEMS]]
    return value if isinstance(value, int | float | bool | None) else str(value)[:MAX_VALUE]

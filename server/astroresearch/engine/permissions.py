"""Whether a call may run: rules, the taint gate above them, and the question to the user.

Order (docs/architecture.md): deny → taint → ask → allow → the mode's default. The first that matches wins, and nothing later
weakens it; a hook counts as one more rule of its kind. Every way in which an answer can fail to come is a deny.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio
from pydantic import BaseModel

from astroresearch.engine import commands, globs
from astroresearch.engine.events import PermissionAsked
from astroresearch.engine.hooks import HookOutput
from astroresearch.engine.messages import new_call_id
from astroresearch.engine.tool import AnyTool, Arguments, ToolContext
from astroresearch.engine.turn import Asker, Emit, PermissionAnswer, PermissionRequest
from astroresearch.engine.untrusted import Taint

Mode = Literal["agent", "plan", "coordinator"]
_RULE = re.compile(r"\s*([\w*?.\-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ALWAYS = ({"id": "session", "label": "Allow in this session"}, {"id": "workspace", "label": "Allow in this workspace"})
_ONCE = {"id": "once", "label": "Allow once"}
_DENY = ({"id": "deny", "label": "Deny"}, {"id": "deny_reason", "label": "Deny and say why"})


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """One rule: `tool`, `tool(pattern)`, `tool(arg=glob)`, `tool(domain:glob)`; the tool's name may be a glob, `*` is all."""

    text: str
    tool: str
    pattern: str | None

    @classmethod
    def parse(cls, text: str) -> ParsedRule | None:
        """None where the text is no rule."""
        found = _RULE.fullmatch(text)
        if found is None or (found[2] is not None and not found[2].strip()):
            return None
        return cls(text.strip(), found[1], found[2])

    @classmethod
    def strictly(cls, text: str) -> ParsedRule:
        """For deny and ask: what can't be read covers the whole tool, or every tool, so that a slip never opens a door."""
        head = re.match(r"\s*([\w*?.\-]+)", text)
        return cls.parse(text) or cls(text.strip(), head[1] if head else "*", None)


@dataclass(frozen=True)
class PermissionRules:
    """The rules of the settings, as text."""

    deny: Sequence[str] = ()
    ask: Sequence[str] = ()
    allow: Sequence[str] = ()
    edits: Literal["ask", "accept"] = "ask"
    "Whether edits of workspace files that no rule names ask."

    def outlook(self, tool: AnyTool) -> Literal["allow", "ask", "deny"]:
        """What these rules say of every call of a tool; rules for some of its calls and the taint gate are not looked at."""
        lists: tuple[tuple[Literal["deny", "ask", "allow"], Sequence[str]], ...]
        lists = (("deny", self.deny), ("ask", self.ask), ("allow", self.allow))
        for decision, rules in lists:
            strict = decision != "allow"
            parsed = [ParsedRule.strictly(r) if strict else ParsedRule.parse(r) for r in rules]
            if any(p and not (p.pattern or "").strip("*") and _names(p, tool, strict=strict) for p in parsed):
                return decision
        return "allow" if self.accepts(tool) else tool.default_decision

    def accepts(self, tool: AnyTool) -> bool:
        """Whether `edits` lets this tool off its question."""
        return tool.default_decision == "ask" and tool.effect == "workspace_write" and self.edits == "accept"

    def problems(self) -> tuple[str, ...]:
        """Rules that can't be read, each with what is done instead."""
        bad = [r for r in (*self.deny, *self.ask) if ParsedRule.parse(r) is None]
        lost = [r for r in self.allow if ParsedRule.parse(r) is None]
        return (
            *(f"The rule `{r}` can't be read; `{ParsedRule.strictly(r).tool}` is covered as a whole." for r in bad),
            *(f"The allow rule `{r}` can't be read and is left out." for r in lost),
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """An answer that holds for later calls of the same agent."""

    rule: str
    agent: str
    "`*` is every agent: what was allowed in the workspace before this session."
    scope: Literal["session", "workspace"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may run; `text` tells the model what was not done."""

    allowed: bool
    text: str = ""
    asked: bool = False


@dataclass(frozen=True)
class _Call:
    """One call under judgement."""

    tool: AnyTool
    args: Arguments
    context: ToolContext[Any]
    taint: Taint
    mode: Mode
    hook: HookOutput
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Opinion:
    decision: Literal["deny", "ask", "allow"]
    reason: str = ""
    offer_always: bool = True


class PermissionGate:
    """The rules and answers of one session. One question at a time; answers take effect at once, also for calls that wait.

    Args:
        rules: From the settings.
        asker: None: nobody can be asked.
        mode: `plan` forbids everything that changes something, whatever a turn's own mode is.
        on_grant: Told of every new grant, so that those for the workspace can be stored.
        grants: What the user has allowed before.
    """

    def __init__(
        self,
        rules: PermissionRules = PermissionRules(),
        asker: Asker | None = None,
        mode: Mode = "agent",
        *,
        on_grant: Callable[[Grant], None] | None = None,
        grants: Sequence[Grant] = (),
    ) -> None:
        self.asker = asker
        self.mode: Mode = mode
        self._question = anyio.Lock()
        self.configure(rules, grants, on_grant)

    def configure(
        self, rules: PermissionRules, grants: Sequence[Grant], on_grant: Callable[[Grant], None] | None
    ) -> None:
        """Other rules and grants, from the next call on, also of a turn that runs."""
        self.rules = rules
        self._on_grant = on_grant
        self._deny = [ParsedRule.strictly(r) for r in rules.deny]
        self._ask = [ParsedRule.strictly(r) for r in rules.ask]
        self._allow = [p for r in rules.allow if (p := ParsedRule.parse(r))]
        self._grants = list(grants)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What the user has allowed, to be listed."""
        return tuple(self._grants)

    def grant(self, grant: Grant) -> None:
        """Allows a rule from now on."""
        if grant not in self._grants:
            self._grants.append(grant)
            if self._on_grant is not None:
                self._on_grant(grant)

    def revoke(self, rule: str) -> bool:
        """Takes a grant back; True if there was one."""
        kept = [g for g in self._grants if g.rule != rule]
        changed = len(kept) != len(self._grants)
        self._grants = kept
        return changed

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
        """Judges one call and asks the user where that is needed.

        `PermissionAsked` is emitted here, before the question and again with `resolved`; the asker only asks.
        """
        call = _Call(
            tool,
            args,
            context,
            taint,
            mode,
            hook or HookOutput(),
            tuple(_canonical(n) for n in tool.rule_names(args, context)),
        )
        opinion = await self._judge(call)
        if opinion.decision == "ask" and self._can_ask(context):
            async with self._question:  # an answer meanwhile may have settled it
                opinion = await self._judge(call)
                if opinion.decision == "ask":
                    return await self._ask_user(call, opinion, emit)
        return _verdict(call, opinion)

    def _can_ask(self, context: ToolContext[Any]) -> bool:
        return self.asker is not None and not context.silent

    async def _judge(self, call: _Call) -> _Opinion:
        opinion = await self._by_rules(call)
        if opinion.decision != "deny" and _tainted(call):
            why = f"This turn has read text from outside ({call.taint.named()}), which may carry instructions."
            return _Opinion("ask", why, offer_always=False)
        return opinion

    async def _by_rules(self, call: _Call) -> _Opinion:
        own = await call.tool.check_permissions(call.args, call.context)
        hook = call.hook
        if rule := _first(self._deny, call, strict=True):
            return _Opinion("deny", f"the rule `{rule.text}` forbids it")
        if "plan" in (self.mode, call.mode) and not reads_only(call.tool):
            return _Opinion("deny", "plan mode only reads")
        if own and own.decision == "deny":
            return _Opinion("deny", own.reason or "the tool refuses it")
        if hook.decision == "deny":
            return _Opinion("deny", hook.reason or "a hook forbids it")
        # Nothing below weakens an ask, hence no answer of such a question could hold for later calls.
        if rule := _first(self._ask, call, strict=True):
            return _Opinion("ask", f"The rule `{rule.text}` asks.", offer_always=False)
        if own and own.decision == "ask":
            return _Opinion("ask", own.reason, offer_always=False)
        if hook.decision == "ask":
            return _Opinion("ask", hook.reason or "A hook asks.", offer_always=False)
        if own or hook.decision == "allow" or _first([*self._allow, *self._granted(call)], call, strict=False):
            return _Opinion("allow")
        return self._default(call.tool)

    def _granted(self, call: _Call) -> list[ParsedRule]:
        mine = [g.rule for g in self._grants if g.agent in ("*", call.context.agent)]
        return [parsed for rule in mine if (parsed := ParsedRule.parse(rule)) is not None]

    def _default(self, tool: AnyTool) -> _Opinion:
        if self.rules.accepts(tool):
            return _Opinion("allow")
        reason = "it is off unless a rule allows it" if tool.default_decision == "deny" else ""
        return _Opinion(tool.default_decision, reason)

    async def _ask_user(self, call: _Call, opinion: _Opinion, emit: Emit) -> Verdict:
        assert self.asker is not None
        rules = narrowest(call.tool, call.names)
        request = PermissionRequest(
            id=new_call_id(),
            tool=call.tool.name,
            call_id=call.context.call_id,
            agent=call.context.agent,
            title=call.tool.title(call.args),
            detail=await call.tool.describe(call.args, call.context),
            rule=", ".join(rules),
            offer_always=opinion.offer_always and bool(rules),
            reason=opinion.reason,
        )
        options = (_ONCE, *(_ALWAYS if request.offer_always else ()), *_DENY)
        detail = f"{request.detail}\n\n{request.reason}".strip()
        asked = PermissionAsked(request.id, request.call_id, request.title, detail, options)
        emit(asked)
        answer: PermissionAnswer | None = None
        resolved = "cancelled"
        try:
            answer = await self.asker.permission(request)
            if answer is not None and answer.request_id == request.id:
                resolved = answer.choice
        finally:
            emit(replace(asked, resolved=resolved))
        return self._answered(call, request, answer)

    def _answered(self, call: _Call, request: PermissionRequest, answer: PermissionAnswer | None) -> Verdict:
        if answer is None or answer.request_id != request.id:
            text = f"Nobody answered the question whether `{call.tool.name}` may run, so it did not run. {_UNDONE}"
            return Verdict(False, text, asked=True)
        if answer.choice in ("session", "workspace") and request.offer_always:
            for rule in narrowest(call.tool, call.names):
                self.grant(Grant(rule, request.agent, answer.choice))
        if answer.choice in ("once", "session", "workspace"):
            return Verdict(True, asked=True)
        said = f" The user says: {answer.reason}" if answer.reason else ""
        return Verdict(
            False, f"The user denied this call of `{call.tool.name}`; it did not run. {_UNDONE}{said}", asked=True
        )


_UNDONE = "Nothing was done. Go on without it or say what is missing; do not try the same again."


def narrowest(tool: AnyTool, names: Sequence[str]) -> tuple[str, ...]:
    """The rules that cover this call and as little else as possible: one for each sub-command, none if it can't be split."""
    if not names:
        return (tool.name,)
    parts = commands.split(names[0]) or () if tool.effect == "exec" else (names[0],)
    return tuple(f"{tool.name}({globs.escape(part)})" for part in parts)


def _verdict(call: _Call, opinion: _Opinion) -> Verdict:
    if opinion.decision == "allow":
        return Verdict(True)
    if opinion.decision == "deny":
        return Verdict(False, f"`{call.tool.name}` did not run: {opinion.reason.removesuffix('.')}. {_UNDONE}")
    why = f" {opinion.reason}" if opinion.reason else ""
    text = f"`{call.tool.name}` needs the user's permission and nobody can be asked, so it did not run.{why} {_UNDONE}"
    return Verdict(False, text)


def reads_only(tool: AnyTool) -> bool:
    """Whether plan mode offers the tool: what changes nothing, and the plan itself."""
    return tool.effect in ("none", "egress") or (tool.effect == "library_write" and tool.kind == "think")


def _tainted(call: _Call) -> bool:
    effect = call.tool.effect
    if effect == "workspace_write":
        return call.taint.turn
    if effect == "egress" and call.tool.taint_exempt(call.args, call.context):
        return False
    return effect in ("exec", "memory", "egress") and call.taint.context


def _first(rules: Sequence[ParsedRule], call: _Call, *, strict: bool) -> ParsedRule | None:
    return next((rule for rule in rules if _covers(rule, call, strict=strict)), None)


def _names(rule: ParsedRule, tool: AnyTool, *, strict: bool) -> bool:
    return globs.matches(rule.tool, tool.name, across=True, fold=strict)


def _covers(rule: ParsedRule, call: _Call, *, strict: bool) -> bool:
    """Whether a rule is about this call. `strict` reads in doubt for the rule: ignoring case, any sub-command."""
    if not _names(rule, call.tool, strict=strict):
        return False
    if rule.pattern is None or (rule.pattern and not rule.pattern.strip("*")):
        return True
    if (named := _NAMED.fullmatch(rule.pattern)) and named[1] in type(call.args).model_fields:
        return _fits_argument(named[2], getattr(call.args, named[1]), strict=strict)
    if rule.pattern.startswith("domain:"):
        return any(globs.host_matches(rule.pattern[7:].strip(), h) for n in call.names if (h := _host(n)))
    if call.tool.effect == "exec":
        return any(commands.covers(rule.pattern, name, strict=strict) for name in call.names)
    files = "path" in type(call.args).model_fields
    return any(_fits_name(rule.pattern, name, files=files, strict=strict) for name in call.names)


def _fits_argument(pattern: str, value: object, *, strict: bool) -> bool:
    if isinstance(value, BaseModel) or value is None:
        return False
    items = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    texts = [str(i).lower() if isinstance(i, bool) else str(i) for i in items]
    if not texts:
        return False
    found = [globs.matches(pattern, t, across=True, fold=strict) for t in texts]
    return any(found) if strict else all(found)


def _fits_name(pattern: str, name: str, *, files: bool, strict: bool) -> bool:
    if globs.matches(pattern, name, across=not files, fold=strict):
        return True
    # As in .gitignore: a pattern without a slash is about the file's own name, wherever it lies.
    return files and "/" not in pattern and globs.matches(pattern, posixpath.basename(name), fold=strict)


def _canonical(name: str) -> str:
    if "\\" in name and re.match(r"[A-Za-z]:\\", name):
        name = name.replace("\\", "/")
    if "/" in name and "://" not in name and not name.startswith("//"):
        return posixpath.normpath(name)
    return name


def _host(name: str) -> str:
    if "\\" in name:  # programs disagree on what host such a URL names
        return ""
    try:
        host = urlsplit(name).hostname if "://" in name else name.split("/")[0].rsplit(":", 1)[0]
    except ValueError:
        return ""
    return (host or "").lower().rstrip(".")

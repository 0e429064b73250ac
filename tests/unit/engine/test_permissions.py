from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astroresearch.engine import commands, globs
from astroresearch.engine.events import Event, PermissionAsked
from astroresearch.engine.hooks import HookOutput
from astroresearch.engine.permissions import Grant, PermissionGate, PermissionRules, Verdict
from astroresearch.engine.tool import AnyTool, Arguments, Rule, ToolContext
from astroresearch.engine.turn import PermissionAnswer
from astroresearch.engine.untrusted import Taint
from tests.fakes.log import Person, unclosed
from tests.fakes.tools import Flagged, Named, Text, tool


@dataclass
class Case:
    """One gate and what it emitted."""

    gate: PermissionGate
    events: list[Event] = field(default_factory=list)

    async def decide(
        self, what: AnyTool, args: Arguments, *, agent: str = "main", silent: bool = False, **more: Any
    ) -> Verdict:
        context: ToolContext[Any] = ToolContext(None, "s", "t", agent, "call00001", silent=silent)
        more.setdefault("taint", Taint())
        return await self.gate.decide(what, args, context, emit=self.events.append, **more)


def gate(asker: Any = None, mode: Any = "agent", **rules: Any) -> Case:
    return Case(PermissionGate(PermissionRules(**rules), asker, mode))


EDIT = tool("file_edit", arguments=Named, effect="workspace_write", kind="edit", decision="ask")
READ = tool("read_file", arguments=Named, kind="read")
SHELL = tool("run_bash", arguments=Text, effect="exec", kind="execute", decision="ask", value=lambda a: a.text)
MEMORY = tool("save_memory", arguments=Text, effect="memory", decision="allow")
FETCH = tool("download_paper", arguments=Text, effect="egress", kind="fetch", value=lambda a: a.text)
QUERY = tool("search_papers", arguments=Text, effect="egress", kind="search", exempt=True)
NOTE = tool("save_note", arguments=Text, effect="library_write", kind="edit")
PLAN = tool("todo_write", arguments=Text, effect="library_write", kind="think")
TEX = Named(path="sections/intro.tex")
TAINTED = Taint(turn=True, context=True, sources=["PDF of Fabian 2012"])
EARLIER = Taint(turn=False, context=True)


async def test_the_first_list_that_matches_wins() -> None:
    assert not (await gate(deny=["file_edit"], allow=["file_edit"]).decide(EDIT, TEX)).allowed
    asked = gate(Person("once"), ask=["file_edit"], allow=["file_edit"])
    assert (await asked.decide(EDIT, TEX)).asked
    assert (await gate(allow=["file_edit"]).decide(EDIT, TEX)).allowed
    assert (await gate().decide(READ, TEX)).allowed
    assert not (await gate().decide(tool("off", decision="deny"), Text())).allowed


@pytest.mark.parametrize(
    ("rule", "path", "fits"),
    [
        ("file_edit(sections/**)", "sections/a/b.tex", True),
        ("file_edit(sections/**)", "sections/../secret.tex", False),
        ("file_edit(sections/*)", "sections/a/b.tex", False),
        ("file_edit(*.tex)", "sections/a/b.tex", True),
        ("file_edit(*.tex)", "sections/a/b.bib", False),
        ("file_edit(sections/intro.tex)", "./sections//intro.tex", True),
        ("file_edit(/ws/**)", "/ws/../etc/passwd", False),
        ("file_edit(path=sections/*)", "sections/a/b.tex", True),
        ("file_edit(*)", "x", True),
        ("file_*", "x", True),
        ("*", "x", True),
        ("read_file", "x", False),
        ("file_edit(Sections/**)", "sections/a.tex", False),
        ("file_edit()", "a.tex", False),
        ("file_edit(", "a.tex", False),
    ],
)
async def test_allow_rules_cover_what_they_say(rule: str, path: str, fits: bool) -> None:
    assert (await gate(allow=[rule]).decide(EDIT, Named(path=path))).allowed is fits


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("file_edit(Secret/**)", "secret/a.tex"),
        ("file_edit(secret/**)", "open/../secret/a.tex"),
        ("FILE_EDIT", "a.tex"),
        ("file_edit(", "a.tex"),
        ("file_edit()", "a.tex"),
        (")nonsense(", "a.tex"),
        ("file_edit(*.tex)", "deep/down/a.TEX"),
    ],
)
async def test_deny_rules_in_doubt_cover_more(rule: str, path: str) -> None:
    verdict = await gate(Person(), deny=[rule], allow=["*"]).decide(EDIT, Named(path=path))
    assert not verdict.allowed
    assert "did not run" in verdict.text


def test_rules_that_can_not_be_read_are_reported() -> None:
    problems = PermissionRules(deny=["file_edit("], allow=["x(", "fine"]).problems()
    assert len(problems) == 2
    assert "`file_edit` is covered" in problems[0]


async def test_arguments_lists_and_flags() -> None:
    edit = tool("replace", arguments=Flagged, effect="workspace_write", decision="ask")
    assert not (
        await gate(Person(), deny=["replace(replace_all=true)"]).decide(edit, Flagged(replace_all=True))
    ).allowed
    both = Flagged(tags=("good", "bad"))
    assert not (await gate(deny=["replace(tags=bad)"], allow=["*"]).decide(edit, both)).allowed
    assert not (await gate(allow=["replace(tags=good)"]).decide(edit, both)).allowed
    assert (await gate(allow=["replace(tags=*d)"]).decide(edit, both)).allowed


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://export.arxiv.org/pdf/2405.01234", True),
        ("https://EXPORT.arxiv.org:443/x", True),
        ("https://arxiv.org.evil.example/x", False),
        ("https://export.arxiv.org@evil.example/x", False),
        ("https://evil.example\\@export.arxiv.org/x", False),
        ("https://evil.example/?u=export.arxiv.org", False),
        ("2405.01234", False),
    ],
)
async def test_rules_on_hosts(url: str, fits: bool) -> None:
    fetch = tool("download_paper", arguments=Text, effect="egress", decision="ask", value=lambda a: a.text)
    assert (await gate(allow=["download_paper(domain:*.arxiv.org)"]).decide(fetch, Text(text=url))).allowed is fits


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git log -3", True),
        ("git log", True),
        ("git log && git log --all", True),
        ("git log; rm -rf .", False),
        ("git log | sh", False),
        ("git log $(rm x)", False),
        ("git log `rm x`", False),
        ("git log > /etc/passwd", False),
        ("git logs", False),
        ("git log 'a && b'", True),
        ("git log\nrm x", False),
    ],
)
async def test_commands_are_judged_by_each_part(command: str, allowed: bool) -> None:
    assert (await gate(allow=["run_bash(git log *)"]).decide(SHELL, Text(text=command))).allowed is allowed


async def test_one_denied_part_denies_the_command() -> None:
    for command in ("ls && rm -rf x", "ls; RM -rf x", "echo $(rm -rf x)"):
        assert not (await gate(deny=["run_bash(rm *)"], allow=["*"]).decide(SHELL, Text(text=command))).allowed


async def test_a_grant_for_joined_commands_holds_for_each_part() -> None:
    case = gate(Person("session"))
    assert (await case.decide(SHELL, Text(text="cd a && make b"))).asked
    assert [g.rule for g in case.gate.grants] == ["run_bash(cd a)", "run_bash(make b)"]
    assert not (await case.decide(SHELL, Text(text="make b"))).asked


async def test_a_grant_holds_at_once_is_listed_and_can_be_revoked() -> None:
    person = Person("session")
    case = gate(person)
    assert (await case.decide(EDIT, TEX)).asked
    assert not (await case.decide(EDIT, TEX)).asked
    assert case.gate.grants == (Grant("file_edit(sections/intro.tex)", "main", "session"),)
    await case.decide(EDIT, Named(path="sections/other.tex"))
    await case.decide(EDIT, TEX, agent="subagent")
    assert len(person.asked) == 3
    assert not (await case.decide(EDIT, TEX, mode="plan")).allowed
    assert case.gate.revoke("file_edit(sections/intro.tex)")
    assert (await case.decide(EDIT, TEX)).asked


async def test_the_narrowest_rule_holds_for_its_own_name_only() -> None:
    case = gate(Person("session"))
    await case.decide(EDIT, Named(path="a[1]*.tex"))
    assert not (await case.decide(EDIT, Named(path="a[1]*.tex"))).asked
    assert (await case.decide(EDIT, Named(path="a1b.tex"))).asked


async def test_an_answer_for_the_workspace_is_handed_on() -> None:
    stored: list[Grant] = []
    made = PermissionGate(PermissionRules(), Person("workspace"), on_grant=stored.append)
    await Case(made).decide(EDIT, TEX)
    assert stored == [Grant("file_edit(sections/intro.tex)", "main", "workspace")]


async def test_calls_that_wait_profit_from_an_answer() -> None:
    person = Person("session")
    case = gate(person)
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(case.decide, EDIT, TEX)
    assert len(person.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda r: None,
        lambda r: PermissionAnswer("another", "once"),
        lambda r: PermissionAnswer("", "session"),
        lambda r: PermissionAnswer(r.id, "deny", "use the other file"),
        lambda r: PermissionAnswer(r.id, "deny_reason"),
    ],
)
async def test_anything_but_a_matching_answer_is_a_deny(answer: Any) -> None:
    case = gate(Person(answer=answer))
    verdict = await case.decide(EDIT, TEX)
    assert not verdict.allowed
    assert "did not run" in verdict.text
    assert case.gate.grants == ()
    assert unclosed(case.events) == []


async def test_what_the_user_says_reaches_the_model() -> None:
    case = gate(Person(answer=lambda r: PermissionAnswer(r.id, "deny", "not that file")))
    assert "not that file" in (await case.decide(EDIT, TEX)).text


async def test_a_cancelled_question_is_withdrawn() -> None:
    person = Person(slow=True)
    case = gate(person)
    async with anyio.create_task_group() as group:
        group.start_soon(case.decide, EDIT, TEX)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert person.withdrawn == 1
    assert [e.resolved for e in case.events if isinstance(e, PermissionAsked)] == [None, "cancelled"]


async def test_with_nobody_to_ask_an_ask_is_a_deny_that_says_so() -> None:
    for case, silent in ((gate(None), False), (gate(Person()), True)):
        verdict = await case.decide(EDIT, TEX, silent=silent)
        assert not verdict.allowed
        assert "nobody can be asked" in verdict.text
        assert "Nothing was done" in verdict.text
        assert case.events == []


async def test_plan_mode_only_reads() -> None:
    for case, mode in ((gate(Person(), "plan", allow=["*"]), "agent"), (gate(Person(), allow=["*"]), "plan")):
        for what in (READ, QUERY, PLAN):
            args = TEX if what is READ else Text()
            assert (await case.decide(what, args, mode=mode)).allowed
        for what in (EDIT, NOTE, MEMORY, SHELL):
            args = TEX if what is EDIT else Text()
            assert not (await case.decide(what, args, mode=mode)).allowed


async def test_accepting_edits_is_about_the_workspace_only() -> None:
    case = gate(None, edits="accept")
    assert (await case.decide(EDIT, TEX)).allowed
    assert not (await case.decide(SHELL, Text(text="ls"))).allowed
    assert not (await gate(None, edits="accept", ask=["file_edit"]).decide(EDIT, TEX)).allowed


@pytest.mark.parametrize(
    ("what", "args", "taint", "asks"),
    [
        (NOTE, Text(), TAINTED, False),
        (READ, TEX, TAINTED, False),
        (QUERY, Text(), TAINTED, False),
        (EDIT, TEX, TAINTED, True),
        (EDIT, TEX, EARLIER, False),
        (FETCH, Text(text="https://x.example/a"), TAINTED, True),
        (FETCH, Text(text="https://x.example/a"), EARLIER, True),
        (MEMORY, Text(), TAINTED, True),
        (MEMORY, Text(), EARLIER, True),
        (SHELL, Text(text="ls"), TAINTED, True),
        (SHELL, Text(text="ls"), Taint(), False),
    ],
)
async def test_the_taint_gate_stands_above_all_rules(what: AnyTool, args: Arguments, taint: Taint, asks: bool) -> None:
    person = Person("session")
    case = gate(person, allow=["*"], edits="accept")
    for _ in range(2):
        verdict = await case.decide(what, args, taint=taint, hook=HookOutput(decision="allow"))
        assert (verdict.allowed, verdict.asked) == (True, asks)
    assert len(person.asked) == (2 if asks else 0)
    assert case.gate.grants == ()
    for request in person.asked:
        assert not request.offer_always
        assert taint.named() in request.reason
    options = [o["id"] for e in case.events if isinstance(e, PermissionAsked) for o in e.options]
    assert "session" not in options


async def test_taint_never_turns_a_deny_into_a_question() -> None:
    off = tool("run_bash", effect="exec", decision="deny")
    for case, what, args in ((gate(Person()), off, Text()), (gate(Person(), deny=["file_edit"]), EDIT, TEX)):
        verdict = await case.decide(what, args, taint=TAINTED)
        assert (verdict.allowed, verdict.asked) == (False, False)


async def test_hooks_are_rules_of_their_kind() -> None:
    allow, ask, deny = (HookOutput(decision=d, reason="the hook") for d in ("allow", "ask", "deny"))  # type: ignore[arg-type]
    assert not (await gate(deny=["file_edit"]).decide(EDIT, TEX, hook=allow)).allowed
    assert not (await gate(ask=["file_edit"]).decide(EDIT, TEX, hook=allow)).allowed
    assert (await gate().decide(EDIT, TEX, hook=allow)).allowed
    assert not (await gate(allow=["*"]).decide(EDIT, TEX, hook=ask)).allowed
    verdict = await gate(allow=["*"]).decide(EDIT, TEX, hook=deny)
    assert not verdict.allowed
    assert "the hook" in verdict.text


async def test_a_tool_has_rules_of_its_own() -> None:
    no = tool("x", own_rule=Rule("deny", "the query holds your manuscript"), decision="allow")
    verdict = await gate(allow=["*"]).decide(no, Text())
    assert not verdict.allowed
    assert "your manuscript" in verdict.text
    person = Person("session")
    maybe = gate(person, allow=["*"])
    await maybe.decide(tool("x", own_rule=Rule("ask", "why not")), Text())
    assert person.asked[0].reason == "why not"
    assert not person.asked[0].offer_always
    assert (await gate().decide(tool("x", own_rule=Rule("allow"), decision="ask"), Text())).allowed


@given(st.text(max_size=30))
def test_an_escaped_text_fits_itself_and_globs_never_fail(text: str) -> None:
    if text:
        assert globs.matches(globs.escape(text), text)
    globs.matches(text, text)
    commands.split(text)


@given(st.text("ab/*?[]!-.", max_size=12), st.text("ab/", max_size=8))
def test_a_star_never_crosses_a_slash(pattern: str, text: str) -> None:
    if globs.matches(pattern, text) and "**" not in pattern and pattern.strip("*") and "[" not in pattern:
        assert text.count("/") == pattern.count("/")


def test_the_outlook_of_a_tool_follows_rules_for_all_of_its_calls() -> None:
    assert PermissionRules().outlook(READ) == "allow"
    assert PermissionRules().outlook(EDIT) == "ask"
    assert PermissionRules(edits="accept").outlook(EDIT) == "allow"
    assert PermissionRules(deny=["READ_*"], allow=["read_file"]).outlook(READ) == "deny"
    assert PermissionRules(ask=["read_file(*)"]).outlook(READ) == "ask"
    assert PermissionRules(allow=["*"]).outlook(EDIT) == "allow"
    assert PermissionRules(deny=["read_file(private/**)"]).outlook(READ) == "allow"

"""Configured hooks as real processes: what they are told, what they may answer, and that nothing of them is left."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch import config
from astroresearch.agents.hooks import MAX_OUTPUT, Surroundings, configured, environment
from astroresearch.agents.redact import Redactor
from astroresearch.agents.request import AgentSettings
from astroresearch.config import Folders, Problem, Settings
from astroresearch.engine.hooks import Hook, HookInput, HookOutput, Hooks
from tests.unit.agents.conftest import DeskMaker, FakeFrontEnd, check_timeline

KEY = "sk-canary-1234567890"


class Home:
    """A user's folder with hooks, and a workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root / "config"
        self.workspace = root / "work"
        self.root.mkdir()
        (self.workspace / ".astroresearch").mkdir(parents=True)
        self.where = Folders(self.root, self.root, self.root)

    def script(self, body: str, name: str = "hook.py") -> str:
        """A Python hook; `given` is what it is told."""
        path = self.root / name
        path.write_text(f"import json, os, subprocess, sys, time\ngiven = json.load(sys.stdin)\n{body}\n")
        return str(path)

    def write(self, text: str, *, workspace: bool = False) -> None:
        where = self.workspace / ".astroresearch" if workspace else self.root
        (where / "config.toml").write_text(text)

    def load(self, *, trusted: bool = False, editor: Mapping[str, Any] | None = None) -> Settings:
        return config.load(where=self.where, env={}, workspace=self.workspace if trusted else None, editor=editor)

    def hooks(self, *, trusted: bool = False, tools: tuple[str, ...] = ()) -> tuple[list[Hook], tuple[Problem, ...]]:
        around = Surroundings(self.workspace, Redactor((KEY,)), (KEY,), tools)
        return configured(self.load(trusted=trusted), around)

    def one(self, body: str, event: str = "PreToolUse", **entry: Any) -> Hooks:
        """One hook with this Python body."""
        fields = {"args": [sys.executable, self.script(body)], **entry}
        lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
        self.write(f"[[hooks.{event}]]\n{lines}\n")
        hooks, problems = self.hooks()
        assert problems == ()
        return Hooks(hooks)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def fire(hooks: Hooks, event: Any = "PreToolUse", tool: str = "file_edit", **payload: Any) -> HookOutput:
    return await hooks.fire(HookInput(event, "s1", "main", {"tool_name": tool, **payload}))


async def test_it_is_told_who_where_when_and_what(home: Home) -> None:
    hooks = home.one("open('told.json', 'w').write(json.dumps(given))")
    assert await fire(hooks, tool_input={"path": "a.tex"}) == HookOutput()
    told = json.loads((home.root / "told.json").read_text())
    assert told.pop("timestamp").endswith("Z")
    assert told == {
        "session_id": "s1",
        "cwd": str(home.workspace),
        "hook_event_name": "PreToolUse",
        "agent_name": "main",
        "tool_name": "file_edit",
        "tool_input": {"path": "a.tex"},
    }


async def test_it_answers_with_json(home: Home) -> None:
    hooks = home.one(
        "print(json.dumps({'decision': 'ask', 'reason': 'large', 'updated_input': {'path': 'b.tex'},"
        " 'updated_output': 'short', 'context': 'SI units'}))"
    )
    assert await fire(hooks) == HookOutput("ask", "large", {"path": "b.tex"}, "short", "SI units")


@pytest.mark.parametrize("said", ["", "All is well.", "null {", "[1, 2"])
async def test_output_that_is_no_json_is_nothing(home: Home, said: str) -> None:
    assert await fire(home.one(f"print({said!r})")) == HookOutput()


async def test_exit_2_blocks_and_says_why(home: Home) -> None:
    found = await fire(home.one("print('not \\x1b[31mthis', file=sys.stderr); sys.exit(2)"))
    assert (found.decision, found.reason, found.warning) == ("deny", "not [31mthis", "")


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit(1)",
        "print('oops', file=sys.stderr); sys.exit(7)",
        "os.kill(os.getpid(), 9)",
        "print('[1]')",
        "print(json.dumps({'decision': 'block'}))",
        "print(json.dumps({'updated_input': 'x'}))",
        "print(json.dumps({'context': 3}))",
        f"sys.stdout.write('x' * {MAX_OUTPUT + 1})",
        f"sys.stderr.write('x' * {MAX_OUTPUT + 1}); sys.exit(2)",
    ],
)
async def test_anything_else_is_a_warning_or_a_refusal(home: Home, body: str) -> None:
    found = await fire(home.one(body))
    assert found.decision is None
    assert found.warning.startswith("The PreToolUse hook `")
    closed = await fire(home.one(body, fail_closed=True))
    assert closed.decision == "deny"
    assert closed.warning == closed.reason != ""


async def test_a_command_that_is_not_there_is_a_warning(home: Home) -> None:
    home.write('[[hooks.PreToolUse]]\nargs = ["./no-such-command"]\n')
    hooks, _ = home.hooks()
    found = await fire(Hooks(hooks))
    assert found.decision is None
    assert "no-such-command" in found.warning


async def test_it_need_not_read_what_it_is_told(home: Home) -> None:
    home.write('[[hooks.PostToolUse]]\nargs = ["true"]\n')
    hooks, _ = home.hooks()
    assert await fire(Hooks(hooks), "PostToolUse", tool_output="x" * 5_000_000) == HookOutput()


def alive(pid: int) -> bool:
    """Whether it runs; a zombie that nobody reaps (its parent is gone) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
CHILD = "[sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)']"
STUBBORN = f"""
child = subprocess.Popen({CHILD})
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open('pids.new', 'w').write(f'{{os.getpid()}} {{child.pid}}')
os.rename('pids.new', 'pids')
"""


async def until_gone(pids: list[int]) -> None:
    with anyio.fail_after(10):
        while any(alive(pid) for pid in pids):  # noqa: ASYNC110 - processes send no event
            await anyio.sleep(0.01)


@needs_proc
@pytest.mark.parametrize("closed", [False, True])
async def test_a_timeout_ends_the_whole_group(home: Home, closed: bool) -> None:
    hooks = home.one(STUBBORN + "time.sleep(600)", timeout=1.5, fail_closed=closed)
    found = await fire(hooks)
    assert found.decision == ("deny" if closed else None)
    assert "gave no answer within 1.5 s" in found.warning
    await until_gone([int(pid) for pid in (home.root / "pids").read_text().split()])


@needs_proc
async def test_a_cancel_ends_the_whole_group(home: Home) -> None:
    hooks = home.one(STUBBORN + "time.sleep(600)")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(fire, hooks)
            while not (home.root / "pids").exists():  # noqa: ASYNC110 - written by the process
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    await until_gone([int(pid) for pid in (home.root / "pids").read_text().split()])


@needs_proc
async def test_what_it_leaves_running_ends_with_it(home: Home) -> None:
    hooks = home.one(STUBBORN + "print(json.dumps({'decision': 'deny', 'reason': 'no'}), flush=True); os._exit(0)")
    with anyio.fail_after(20):
        found = await fire(hooks)
    assert (found.decision, found.reason) == ("deny", "no")
    await until_gone([int(pid) for pid in (home.root / "pids").read_text().split()])


async def test_it_sees_no_secret(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ADS_API_TOKEN", "ADS_DEV_KEY"):
        monkeypatch.setenv(name, f"value-of-{name}")
    monkeypatch.setenv("MY_COPY", f"Bearer {KEY}")
    monkeypatch.setenv("HARMLESS", "yes")
    hooks = home.one(
        "open('seen.json', 'w').write(json.dumps([dict(os.environ), given]))\n"
        f"print(json.dumps({{'context': 'it is ' + {KEY[:5]!r} + {KEY[5:]!r}}}))"
    )
    found = await fire(hooks, tool_input={"text": f"my key {KEY}"})
    seen = (home.root / "seen.json").read_text()
    assert KEY not in seen
    assert "value-of-" not in seen
    assert "MY_COPY" not in seen
    assert '"HARMLESS": "yes"' in seen
    assert found.context == "it is [secret]"


def test_places_that_depend_on_the_folder_are_not_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "bin", "/usr/bin"]))
    assert environment(())["PATH"] == "/usr/bin"


def test_a_short_secret_takes_only_its_own_variable_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/opt/ollama/bin")
    monkeypatch.setenv("MY_KEY", "ollama")
    kept = environment(("ollama",))
    assert kept["PATH"] == "/opt/ollama/bin"
    assert "MY_KEY" not in kept


async def test_a_users_hook_never_runs_in_the_workspace(home: Home) -> None:
    hooks = home.one("open('here', 'w').close()")
    await fire(hooks)
    assert (home.root / "here").exists()
    home.write(
        f'[[hooks.PreToolUse]]\nargs = ["{sys.executable}", "{home.script("open(chr(120), chr(119)).close()")}"]\n',
        workspace=True,
    )
    found, _ = home.hooks(trusted=True)
    await fire(Hooks(found))
    assert (home.workspace / "x").exists()


async def test_a_matcher_is_a_glob_or_several(home: Home) -> None:
    hooks = home.one("sys.exit(2)", matcher="file_*|save_note")
    denied = [t for t in ("file_edit", "file_write", "save_note", "read_file") if (await fire(hooks, tool=t)).decision]
    assert denied == ["file_edit", "file_write", "save_note"]


@pytest.mark.parametrize(("event", "field"), [("PostToolUse", "context"), ("SubagentStop", "warning")])
async def test_an_objection_that_can_stop_nothing_is_heard(home: Home, event: str, field: str) -> None:
    found = await fire(home.one("print('look again', file=sys.stderr); sys.exit(2)", event), event, tool="")
    assert "look again" in getattr(found, field)


def test_hooks_of_both_files_count_and_untrusted_ones_are_not_read(home: Home) -> None:
    home.write('[[hooks.PreToolUse]]\nargs = ["mine"]\n')
    home.write('[[hooks.PreToolUse]]\nargs = ["theirs"]\n[hooks]\nStop = []\n', workspace=True)
    assert [h.name for h in home.hooks()[0]] == ["The PreToolUse hook `mine`"]
    assert [h.name for h in home.hooks(trusted=True)[0]] == [
        "The PreToolUse hook `mine`", "The PreToolUse hook `theirs`",
    ]  # fmt: skip


def test_the_editor_can_set_no_hooks(home: Home) -> None:
    settings = home.load(editor={"hooks": {"PreToolUse": [{"args": ["x"]}]}})
    assert settings.tables("hooks") == ()
    assert [p.message for p in settings.problems] == ["`hooks` is read from config.toml only."]
    assert home.load(editor={"hooks": {}}).problems == ()


def test_the_nested_form_is_read_too(home: Home) -> None:
    home.write(
        '[[hooks.PreToolUse]]\nmatcher = "file_edit"\n'
        'hooks = [{type = "command", args = ["a"], timeout = 5, fail_closed = true}, {args = ["b"]}]\n'
    )
    hooks, problems = home.hooks()
    assert problems == ()
    assert [(h.matcher, h.timeout_s, h.fail_closed) for h in hooks] == [
        ("file_edit", 5.0, True), ("file_edit", 60.0, False),
    ]  # fmt: skip


BAD = [
    'args = "python3 check.py"',
    "args = []",
    "args = [1]",
    'args = ["a"]\ntimeout = 0',
    'args = ["a"]\ntimeout = "10"',
    'args = ["a"]\nmatcher = 3',
    'args = ["a"]\nfail_closed = "yes"',
    'args = ["a"]\ntype = "prompt"',
    'hooks = "a"',
    'command = "a"',
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_entry_is_named_and_the_others_stay(home: Home, bad: str) -> None:
    home.write(f'[[hooks.PreToolUse]]\n{bad}\n[[hooks.PreToolUse]]\nargs = ["good"]\n')
    hooks, problems = home.hooks()
    assert [h.name for h in hooks] == ["The PreToolUse hook `good`"]
    (problem,) = problems
    assert "hooks.PreToolUse, entry 1" in problem.message
    assert problem.where == str(home.where.config_file)


@pytest.mark.parametrize(
    ("text", "said", "count"),
    [
        ('[[hooks.Sometimes]]\nargs = ["a"]', "there is no such event", 0),
        ('[[hooks.PreCompact]]\nargs = ["a"]', "not called yet", 1),
        ('[[hooks.Stop]]\nargs = ["a"]\nmatcher = "file_edit"', "`matcher` is about tools", 1),
        ('[[hooks.Stop]]\nargs = ["a"]\nfail_closed = true', "`fail_closed` is ignored", 1),
        ('[[hooks.PreToolUse]]\nargs = ["a"]\nmatcher = "Edit"', "no tool is called 'Edit'", 1),
        ('[[hooks.PreToolUse]]\nargs = ["a"]\ncolour = 1', "unknown 'colour'", 1),
        ("[hooks]\nPreToolUse = 3", "must be a table, not int", 0),
        ("hooks = 3", "`hooks` must be a table", 0),
    ],
)
def test_what_does_nothing_is_said(home: Home, text: str, said: str, count: int) -> None:
    home.write(text + "\n")
    hooks, problems = home.hooks(tools=("file_edit",))
    assert len(hooks) == count
    assert any(said in p.message for p in (*problems, *home.load().problems))


def test_a_script_that_the_agent_can_edit_is_named(home: Home) -> None:
    (home.workspace / "check.py").write_text("")
    (home.workspace / ".astroresearch" / "check.py").write_text("")
    entry = '[[hooks.PreToolUse]]\nargs = ["python3", "{}check.py"]\n'
    home.write(entry.format(".astroresearch/") + entry.format(""), workspace=True)
    hooks, problems = home.hooks(trusted=True)
    assert len(hooks) == 2
    assert ["entry 2" in p.message and "can edit 'check.py'" in p.message for p in problems] == [True]


async def test_broken_text_in_an_answer_is_mended(home: Home) -> None:
    found = await fire(home.one(r"print('{\"context\": \"a\\ud800b\", \"updated_input\": {\"path\": \"\\udfff\"}}')"))
    (found.context + str(found.updated_input)).encode()
    assert found.context.startswith("a")


# In a session


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


async def test_a_failing_hook_is_a_notice_in_the_timeline(desk: DeskMaker, home: Home) -> None:
    home.write("".join(f'[[hooks.{e}]]\nargs = ["false"]\n' for e in ("PreToolUse", "UserPromptSubmit", "Stop")))
    hooks, _ = home.hooks()
    async with desk([{"calls": [call("glob_files", pattern="*")]}, "Ok."], hooks=hooks) as d:
        assert (await d.send("Look")).answer == "Ok."
        said = [event["text"] for event in d.of("notice") if event["level"] == "warning"]
        assert [text.split(" hook ")[0] for text in said] == ["The UserPromptSubmit", "The PreToolUse", "The Stop"]
        assert all("exit code 1" in text for text in said)
        check_timeline(d.events)


async def test_the_audit_log_has_every_verdict_and_end(desk: DeskMaker, tmp_path: Path) -> None:
    async def deny(given: HookInput) -> HookOutput:
        return HookOutput("deny", "not today")

    script = [
        {"calls": [call("read_file", path="main.tex"), call("waiter", name=f"{KEY} {'x' * 900}")]},
        {"calls": [call("read_file", path="missing.tex")]},
        "Ok.",
    ]
    hooks = [Hook("PreToolUse", deny, "waiter")]
    async with desk(script, hooks=hooks, settings=AgentSettings(secrets=(KEY,))) as d:
        outcome = await d.send("Look")
        entries = await d.manager.audit(outcome.session_id)
        told = [(e["kind"], e["payload"]["tool"], e["payload"].get("decision", e["payload"].get("status")))
                for e in entries]  # fmt: skip
        assert sorted(told[:3]) == [
            ("permission", "read_file", "allowed"), ("permission", "waiter", "denied"), ("tool", "read_file", "completed"),
        ]  # fmt: skip
        assert told[3:] == [("permission", "read_file", "allowed"), ("tool", "read_file", "failed")]
        (denied,) = [e["payload"] for e in entries if e["payload"].get("decision") == "denied"]
        assert denied["hook"] == {"decision": "deny", "reason": "not today"}
        assert denied["arguments"]["name"].startswith("[secret] xxx")
        assert len(denied["arguments"]["name"]) < 600
        assert all(e["agent"] == "main" and e["sessionId"] == outcome.session_id for e in entries)
        await d.manager.delete(outcome.session_id)
        assert await d.manager.audit(outcome.session_id) == entries


async def test_a_subagents_calls_stand_in_its_users_log(desk: DeskMaker) -> None:
    script = {
        "turns": [
            [{"calls": [call("subagent", task="Read it", name="reader")]}, "Ok."],
            {"match": "Read it", "replies": [{"calls": [call("read_file", path="main.tex")]}, "Read."]},
        ]
    }
    async with desk(script) as d:
        outcome = await d.send("Go")
        entries = await d.manager.audit(outcome.session_id)
        assert {(e["agent"], e["payload"]["tool"]) for e in entries} == {("main", "subagent"), ("reader", "read_file")}


def edits(*numbers: int) -> list[Any]:
    """Turns that edit, each in a turn of its own."""
    return [
        [
            {"calls": [call("read_file", path="main.tex")]},
            {"calls": [call("file_edit", path="main.tex", old_string="old", new_string="new")]}
            if n % 2 == 0
            else {"calls": [call("file_edit", path="main.tex", old_string="new", new_string="old")]},
            "Ok.",
        ]
        for n in numbers
    ]


async def test_what_was_granted_before_holds_until_it_is_revoked(desk: DeskMaker) -> None:
    rule = "file_edit(main.tex)"
    front_end = FakeFrontEnd(choices=["deny", "session", "deny"], answers_in_timeline=False)
    settings = AgentSettings(granted=("file_edit",))
    async with desk({"turns": edits(0, 1, 1, 0)}, front_end=front_end, settings=settings) as d:
        first = await d.send("One")
        assert (front_end.requests, len(d.workspace.writes)) == ([], 1)
        assert await d.manager.revoke_everywhere("file_edit")
        assert not await d.manager.revoke_everywhere("file_edit")
        await d.send("Two", first.session_id)
        assert (len(front_end.requests), len(d.workspace.writes)) == (1, 1)
        await d.send("Three", first.session_id)
        assert (len(front_end.requests), len(d.workspace.writes)) == (2, 2)
        ((session_id, grant),) = d.manager.all_grants()
        assert (session_id, grant.scope, rule.split("(")[0] in grant.rule) == (first.session_id, "session", True)
        assert await d.manager.revoke_everywhere(grant.rule)
        await d.send("Four", first.session_id)
        assert (len(front_end.requests), len(d.workspace.writes)) == (3, 2)
        kinds = [e["kind"] for e in await d.manager.audit(first.session_id)]
        assert kinds.count("revoke") == 2


def test_a_grant_is_stored_and_forgotten(home: Home) -> None:
    other = home.root / "other"
    for workspace, rule in ((home.workspace, "a"), (home.workspace, 'b("x")'), (other, "a")):
        config.grant(workspace, rule, home.where)
    assert config.revoke(home.workspace, "a", home.where)
    assert not config.revoke(home.workspace, "a", home.where)
    assert config.granted(home.workspace, home.where) == ('b("x")',)
    assert config.granted(other, home.where) == ("a",)
    assert config.revoke(home.workspace, 'b("x")', home.where)
    assert str(home.workspace) not in home.where.grants_file.read_text()

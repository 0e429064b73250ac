"""Hooks, the audit log and grants in a real server: whose hooks run, what they can stop, and what they can't."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.lsp.client import Client

EDIT = [
    {"calls": [{"name": "read_file", "arguments": {"path": "main.tex"}}]},
    {"calls": [{"name": "file_edit", "arguments": {
        "path": "main.tex", "old_string": "Cool cores", "new_string": "Cool-core clusters"}}]},
    {"text": "Edited."},
]  # fmt: skip


def hook(folder: Path, body: str, event: str = "PreToolUse", **entry: Any) -> str:
    """TOML of a hook whose script lies in `folder`."""
    script = folder / f"{event}.py"
    script.write_text(f"import json, sys\ngiven = json.load(sys.stdin)\n{body}\n")
    fields = {"args": [sys.executable, str(script)], **entry}
    return f"\n[[hooks.{event}]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())


class Asked:
    """A front end that answers each permission question with the next choice."""

    def __init__(self, *choices: str) -> None:
        self.choices = list(choices)
        self.details: list[str] = []
        self.options: dict[str, Any] = {
            "experimental": {"permission": True},
            "initialization_options": {"trusted": True},
            "on_request": {"astroresearch/permission/request": self._answer},
        }

    async def _answer(self, request: Any) -> Any:
        self.details.append(request["detail"])
        return {"id": request["id"], "choice": self.choices.pop(0)}


async def send(client: Client, session: str | None = None) -> tuple[str, list[dict[str, Any]]]:
    """One turn: its session and its events."""
    params = {"text": "Change it.", **({"sessionId": session} if session else {})}
    answer = await client.request("astroresearch/chat/send", params)
    found = await client.request("astroresearch/session/events", {"sessionId": answer["sessionId"]})
    return answer["sessionId"], [e for e in found["events"] if e["turnId"] == answer["turnId"]]


def ends(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    names = {e["id"]: e["name"] for e in events if e["type"] == "tool.start"}
    return [(names[e["id"]], e["status"]) for e in events if e["type"] == "tool.end"]


async def test_a_hook_denies_and_the_audit_log_says_so(server: Any, home: Path, workspace: Path) -> None:
    body = "print('appendix is frozen', file=sys.stderr); sys.exit(2)"
    (home / "config.toml").write_text(hook(home, body, matcher="file_edit"))
    before = (workspace / "main.tex").read_text()
    asked = Asked()
    async with server(workspace, script=EDIT, **asked.options) as client:
        session, events = await send(client)
        audit = await client.request("astroresearch/session/audit", {"sessionId": session})
    assert ends(events) == [("read_file", "completed"), ("file_edit", "denied")]
    assert "appendix is frozen" in next(e["preview"] for e in events if e.get("status") == "denied")
    assert (workspace / "main.tex").read_text() == before
    assert asked.details == []
    verdict = audit["entries"][-1]
    assert (verdict["kind"], verdict["payload"]["tool"], verdict["payload"]["decision"]) == (
        "permission", "file_edit", "denied",
    )  # fmt: skip
    assert verdict["payload"]["hook"] == {"decision": "deny", "reason": "appendix is frozen"}


CHANGE = (
    "given['tool_input'].update({}); print(json.dumps({{'decision': 'allow', 'updated_input': given['tool_input']}}))"
)


async def test_input_that_a_hook_changed_is_judged_by_the_rules_again(server: Any, home: Path, workspace: Path) -> None:
    change = CHANGE.format("path='refs.bib', old_string='Cooling Flows', new_string='Nothing'")
    rules = '[permissions]\ndeny = ["file_edit(refs.bib)"]\n'
    (home / "config.toml").write_text(rules + hook(home, change, matcher="file_edit"))
    before = (workspace / "refs.bib").read_text()
    async with server(workspace, script=EDIT, **Asked().options) as client:
        _, events = await send(client)
    assert ends(events)[-1] == ("file_edit", "denied")
    assert any(e["type"] == "notice" and "changed the input of `file_edit`" in e["text"] for e in events)
    assert (workspace / "refs.bib").read_text() == before


@pytest.mark.parametrize("path", ["../outside.tex", ".git/config", "/etc/hostname"])
async def test_a_hook_leads_no_tool_out_of_its_folders(server: Any, home: Path, workspace: Path, path: str) -> None:
    (workspace.parent / "outside.tex").write_text("Cool cores")
    change = CHANGE.format(f"path={path!r}")
    (home / "config.toml").write_text(hook(home, change, matcher="file_edit"))
    async with server(workspace, script=EDIT, **Asked().options) as client:
        _, events = await send(client)
    assert ends(events)[-1][1] in ("denied", "failed")
    assert (workspace.parent / "outside.tex").read_text() == "Cool cores"


async def test_the_user_is_asked_about_the_changed_input(server: Any, home: Path, workspace: Path) -> None:
    change = CHANGE.format("new_string='Cool-core galaxy clusters'").replace("'allow'", "'ask'")
    (home / "config.toml").write_text(hook(home, change, matcher="file_edit"))
    asked = Asked("once")
    async with server(workspace, script=EDIT, **asked.options) as client:
        await send(client)
    assert "+Cool-core galaxy clusters" in asked.details[0]
    assert "Cool-core galaxy clusters" in (workspace / "main.tex").read_text()


def children(pid: int) -> set[str]:
    """Command lines of everything that descends from a process."""
    found: set[str] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                found |= {Path(f"/proc/{child}/cmdline").read_text().replace("\0", " "), *children(int(child))}
            except FileNotFoundError:
                continue
    return found


async def test_hooks_of_an_untrusted_workspace_never_run(server: Any, home: Path, workspace: Path) -> None:
    marks = home / "marks"
    marks.mkdir()
    # A hook that stays: had it ever been started, it would be seen among the server's children.
    stay = f"open({str(marks)!r} + '/' + given['hook_event_name'], 'w').close(); import time; time.sleep(0.3)"
    folder = workspace / ".astroresearch"
    folder.mkdir()
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    (folder / "config.toml").write_text("".join(hook(folder, stay, event, timeout=20) for event in events))
    script = {"turns": [EDIT, ["Again."]]}
    async with server(workspace, script=script, initialization_options={"trusted": False}) as client:
        seen: set[str] = set()
        async with anyio.create_task_group() as group:

            async def look() -> None:
                while Path("/proc/self/task").exists():
                    seen.update(children(client.pid))
                    await anyio.sleep(0.01)

            group.start_soon(look)
            await send(client)
            status = await client.request("astroresearch/status", {})
            group.cancel_scope.cancel()
        assert not [line for line in seen if ".astroresearch" in line]
        assert "settings and skills are not used" in status["workspace"]["hint"]
    assert list(marks.iterdir()) == []
    async with server(workspace, script=["Hello."], initialization_options={"trusted": True}) as client:
        await send(client)
    assert {mark.name for mark in marks.iterdir()} == {"SessionStart", "UserPromptSubmit", "Stop"}


async def test_a_users_hook_picks_nothing_up_from_an_untrusted_workspace(
    server: Any, home: Path, workspace: Path
) -> None:
    (workspace / "json.py").write_text("raise SystemExit('the workspace was run')")
    (workspace / "check.py").write_text("raise SystemExit('the workspace was run')")
    (home / "check.py").write_text("import json, sys; print(json.dumps({'context': 'mine'}))")
    entries = [["python3", "check.py"], ["python3", "-c", "import json; print(json.dumps({}))"]]
    (home / "config.toml").write_text(
        "".join(f"[[hooks.UserPromptSubmit]]\nargs = {json.dumps(args)}\nfail_closed = true\n" for args in entries)
    )
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    async with server(workspace, script=["Hello."], env=env) as client:
        _, events = await send(client)
    assert not [e for e in events if e["type"] in ("notice", "error")]


async def test_a_failing_hook_is_a_notice_and_a_bad_entry_a_problem(server: Any, home: Path, workspace: Path) -> None:
    bad = '\n[[hooks.PreToolUse]]\nargs = "check.py"\n[[hooks.PreCompact]]\nargs = ["true"]\n'
    (home / "config.toml").write_text(hook(home, "sys.exit('broken')", matcher="read_file") + bad)
    async with server(workspace, script=EDIT) as client:
        _, events = await send(client)
        status = await client.request("astroresearch/status", {})
    (notice,) = [e for e in events if e["type"] == "notice"]
    assert notice["level"] == "warning"
    assert "exit code 1: broken" in notice["text"]
    assert ends(events)[0] == ("read_file", "completed")
    messages = [problem["message"] for problem in status["problems"]]
    assert any("hooks.PreToolUse, entry 2" in message for message in messages)
    assert any("PreCompact" in message and "not called yet" in message for message in messages)


async def test_hooks_are_read_again_when_settings_change(server: Any, home: Path, workspace: Path) -> None:
    async with server(workspace, script={"turns": [["One."], ["Two."], ["Three."]]}) as client:
        session, events = await send(client)
        assert events[-1]["stopReason"] == "end_turn"
        (home / "config.toml").write_text(hook(home, "sys.exit(2)", "UserPromptSubmit"))
        await client.notify("workspace/didChangeConfiguration", {"settings": {}})
        _, events = await send(client, session)
        assert "hook stopped this message" in next(e["message"] for e in events if e["type"] == "error")
        (home / "config.toml").write_text("")
        await client.notify("workspace/didChangeConfiguration", {"settings": {}})
        _, events = await send(client, session)
        assert events[-1]["stopReason"] == "end_turn"


BACK = json.loads(json.dumps(EDIT).replace("Cool cores", "@").replace("Cool-core clusters", "Cool cores").replace("@", "Cool-core clusters"))  # fmt: skip  # noqa: E501


async def test_a_grant_is_listed_and_revoked_at_once_and_for_good(server: Any, home: Path, workspace: Path) -> None:
    asked = Asked("workspace", "deny")
    script = {"turns": [EDIT, BACK, EDIT]}
    async with server(workspace, script=script, **asked.options) as client:
        session, _ = await send(client)
        listed = await client.request("astroresearch/permissions/list", {})
        ((rule, scope),) = [(g["rule"], g["scope"]) for g in listed["grants"]]
        assert rule.startswith("file_edit(")
        assert scope == "workspace"
        _, events = await send(client, session)
        assert ends(events)[-1] == ("file_edit", "completed")
        assert len(asked.details) == 1
    async with server(workspace, script=script, **asked.options) as client:  # kept, and taken back in a session in use
        assert await client.request("astroresearch/permissions/list", {}) == {
            "grants": [{"rule": rule, "scope": "workspace", "agent": "", "sessionId": ""}]
        }
        assert await client.request("astroresearch/permissions/revoke", {"rule": rule}) == {"revoked": True}
        assert await client.request("astroresearch/permissions/revoke", {"rule": rule}) == {"revoked": False}
        assert await client.request("astroresearch/permissions/list", {}) == {"grants": []}
        _, events = await send(client, session)
        assert ends(events)[-1] == ("file_edit", "denied")
        assert len(asked.details) == 2
    assert rule not in (home / "granted-permissions.toml").read_text()


async def test_a_session_grant_is_taken_back_while_its_turn_runs(server: Any, workspace: Path, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    again = {"calls": [{"name": "file_edit", "arguments": {
        "path": "main.tex", "old_string": "shine", "new_string": "glow"}}], "wait_for": str(gate)}  # fmt: skip
    asked = Asked("session", "deny")
    async with server(workspace, script=[*EDIT[:2], again, "Done."], **asked.options) as client:
        rules: list[str] = []

        async def take_back(value: dict[str, Any]) -> None:
            listed = await client.request("astroresearch/permissions/list", {})
            rules.extend(grant["rule"] for grant in listed["grants"])
            await client.request("astroresearch/permissions/revoke", {"rule": rules[0]})
            await anyio.Path(gate).touch()

        async with anyio.create_task_group() as group:

            def progress(value: dict[str, Any]) -> None:
                event = value.get("event", {})
                if event.get("type") == "tool.end" and "Cool-core" in json.dumps(event.get("metadata", {})):
                    group.start_soon(take_back, value)

            client.progress["t"] = progress
            await client.request("astroresearch/chat/send", {"text": "Change it.", "workDoneToken": "t"})
    assert len(rules) == 1
    assert len(asked.details) == 2
    text = (workspace / "main.tex").read_text()
    assert ("Cool-core clusters" in text, "shine" in text) == (True, True)


async def command(home: Path, *arguments: str) -> tuple[int, str]:
    env = {"PATH": os.environ["PATH"], "ASTRORESEARCH_HOME": str(home)}
    done = await anyio.run_process([sys.executable, "-m", "astroresearch", *arguments], check=False, env=env)
    return done.returncode, done.stdout.decode()


async def test_the_command_line_shows_the_log_and_takes_grants_back(server: Any, home: Path, workspace: Path) -> None:
    async with server(workspace, script=EDIT, **Asked("workspace").options) as client:
        session, _ = await send(client)
    code, text = await command(home, "sessions", "audit", session)
    assert code == 0
    assert [line.split()[2:4] for line in text.splitlines()] == [
        ["allowed", "read_file"], ["completed", "read_file"], ["allowed", "file_edit"], ["completed", "file_edit"],
    ]  # fmt: skip
    assert "you were asked" in text.splitlines()[2]
    where = ("--workspace", str(workspace))
    code, listed = await command(home, "permissions", "list", *where)
    assert code == 0
    assert listed.startswith("file_edit(")
    assert await command(home, "permissions", "revoke", listed.strip(), *where) == (0, "Taken back.\n")
    assert (await command(home, "permissions", "list", *where, "--json")) == (1, "")

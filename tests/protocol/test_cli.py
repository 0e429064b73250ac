"""The command line, as a person types it: real processes, the stand-in for the services."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from astroresearch.demo.papers import build_in_child
from astroresearch.demo.standin import Standin


class Result:
    """What a command did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def kinds(self) -> list[str]:
        return [row["type"] for row in self.rows]


@pytest.fixture
async def services() -> AsyncIterator[Mapping[str, str]]:
    async with Standin() as standin:
        yield dict(standin.env)


async def run(home: Path, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Result:
    variables = {"PATH": os.environ["PATH"], "ASTRORESEARCH_HOME": str(home), **(env or {})}
    command = [sys.executable, "-m", "astroresearch", *arguments]
    done = await anyio.run_process(command, check=False, env=variables, input=stdin)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


async def test_help_names_every_command(home: Path) -> None:
    result = await run(home, "--help")
    assert result.code == 0
    for name in (
        "serve",
        "demo",
        "ask",
        "add",
        "search",
        "passages",
        "target",
        "notes",
        "sessions",
        "export",
        "check",
        "doctor",
    ):
        assert name in result.out


async def test_doctor_says_what_is_missing_and_how_to_mend_it(home: Path) -> None:
    result = await run(home, "doctor")
    assert result.code == 0
    assert "ASTRORESEARCH_MODEL" in result.out
    assert "ADS_API_TOKEN" in result.out
    status = (await run(home, "doctor", "--json")).rows[0]
    assert status["type"] == "status"
    assert status["model"]["ok"] is False


async def test_doctor_reports_a_setting_that_does_not_fit(home: Path) -> None:
    (home / "config.toml").write_text('[agent]\nmax_steps = "many"\n[nonsense]\nx = 1\n')
    result = await run(home, "doctor")
    assert "agent.max_steps" in result.out
    assert "nonsense.x" in result.out


async def test_a_paper_from_pdf_to_quote_to_note_and_out_again(home: Path, tmp_path: Path) -> None:
    pdf = (await build_in_child(tmp_path / "pdfs"))[2]
    added = await run(home, "add", str(pdf), "--json")
    assert added.code == 0, added.out + added.err
    paper = next(row for row in added.rows if row["type"] == "paper")
    assert paper["state"] == "searchable"
    found = await run(home, "passages", "velocity dispersion", "--json")
    assert found.code == 0
    assert "164" in "".join(row["passage"]["text"] for row in found.rows if row["type"] == "passage")
    saved = await run(
        home, "notes", "add", "-", "--paper", paper["id"], "--tag", "x", "--json", stdin="Größe prüfen".encode()
    )
    note = saved.rows[0]
    assert note["text"] == "Größe prüfen"
    assert (await run(home, "notes", "list", "--query", "prüfen", "--json")).rows[0]["id"] == note["id"]
    assert "Größe prüfen" in (await run(home, "notes", "export")).out
    assert (await run(home, "notes", "delete", note["id"])).code == 0
    assert (await run(home, "notes", "show", note["id"])).code == 1
    assert (await run(home, "export")).out.startswith("@")


async def test_ask_runs_a_turn_and_its_session_can_be_shown(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps([{"calls": [{"name": "glob_files", "arguments": {"pattern": "*.tex"}}]}, {"text": "Two files."}])
    )
    env = {"ASTRORESEARCH_MODEL": "scripted", "ASTRORESEARCH_SCRIPT": str(script)}
    (tmp_path / "paper").mkdir()
    result = await run(home, "ask", "How many?", "--workspace", str(tmp_path / "paper"), "--json", env=env)
    assert result.code == 0
    assert result.kinds()[-1] == "answer"
    assert result.rows[-1]["answer"] == "Two files."
    events = [row["event"]["type"] for row in result.rows if row["type"] == "event"]
    assert events[0] == "session"
    assert events[-1] == "done"
    session = result.rows[-1]["sessionId"]
    shown = await run(home, "sessions", "show", session, "--json")
    assert [row["event"] for row in shown.rows] == [row["event"] for row in result.rows if row["type"] == "event"]
    assert "Two files." in (await run(home, "sessions", "export", session)).out
    assert (await run(home, "sessions", "list", "--json")).rows[0]["id"] == session
    assert (await run(home, "sessions", "delete", session)).code == 0


EDIT = [
    {"calls": [{"name": "read_file", "arguments": {"path": "a.tex"}}]},
    {"calls": [{"name": "file_edit", "arguments": {"path": "a.tex", "old_string": "old", "new_string": "new"}}]},
    {"text": "Done."},
]


@pytest.mark.parametrize("allowed", [False, True])
async def test_without_a_terminal_an_edit_is_refused_unless_it_was_allowed(
    home: Path, tmp_path: Path, allowed: bool
) -> None:
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "a.tex").write_text("old words")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(EDIT))
    env = {"ASTRORESEARCH_MODEL": "scripted", "ASTRORESEARCH_SCRIPT": str(script)}
    yes = ["--yes-to", "file_edit"] if allowed else []
    result = await run(home, "ask", "Edit.", "--workspace", str(folder), *yes, env=env)
    assert result.code == 0
    assert (folder / "a.tex").read_text() == ("new words" if allowed else "old words")


async def test_check_reports_findings_for_ci(home: Path, workspace: Path) -> None:
    assert (await run(home, "check", str(workspace))).code == 0
    text = (workspace / "main.tex").read_text()
    (workspace / "main.tex").write_text(text.replace("Fabian1994", "Fabian1995"))
    result = await run(home, "check", str(workspace), "--json")
    assert result.code == 1
    finding = next(row for row in result.rows if row["type"] == "finding")
    assert finding["file"] == "main.tex"
    assert finding["line"] == 3
    assert "Fabian1995" in finding["message"]


async def test_search_and_target_ask_the_services(home: Path, services: Mapping[str, str]) -> None:
    found = await run(home, "search", "cooling flows", "--json", env=services)
    assert found.code == 0, found.out + found.err
    assert "1994ARA&A..32..277F" in found.out
    target = await run(home, "target", "NGC 1275", "--json", env=services)
    assert target.code == 0
    assert target.rows[0]["raDeg"] == pytest.approx(49.95, abs=0.01)


async def test_an_unknown_object_is_not_found_and_says_who_was_asked(home: Path, services: Mapping[str, str]) -> None:
    result = await run(home, "target", "Nobody 12345", env=services)
    assert result.code == 1
    assert "Traceback" not in result.err


async def test_no_network_is_said_and_exits_with_three(home: Path) -> None:
    dead = {f"ASTRORESEARCH_{name}_URL": "http://127.0.0.1:9" for name in ("ADS", "ARXIV", "SESAME", "SIMBAD")}
    result = await run(home, "target", "M31", env=dead)
    assert result.code == 3
    assert "Traceback" not in result.err


async def test_wrong_use_exits_with_two(home: Path) -> None:
    assert (await run(home, "search")).code == 2
    assert (await run(home, "export", "--key", "nonsense")).code == 2


async def test_trust_is_by_real_path(home: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    result = await run(home, "trust", str(tmp_path / "link"), "--json")
    assert result.rows[0]["path"] == str((tmp_path / "real").resolve())


async def test_an_interrupt_stops_the_turn_and_leaves_no_traceback(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "late", "wait_for": str(tmp_path / "never")}]))
    env = {"PATH": os.environ["PATH"], "ASTRORESEARCH_HOME": str(home), "ASTRORESEARCH_MODEL": "scripted",
           "ASTRORESEARCH_SCRIPT": str(script)}  # fmt: skip
    # A test run in the background of a shell inherits ignored interrupts; a person's terminal does not.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from astroresearch.cli import main; main()"
    command = [sys.executable, "-c", program, "ask", "Wait.", "--json"]
    async with await anyio.open_process(command, env=env, cwd=tmp_path, start_new_session=True) as process:
        assert process.stdout
        assert process.stderr
        await process.stdout.receive()  # the turn has begun
        os.killpg(process.pid, signal.SIGINT)
        with anyio.move_on_after(20):
            await process.wait()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        errors = b"".join([chunk async for chunk in process.stderr])
    assert process.returncode == 130
    assert b"Traceback" not in errors
    shown = await run(home, "sessions", "list", "--json")
    events = await run(home, "sessions", "show", shown.rows[0]["id"], "--json")
    assert events.rows[-1]["event"]["type"] == "done"
    assert events.rows[-1]["event"]["stopReason"] in ("cancelled", "interrupted")


@pytest.mark.parametrize("what", [["notes", "list"], ["sessions", "list"], ["papers"]])
async def test_an_empty_list_says_so(home: Path, what: list[str]) -> None:
    result = await run(home, *what)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("The")
    rows = (await run(home, *what, "--json")).rows
    assert [row["type"] for row in rows] == ["notice"]

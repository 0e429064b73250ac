"""Neovim, configured by the lines of docs/user/neovim.md and nothing else, against the real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.editors.conftest import snippets

Start = Callable[..., Any]
ATTACHED = 'vim.wait(20000, function() return #vim.lsp.get_clients({ name = "astroresearch" }) == 1 end, 20)'
HELP = """
local T = {}
function T.client() return vim.lsp.get_clients({ name = "astroresearch" })[1] end
function T.request(method, params)
  local answer = assert(T.client():request_sync(method, params, 20000, vim.api.nvim_get_current_buf()))
  return answer.err and { error = answer.err } or answer.result
end
function T.at(line, column)
  return { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }
end
function T.place(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local from, to = line:find(text, 1, true)
    if from then return number - 1, from - 1, to end
  end
end
"""
FOUND = """function()
  return vim.iter(vim.diagnostic.get(0)):any(function(one) return one.message:find("Nobody2001") ~= nil end)
end"""
REPORTS = """
_G.reports = {}
vim.api.nvim_create_autocmd("LspProgress", { callback = function(ev) table.insert(_G.reports, ev.data.params.value) end })
"""


def lua(vim: Any, code: str) -> Any:
    return vim.exec_lua(HELP + code)


def ready(vim: Any) -> Any:
    assert vim.exec_lua(f"return {ATTACHED}"), "the server did not attach"
    return vim


def test_the_configuration_has_fifteen_lines() -> None:
    assert len(snippets("neovim.md", "lua")[0].strip().splitlines()) <= 15


def test_positions_are_utf8_and_a_hover_after_a_wide_letter_finds_its_key(nvim: Start) -> None:
    vim = ready(nvim([]))
    assert lua(vim, "return T.client().offset_encoding") == "utf-8"
    hover = lua(vim, 'local l, c = T.place("Fabian1994") return T.request("textDocument/hover", T.at(l, c + 2))')
    assert "Cooling Flows in Clusters of Galaxies" in hover["contents"]["value"]


def test_a_key_is_completed_by_author(nvim: Start) -> None:
    vim = ready(nvim([]))
    vim.exec_lua(r'vim.api.nvim_buf_set_lines(0, 4, 5, false, { "So does \\citep{fab" })')
    answer = lua(vim, r'return T.request("textDocument/completion", T.at(4, 18))')
    items = answer["items"] if isinstance(answer, dict) else answer
    assert "Fabian1994" in [item["label"] for item in items]


def test_an_undefined_key_is_found_and_offers_something(nvim: Start) -> None:
    vim = ready(nvim([]))
    found = vim.exec_lua(f"vim.wait(20000, {FOUND}, 20) return vim.diagnostic.get(0)")
    assert any("Nobody2001" in one["message"] for one in found), found
    actions = lua(
        vim,
        """local l, c, e = T.place("Nobody2001")
        local params = { textDocument = vim.lsp.util.make_text_document_params(),
          range = { start = { line = l, character = c }, ["end"] = { line = l, character = e } },
          context = { diagnostics = vim.lsp.diagnostic.from(vim.diagnostic.get(0)) } }
        return T.request("textDocument/codeAction", params)""",
    )
    assert isinstance(actions, list)
    assert actions, "no code action at an undefined key"


def test_ask_shows_progress_and_opens_the_answer(nvim: Start) -> None:
    script = [
        {"thought": "I read the manuscript.", "calls": [{"name": "read_file", "arguments": {"path": "main.tex"}}]},
        {"text": "It cools, says \\citep{Fabian1994}:\n\nwithin a Hubble time — cœur."},
    ]
    vim = ready(nvim(script, REPORTS))
    vim.command("Ask does the core cool?")
    assert vim.exec_lua('return vim.wait(30000, function() return vim.bo.filetype == "markdown" end, 20)')
    assert vim.current.buffer[:] == ["It cools, says \\citep{Fabian1994}:", "", "within a Hubble time — cœur."]
    reports = vim.exec_lua("return _G.reports")
    mine = [report for report in reports if "event" in report]
    assert mine[0]["kind"] == "begin"
    assert mine[0]["title"]
    assert mine[-1]["kind"] == "end"
    events = [report["event"] for report in mine]
    assert [event["seq"] for event in events] == list(range(events[0]["seq"], events[0]["seq"] + len(events)))
    types = [event["type"] for event in events]
    assert types[0] == "session"
    assert types[-1] == "done"
    assert {"thought.delta", "tool.start", "tool.end", "message.delta"} <= set(types)
    assert events[0]["question"] == "does the core cool?"
    ended = next(event for event in events if event["type"] == "tool.end")
    assert ended["status"] == "completed"


def test_a_stopped_question_answers_with_what_came(nvim: Start, tmp_path: Path) -> None:
    never = str(tmp_path / "never")
    script = [
        {"calls": [{"name": "read_file", "arguments": {"path": "main.tex"}}]},
        {"wait_for": never, "text": "late"},
    ]
    vim = ready(nvim(script, REPORTS + snippets("neovim.md", "lua")[1]))
    vim.command("Ask and wait")
    running = """vim.wait(20000, function()
      for _, report in ipairs(_G.reports) do if report.event and report.event.type == "tool.end" then return true end end
    end, 20)"""
    assert vim.exec_lua(f"return {running}"), "no tool ran"
    vim.command("AskStop")
    assert vim.exec_lua('return vim.wait(20000, function() return vim.bo.filetype == "markdown" end, 20)')
    last = vim.exec_lua("return _G.reports[#_G.reports]")
    assert last["kind"] == "end"
    assert last["event"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(("answer", "done"), [(1, True), (4, False), (0, False)])
def test_an_edit_asks_in_neovims_own_menu(nvim: Start, workspace: Path, answer: int, done: bool) -> None:
    edit = {"path": "main.tex", "old_string": "sec:intro", "new_string": "sec:start"}
    calls = [
        {"calls": [{"name": "read_file", "arguments": {"path": "main.tex"}}]},
        {"calls": [{"name": "file_edit", "arguments": edit}]},
        {"text": "Finished."},
    ]
    menu = f"""
    vim.fn.inputlist = function(lines) _G.menu = lines return {answer} end
    """
    vim = ready(nvim(calls, menu))
    vim.command("Ask rename the label")
    assert vim.exec_lua('return vim.wait(30000, function() return vim.bo.filetype == "markdown" end, 20)')
    menu_lines = vim.exec_lua("return _G.menu")
    assert any("Allow once" in line for line in menu_lines), menu_lines
    assert any("main.tex" in line for line in menu_lines), menu_lines
    on_disk = (workspace / "main.tex").read_text("utf-8")
    in_buffer = vim.exec_lua('return vim.api.nvim_buf_get_lines(vim.fn.bufnr("main.tex"), 0, -1, false)')
    assert ("sec:start" in on_disk or any("sec:start" in line for line in in_buffer)) is done


def test_every_request_has_a_command(nvim: Start, workspace: Path) -> None:
    vim = ready(nvim([]))
    pdf = str(workspace / "cooling.pdf")
    imported = vim.exec_lua(HELP + 'return T.request("astroresearch/papers/import", { paths = { ... } })', pdf)
    assert not imported["failed"]
    note = lua(
        vim,
        """return T.request("workspace/executeCommand",
          { command = "astroresearch.notes.create", arguments = { { text = "check the cooling time" } } })""",
    )
    assert note["text"] == "check the cooling time"

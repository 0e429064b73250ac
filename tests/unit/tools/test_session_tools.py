"""todo_write, load_skill, ask_user and subagent; the registry, its pages and the result store."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from astroresearch.engine.tool import ToolContext
from astroresearch.errors import InvalidInput, NotFound, StoreUnavailable
from astroresearch.tools import pages
from astroresearch.tools.delegation.subagent import Subagent, SubagentArguments
from astroresearch.tools.persist import FileResults
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.registry import standard
from astroresearch.tools.session.ask_user import AskUser, AskUserArguments
from astroresearch.tools.session.load_skill import LoadSkill, LoadSkillArguments
from astroresearch.tools.session.todo_write import TodoWrite, TodoWriteArguments
from tests.fakes.services import FakeQuestions, FakeSkills, FakeSpawner, FakeTodos, FolderWorkspace, context, services

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext[ToolServices]:
    return context(services(FolderWorkspace(tmp_path)))


def todo(*items: dict[str, Any]) -> TodoWriteArguments:
    return TodoWriteArguments.model_validate({"items": [{"content": "work", **item} for item in items]})


async def test_plan_is_stored(ctx: ToolContext[ToolServices]) -> None:
    output = await TodoWrite().execute(
        todo({"id": "a", "status": "completed"}, {"id": "b", "status": "in_progress", "blocked_by": ["a"]}), ctx
    )
    assert "1 of 2 tasks left. Next: b" in output.content
    todos = ctx.services.todos
    assert isinstance(todos, FakeTodos)
    assert todos.lists["s1"][1] == {"id": "b", "content": "work", "status": "in_progress", "blockedBy": ["a"]}


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([{"id": "a", "blocked_by": ["b"]}, {"id": "b", "blocked_by": ["a"]}], "circle"),
        ([{"id": "a", "blocked_by": ["a"]}], "circle"),
        ([{"id": "a", "blocked_by": ["z"]}], "not in the list"),
        ([{"id": "a"}, {"id": "a"}], "repeat"),
        ([{"id": "a", "status": "in_progress"}, {"id": "b", "status": "in_progress"}], "At most one"),
        ([{"id": "a"}, {"id": "b", "status": "in_progress", "blocked_by": ["a"]}], "before a"),
    ],
)
async def test_what_is_no_plan_is_refused(
    ctx: ToolContext[ToolServices], items: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        await TodoWrite().execute(todo(*items), ctx)


async def test_skill(ctx: ToolContext[ToolServices]) -> None:
    output = await LoadSkill().execute(LoadSkillArguments(name="check-citations"), ctx)
    assert "Check every cite key." in output.content
    assert output.tainted is False
    ctx.services.skills = FakeSkills(trusted=False)
    assert (await LoadSkill().execute(LoadSkillArguments(name="check-citations"), ctx)).tainted is True
    with pytest.raises(NotFound, match="There are: check-citations"):
        await LoadSkill().execute(LoadSkillArguments(name="nope"), ctx)


async def test_ask_user(ctx: ToolContext[ToolServices]) -> None:
    args = AskUserArguments(question="Which cluster?", choices=["Perseus", "Virgo"])
    assert "the second one" in (await AskUser().execute(args, ctx)).content
    ctx.services.questions = FakeQuestions(answer=None)
    assert (await AskUser().execute(args, ctx)).is_error
    assert await AskUser().check_permissions(args, ctx) is None
    ctx.silent = True
    rule = await AskUser().check_permissions(args, ctx)
    assert rule is not None
    assert rule.decision == "deny"
    assert AskUser.interrupt_behavior == "block"


async def test_subagent(ctx: ToolContext[ToolServices]) -> None:
    output = await Subagent().execute(SubagentArguments(task="Read both papers", name="reader"), ctx)
    assert "Two papers agree." in output.content
    assert "rag_search (completed)" in output.content
    assert output.tainted is True
    assert output.metadata["sessionId"] == "s2"
    spawner = ctx.services.spawner
    assert isinstance(spawner, FakeSpawner)
    assert spawner.spawned == [("Read both papers", "reader", 5, True)]


async def test_subagent_that_may_write_asks_and_is_one_deep(ctx: ToolContext[ToolServices]) -> None:
    tool = Subagent()
    rule = await tool.check_permissions(SubagentArguments(task="x", may_write=True), ctx)
    assert rule is not None
    assert rule.decision == "ask"
    assert await tool.check_permissions(SubagentArguments(task="x"), ctx) is None
    ctx.depth = 1
    rule = await tool.check_permissions(SubagentArguments(task="x"), ctx)
    assert rule is not None
    assert rule.decision == "deny"
    with pytest.raises(ValidationError):
        SubagentArguments(task="x", max_steps=11)


def test_every_tool_has_its_file_and_its_page() -> None:
    registry = standard()
    assert len(registry.names()) == 16
    for name in registry.names():
        tool = registry.get(name)
        assert tool is not None
        assert Path(inspect.getfile(type(tool))).stem == name
        page = REPO / "docs" / "tools" / f"{name}.md"
        assert page.is_file(), f"{page} is missing; run `python -m astroresearch.tools.pages`"
        assert page.read_text("utf-8") == pages.page(tool), f"{page} is old; run `python -m astroresearch.tools.pages`"
    found = {path.stem for path in (REPO / "docs" / "tools").glob("*.md")} - {"README"}
    assert found == set(registry.names())


def test_schemas_describe_every_parameter() -> None:
    for definition in standard().definitions():
        for name, schema in definition.parameters["properties"].items():
            assert schema.get("description"), f"{definition.name}.{name}"


async def test_long_results_are_kept_under_our_own_name(tmp_path: Path) -> None:
    results = FileResults(tmp_path / "tool-results")
    content = "head " + "x" * 10_000 + " tail"
    stub = await results.persist(content, tool="grep_files", call_id="../../evil")
    path = Path(stub.split('path="')[1].split('"')[0])
    assert path.parent == tmp_path / "tool-results"
    assert path.read_text() == content
    assert os.stat(path).st_mode & 0o077 == 0
    assert 'characters="10010"' in stub
    assert len(stub) < 2_500
    assert stub.rstrip().endswith("</persisted-output>")
    assert await results.persist("a" * 5_000, tool="t", call_id="same") != await results.persist(
        "a" * 5_000, tool="t", call_id="same"
    )


async def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="could not be saved"):
        await FileResults(tmp_path / "file").persist("x", tool="t", call_id="c")

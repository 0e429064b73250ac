"""read_file, grep_files, glob_files and file_edit on a real folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from astroresearch.engine.tool import ToolContext
from astroresearch.errors import AstroResearchError, Conflict, InvalidInput, NotAllowed, NotFound
from astroresearch.tools.files.file_edit import FileEdit, FileEditArguments
from astroresearch.tools.files.glob_files import GlobFiles, GlobFilesArguments
from astroresearch.tools.files.grep_files import GrepFiles, GrepFilesArguments
from astroresearch.tools.files.read_file import ReadFile, ReadFileArguments
from astroresearch.tools.ports import ToolServices
from tests.fakes.services import FolderWorkspace, context, services

TEXT = "\\documentclass{aastex7}\n\\begin{document}\nCooling flows \\citep{fabian}.\n\\end{document}\n"


@pytest.fixture
def workspace(tmp_path: Path) -> FolderWorkspace:
    root = tmp_path / "paper"
    (root / "sections").mkdir(parents=True)
    (root / "main.tex").write_text(TEXT)
    (root / "sections" / "intro.tex").write_text("Intro text about cooling.\n")
    (root / "refs.bib").write_text("@article{fabian, note = {cooling}}\n")
    return FolderWorkspace(root)


@pytest.fixture
def ctx(workspace: FolderWorkspace) -> ToolContext[ToolServices]:
    return context(services(workspace))


async def read(ctx: ToolContext[ToolServices], path: str = "main.tex", **args: int) -> str:
    return (await ReadFile().execute(ReadFileArguments(path=path, **args), ctx)).content


async def test_read_numbers_lines_and_remembers(ctx: ToolContext[ToolServices]) -> None:
    content = await read(ctx)
    assert "lines 1-4 of 4" in content
    assert "     3\tCooling flows" in content
    assert "unchanged since you read them" in await read(ctx)


async def test_a_changed_file_is_read_again(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    await read(ctx)
    (workspace.folder / "main.tex").write_text(TEXT + "more\n")
    assert "more" in await read(ctx)


async def test_read_sees_the_unsaved_buffer(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    workspace.buffers[workspace.resolve("main.tex")] = "unsaved words"
    content = await read(ctx)
    assert "unsaved words" in content
    assert "as it stands unsaved" in content


async def test_read_in_parts(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    (workspace.folder / "long.tex").write_text("\n".join(f"line {n}" for n in range(1, 101)))
    assert "[95 more lines: offset=6]" in await read(ctx, "long.tex", limit=5)
    assert "   100\tline 100" in await read(ctx, "long.tex", offset=96)
    with pytest.raises(InvalidInput, match="100 lines"):
        await read(ctx, "long.tex", offset=101)


async def test_a_line_longer_than_an_answer_can_be_read_whole(
    ctx: ToolContext[ToolServices], workspace: FolderWorkspace
) -> None:
    words = "".join(f"w{n:05} " for n in range(5_000))
    (workspace.folder / "one.tex").write_text(words + "\nlast\n")
    seen = ""
    column = 1
    for _ in range(10):
        content = await read(ctx, "one.tex", column=column)
        seen += content.split("\t", 1)[1].split("\n")[0]
        if "goes on" not in content:
            break
        column = int(content.rsplit("column=", 1)[1].rstrip("]\n").split("]")[0])
    assert seen == words


async def test_files_from_elsewhere_are_a_strangers(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    tool = ReadFile()
    assert (await tool.execute(ReadFileArguments(path="main.tex"), ctx)).tainted is False
    assert (await tool.execute(ReadFileArguments(path="refs.bib"), ctx)).tainted is True
    workspace.trusted = False
    assert (await tool.execute(ReadFileArguments(path="sections/intro.tex"), ctx)).tainted is True


@pytest.mark.parametrize("path", ["missing.tex", "../outside.tex", "/etc/passwd"])
async def test_read_refuses_with_a_sentence(ctx: ToolContext[ToolServices], path: str) -> None:
    with pytest.raises((NotFound, NotAllowed)):
        await read(ctx, path)


def test_rules_see_the_canonical_path(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    names = FileEdit().rule_names(FileEditArguments(path="sections/../main.tex", old_string="a", new_string="b"), ctx)
    assert names == ("main.tex", str(workspace.folder / "main.tex"))
    assert ReadFile().rule_names(ReadFileArguments(path="../x"), ctx) == ("../x",)


async def grep(ctx: ToolContext[ToolServices], pattern: str, **args: object) -> str:
    return (await GrepFiles().execute(GrepFilesArguments.model_validate({"pattern": pattern, **args}), ctx)).content


async def test_grep_finds_lines(ctx: ToolContext[ToolServices]) -> None:
    content = await grep(ctx, r"cooling", ignore_case=True)
    assert "main.tex:3: Cooling flows" in content
    assert "intro.tex:1:" in content
    assert "refs.bib" not in await grep(ctx, "cooling", glob="*.tex")
    assert "intro.tex" in await grep(ctx, "cooling", path="sections/intro.tex")
    assert "No line matches" in await grep(ctx, "quasar")


async def test_grep_says_what_is_wrong_with_a_pattern(ctx: ToolContext[ToolServices]) -> None:
    with pytest.raises(InvalidInput, match="not a regular expression"):
        await grep(ctx, "(unclosed")


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b", r"(.*)*\1x", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
async def test_a_catastrophic_pattern_ends(
    ctx: ToolContext[ToolServices], workspace: FolderWorkspace, pattern: str
) -> None:
    (workspace.folder / "bomb.tex").write_text("a" * 40 + "!\n")
    content = await grep(ctx, pattern, glob="bomb.tex")
    assert "Too slow" in content or "No line" in content or "bomb.tex:1" in content


async def test_glob(ctx: ToolContext[ToolServices]) -> None:
    async def run(pattern: str, **args: object) -> str:
        return (await GlobFiles().execute(GlobFilesArguments.model_validate({"pattern": pattern, **args}), ctx)).content

    assert len((await run("*.tex")).splitlines()) == 2
    assert "refs.bib" in await run("*.{bib,cls}")
    assert "intro.tex" in await run("sections/*")
    assert "No file" in await run("*.cls")
    assert "more; narrow" in await run("**/*", limit=1)
    with pytest.raises(InvalidInput, match="wildcards"):
        await run("*" * 20)


async def edit(ctx: ToolContext[ToolServices], old: str, new: str, **args: object) -> str:
    given = {"path": "main.tex", "old_string": old, "new_string": new, **args}
    return (await FileEdit().execute(FileEditArguments.model_validate(given), ctx)).content


async def test_edit_needs_a_read(ctx: ToolContext[ToolServices]) -> None:
    with pytest.raises(Conflict, match="has not been read"):
        await edit(ctx, "Cooling", "Heating")


async def test_edit_replaces_and_shows_the_diff(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    await read(ctx)
    args = FileEditArguments(path="main.tex", old_string="Cooling", new_string="Heating")
    diff = await FileEdit().describe(args, ctx)
    assert "-Cooling flows" in diff
    assert "+Heating flows" in diff
    assert workspace.writes == []
    await edit(ctx, "Cooling", "Heating")
    assert "Heating flows" in (workspace.folder / "main.tex").read_text()
    await edit(ctx, "Heating", "Warming")
    assert len(workspace.writes) == 2


async def test_edit_goes_to_the_buffer(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    path = workspace.resolve("main.tex")
    workspace.buffers[path] = "unsaved words"
    await read(ctx)
    await edit(ctx, "unsaved", "new")
    assert workspace.buffers[path] == "new words"
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ("absent", "x", NotFound, "does not stand"),
        ("Cooling flow \\citep{fabian}.", "x", NotFound, "Line 3 is similar"),
        ("document", "x", InvalidInput, "times"),
        ("Cooling", "Cooling", InvalidInput, "the same"),
    ],
)
async def test_edit_says_what_is_wrong(
    ctx: ToolContext[ToolServices],
    workspace: FolderWorkspace,
    old: str,
    new: str,
    error: type[AstroResearchError],
    says: str,
) -> None:
    await read(ctx)
    with pytest.raises(error, match=says):
        await edit(ctx, old, new)
    assert workspace.writes == []


async def test_edit_of_a_file_that_changed_is_refused(
    ctx: ToolContext[ToolServices], workspace: FolderWorkspace
) -> None:
    await read(ctx)
    (workspace.folder / "main.tex").write_text(TEXT + "% somebody else\n")
    with pytest.raises(Conflict, match="changed since"):
        await edit(ctx, "Cooling", "Heating")


async def test_edit_keeps_the_line_ends(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    path = workspace.folder / "main.tex"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    workspace.buffers[path] = "one\r\ntwo\r\nthree\r\n"
    await read(ctx)
    await edit(ctx, "one\ntwo", "1\n1.5\n2")
    assert workspace.buffers[path] == "1\r\n1.5\r\n2\r\nthree\r\n"


async def test_lines_are_counted_as_editors_do(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    (workspace.folder / "odd.tex").write_text("a\x0cb\u2028c\nlast\n")
    assert "lines 1-2 of 2" in await read(ctx, "odd.tex")
    assert "odd.tex:2: last" in await grep(ctx, "last", path="odd.tex")


async def test_names_of_an_untrusted_folder_are_a_strangers(
    ctx: ToolContext[ToolServices], workspace: FolderWorkspace
) -> None:
    args = GlobFilesArguments(pattern="*")
    assert (await GlobFiles().execute(args, ctx)).tainted is False
    workspace.trusted = False
    assert (await GlobFiles().execute(args, ctx)).tainted is True


async def test_replace_all(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    await read(ctx)
    assert "2 places" in await edit(ctx, "document}", "document }", replace_all=True)


async def test_settings_are_never_edited(ctx: ToolContext[ToolServices], workspace: FolderWorkspace) -> None:
    (workspace.folder / ".vscode").mkdir()
    (workspace.folder / ".vscode" / "settings.json").write_text("{}")
    await read(ctx, ".vscode/settings.json")
    with pytest.raises(NotAllowed, match="settings"):
        await edit(ctx, "{}", "{1}", path=".vscode/settings.json")

"""Changing a passage of a file, as an edit that the user sees, approves and can undo."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from astroresearch.engine.tool import Arguments, Effect, Kind, ReadState, Tool, ToolContext, ToolOutput
from astroresearch.errors import Conflict, InvalidInput, NotFound
from astroresearch.tools.paths import path_names
from astroresearch.tools.ports import FileContent, ToolServices
from astroresearch.tools.words import clip


class FileEditArguments(Arguments):
    """What becomes what."""

    path: str = Field(description="File to change, absolute or relative to the workspace folder.")
    old_string: str = Field(
        min_length=1, description="The text to replace, exactly as it stands in the file, without line numbers."
    )
    new_string: str = Field(description="The text that takes its place.")
    replace_all: bool = Field(False, description="Replace every occurrence; otherwise old_string must be unique.")


@dataclass(frozen=True, slots=True)
class _Edit:
    file: FileContent
    text: str
    "After the edit."
    count: int
    "Places that change."


class FileEdit(Tool[FileEditArguments, ToolServices]):
    """One replacement in one file."""

    name = "file_edit"
    description = (
        "Replaces text in a file of the workspace. Read the file first. old_string must stand in it exactly once unless "
        "replace_all is set; give enough of the surroundings to make it unique. The user may be asked and sees the change."
    )
    kind: ClassVar[Kind] = "edit"
    arguments = FileEditArguments
    interrupt_behavior: ClassVar[Literal["cancel", "block"]] = "block"
    effect: ClassVar[Effect] = "workspace_write"
    default_decision = "ask"

    def title(self, args: FileEditArguments) -> str:
        """Names the file."""
        return f"Edit {args.path}"

    def resources(self, args: FileEditArguments) -> frozenset[str]:
        """Edits of different files may overlap."""
        return frozenset({args.path})

    def rule_names(self, args: FileEditArguments, context: ToolContext[ToolServices]) -> tuple[str, ...]:
        """The canonical path."""
        return path_names(args.path, context, write=True)

    async def describe(self, args: FileEditArguments, context: ToolContext[ToolServices]) -> str:
        """The diff."""
        edit = await _edited(args, context)
        return unified(edit.file, edit.text)

    async def execute(self, args: FileEditArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Checks that the file is as it was read, and writes."""
        edit = await _edited(args, context)
        file = edit.file
        workspace = context.services.workspace
        label = f"AstroResearch: {clip(args.new_string.strip() or 'remove text', 60)}"
        written = await workspace.replace(file.path, old=file, new_text=edit.text, label=label)
        # Its lines have moved, so nothing counts as read but the fact that the agent knows this version.
        context.reads[str(file.path)] = ReadState(written.version)
        diff = unified(file, edit.text)
        return ToolOutput(
            f"Edited {file.path.name} ({edit.count} {'place' if edit.count == 1 else 'places'}).\n{clip(diff, 1_500)}",
            metadata={"path": str(file.path), "diff": diff},
        )


async def _edited(args: FileEditArguments, context: ToolContext[ToolServices]) -> _Edit:
    """The edit, checked but not done."""
    workspace = context.services.workspace
    path = workspace.resolve(args.path, write=True)
    file = await workspace.read(path)
    state = context.reads.get(str(path))
    if state is None:
        raise Conflict(f"{path.name} has not been read in this session.", hint="Read it with read_file first.")
    if state.version != file.version:
        raise Conflict(f"{path.name} has changed since it was read.", hint="Read it again, then edit.")
    old, new = _with_line_ends(args.old_string, args.new_string, file.text)
    if old == new:
        raise InvalidInput("old_string and new_string are the same.", field="new_string")
    count = file.text.count(old)
    if count == 0:
        raise NotFound(f"old_string does not stand in {path.name}.{_nearest(args.old_string, file.text)}")
    if count > 1 and not args.replace_all:
        raise InvalidInput(
            f"old_string stands {count} times in {path.name}.",
            field="old_string",
            hint="Give more of the surrounding text, or set replace_all.",
        )
    return _Edit(file, file.text.replace(old, new), count)


def _with_line_ends(old: str, new: str, text: str) -> tuple[str, str]:
    """Both with the file's line ends: read_file shows none, so a model writes LF."""
    if text.count("\r\n") * 2 <= text.count("\n"):
        return old, new
    converted = re.sub(r"\r?\n", "\r\n", old)
    return (converted if converted in text else old), re.sub(r"\r?\n", "\r\n", new)


def _nearest(wanted: str, text: str) -> str:
    first = next((line.strip() for line in wanted.splitlines() if line.strip()), "")
    lines = {line.strip(): number for number, line in enumerate(text.splitlines()[:5_000], 1)}
    near = difflib.get_close_matches(first[:500], list(lines)[:2_000], n=1, cutoff=0.75) if first else []
    return f" Line {lines[near[0]]} is similar: {clip(near[0], 200)}" if near else ""


def unified(file: FileContent, text: str) -> str:
    """The change as a unified diff."""
    name = file.path.name
    lines = difflib.unified_diff(file.text.splitlines(), text.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=2)
    return "\n".join(lines)

"""Reading a file as the user sees it, unsaved changes included."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.engine.tool import Arguments, Kind, ReadState, Tool, ToolContext, ToolOutput
from astroresearch.errors import InvalidInput
from astroresearch.tools.paths import is_foreign, path_names
from astroresearch.tools.ports import FileContent, ToolServices
from astroresearch.tools.words import PAGE_BUDGET, lines_of


class ReadFileArguments(Arguments):
    """Which lines of which file."""

    path: str = Field(description="File to read, absolute or relative to the workspace folder.")
    offset: int = Field(1, ge=1, description="First line to read, counted from 1.")
    limit: int = Field(400, ge=1, le=2_000, description="Lines to read at most.")
    column: int = Field(1, ge=1, description="Where to start in the first line, for lines too long to show whole.")


class ReadFile(Tool[ReadFileArguments, ToolServices]):
    """The lines of a file with their numbers."""

    name = "read_file"
    description = (
        "Reads a text file of the workspace, the library or the skills, with line numbers; open files are read as they "
        "stand in the editor, unsaved changes included. Long files come in parts: go on with the offset that the answer names."
    )
    kind: ClassVar[Kind] = "read"
    arguments = ReadFileArguments
    max_result_chars: ClassVar[int | None] = 2 * PAGE_BUDGET
    default_decision = "allow"

    def title(self, args: ReadFileArguments) -> str:
        """Names the file."""
        return f"Read {args.path}"

    def is_concurrency_safe(self, args: ReadFileArguments) -> bool:
        """Reading never disturbs."""
        return True

    def rule_names(self, args: ReadFileArguments, context: ToolContext[ToolServices]) -> tuple[str, ...]:
        """The canonical path."""
        return path_names(args.path, context)

    async def execute(self, args: ReadFileArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Reads the lines, or says that they are unchanged since they were read last."""
        path = context.services.workspace.resolve(args.path)
        file = await context.services.workspace.read(path)
        lines = lines_of(file.text)
        if args.offset > max(len(lines), 1):
            raise InvalidInput(
                f"{path.name} has {len(lines)} lines; line {args.offset} is past its end.", field="offset"
            )
        text, last = numbered(lines, args.offset, args.limit, args.column)
        span = (args.offset, last)
        metadata = {"path": str(path), "startLine": span[0], "endLine": last}
        foreign = is_foreign(file, context.services.workspace)
        state = context.reads.get(str(path))
        if args.column == 1 and state is not None and state.version == file.version and span in state.ranges:
            content = f"{path.name}, lines {span[0]}-{last}: unchanged since you read them in this session."
            return ToolOutput(content, metadata={**metadata, "unchanged": True}, tainted=False)
        known = state.ranges if state is not None and state.version == file.version else ()
        context.reads[str(path)] = ReadState(file.version, (*known, span))
        return ToolOutput(
            _headed(file, text, span, len(lines)),
            metadata=metadata,
            tainted=foreign,
            taint_source=f"the file {path.name}",
        )


def numbered(lines: list[str], first: int, limit: int, column: int = 1) -> tuple[str, int]:
    """Lines with numbers up to the budget, and the number of the last one shown."""
    out: list[str] = []
    size = 0
    number = first - 1
    for number in range(first, min(first + limit, len(lines) + 1)):
        start = column - 1 if number == first else 0
        line = lines[number - 1][start:]
        room = PAGE_BUDGET - size
        if len(line) + 8 > room:
            if out:
                return "\n".join(out), number - 1
            stop = start + room
            out.append(f"{number:>6}\t{line[:room]}\n[line {number} goes on: offset={number}, column={stop + 1}]")
            return "\n".join(out), number
        out.append(f"{number:>6}\t{line}")
        size += len(line) + 8
    return "\n".join(out), max(number, first)


def _headed(file: FileContent, text: str, span: tuple[int, int], total: int) -> str:
    if not total:
        return f"{file.path}: the file is empty."
    state = ", as it stands unsaved in the editor" if file.is_buffer else ""
    rest = f"\n[{total - span[1]} more lines: offset={span[1] + 1}]" if span[1] < total else ""
    return f"{file.path}, lines {span[0]}-{span[1]} of {total}{state}\n{text}{rest}"

"""Finding lines by a regular expression, with a time limit: the pattern comes from a model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.to_thread
import regex
from pydantic import Field
from wcmatch import glob

from astroresearch.engine.tool import Arguments, Kind, Tool, ToolContext, ToolOutput
from astroresearch.errors import AstroResearchError, InvalidInput
from astroresearch.tools.paths import is_foreign, path_names
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import BUDGET, clip, lines_of

FILE_LIMIT_S = 1.0
"Seconds of matching in one file; a file that takes longer is named and left out."
TOTAL_LIMIT_S = 10.0
_MAX_CHARS = 4_000_000
_BINARY = frozenset(
    {".pdf", ".png", ".jpg", ".jpeg", ".gif", ".eps", ".ps", ".fits", ".gz", ".zip", ".tar", ".npy", ".npz", ".h5", ".hdf5",
     ".pyc", ".so", ".db", ".sqlite", ".ttf", ".otf", ".pfb", ".xz", ".bz2", ".tif", ".tiff", ".mp4"}
)  # fmt: skip


class GrepFilesArguments(Arguments):
    """What to look for and where."""

    pattern: str = Field(
        min_length=1, max_length=1_000, description="Regular expression (Python's syntax), matched on each line."
    )
    path: str = Field("", description="File or folder to search; the workspace folder if empty.")
    glob: str = Field("", max_length=300, description="Only files whose path matches, such as `*.tex`.")
    ignore_case: bool = Field(False, description="Upper and lower case are the same.")
    limit: int = Field(50, ge=1, le=500, description="Lines to list at most.")


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int
    text: str


class GrepFiles(Tool[GrepFilesArguments, ToolServices]):
    """The lines that match a regular expression."""

    name = "grep_files"
    description = (
        "Searches the lines of text files for a regular expression and lists `path:line: text`. Sees unsaved changes of open "
        "files. For the text of papers use rag_search."
    )
    kind: ClassVar[Kind] = "search"
    arguments = GrepFilesArguments
    default_decision = "allow"

    def title(self, args: GrepFilesArguments) -> str:
        """Names the pattern."""
        return f"Search files for {clip(args.pattern, 60)}"

    def is_concurrency_safe(self, args: GrepFilesArguments) -> bool:
        """Reading never disturbs."""
        return True

    def rule_names(self, args: GrepFilesArguments, context: ToolContext[ToolServices]) -> tuple[str, ...]:
        """The canonical path."""
        return path_names(args.path, context)

    async def execute(self, args: GrepFilesArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Searches file by file until the limit or the deadline."""
        pattern = compiled(args.pattern, ignore_case=args.ignore_case)
        workspace = context.services.workspace
        base = workspace.resolve(args.path or str(workspace.roots[0]))
        paths = _chosen(await workspace.walk(base), base, args.glob) if base.is_dir() else [base]
        found: list[_Line] = []
        slow: list[str] = []
        foreign = False
        deadline = anyio.current_time() + TOTAL_LIMIT_S
        for index, path in enumerate(paths):
            left = deadline - anyio.current_time()
            if left <= 0:
                slow.append(f"{len(paths) - index} further files")
                break
            try:
                file = await workspace.read(path)
            except AstroResearchError:
                continue
            room = args.limit + 1 - len(found)
            try:
                lines = await anyio.to_thread.run_sync(_search, pattern, path, file.text, room, min(left, FILE_LIMIT_S))
            except TimeoutError:
                slow.append(path.name)
                continue
            foreign = foreign or (bool(lines) and is_foreign(file, workspace))
            found += lines
            if len(found) > args.limit:
                break
        return _answer(args, found, slow, foreign, len(paths))


def compiled(pattern: str, *, ignore_case: bool = False) -> regex.Pattern[str]:
    """The pattern, ready to match.

    Raises:
        InvalidInput: It is not a regular expression.
    """
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise InvalidInput(
            f"The pattern is not a regular expression: {error}.",
            field="pattern",
            hint="Escape special characters with \\.",
        ) from error


def _search(pattern: regex.Pattern[str], path: Path, text: str, room: int, limit_s: float) -> list[_Line]:
    if "\0" in text[:8_000]:
        return []
    found: list[_Line] = []
    deadline = time.monotonic() + limit_s
    for number, line in enumerate(lines_of(text[:_MAX_CHARS]), 1):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        # `concurrent` lets other threads run while it matches; the event loop is one of them.
        if pattern.search(line, timeout=left, concurrent=True):
            found.append(_Line(path, number, line))
            if len(found) >= room:
                break
    return found


def _chosen(files: Sequence[Path], base: Path, wanted: str) -> list[Path]:
    text = [path for path in files if path.suffix.lower() not in _BINARY]
    if not wanted:
        return text
    if wanted.count("*") + wanted.count("?") > 8:
        raise InvalidInput("The glob has more than 8 wildcards.", field="glob")
    deep = wanted if "/" in wanted else f"**/{wanted}"
    flags = glob.GLOBSTAR | glob.BRACE | glob.IGNORECASE
    return [path for path in text if glob.globmatch(path.relative_to(base).as_posix(), deep, flags=flags)]


def _answer(args: GrepFilesArguments, found: list[_Line], slow: list[str], foreign: bool, looked: int) -> ToolOutput:
    notes = []
    if slow:
        notes.append(f"[Too slow to search with this pattern: {', '.join(slow[:5])}. Make it simpler.]")
    shown: list[str] = []
    size = 0
    for line in found[: args.limit]:
        text = f"{line.path}:{line.number}: {clip(line.text.strip(), 300)}"
        size += len(text) + 1
        if size > BUDGET:
            break
        shown.append(text)
    if len(shown) < len(found):
        notes.append("[There are more matches; narrow the pattern, the path or the glob.]")
    if not found:
        shown.append(f"No line matches {args.pattern!r} in {looked} files.")
    matches = [
        {"path": str(line.path), "line": line.number, "text": clip(line.text, 300)} for line in found[: len(shown)]
    ]
    return ToolOutput(
        "\n".join([*shown, *notes]),
        is_error=bool(slow) and not found,
        metadata={"matches": matches},
        tainted=foreign,
        taint_source="files from elsewhere",
    )

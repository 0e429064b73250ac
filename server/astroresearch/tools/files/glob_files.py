"""Finding files by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import anyio.to_thread
from pydantic import Field
from wcmatch import glob

from astroresearch.engine.tool import Arguments, Kind, Tool, ToolContext, ToolOutput
from astroresearch.errors import AstroResearchError, InvalidInput
from astroresearch.tools.paths import is_own, path_names
from astroresearch.tools.ports import ToolServices, Workspace
from astroresearch.tools.words import BUDGET

_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.IGNORECASE
_MAX_STARS = 8
"More wildcards make matching slow on purpose-made names."


class GlobFilesArguments(Arguments):
    """What to look for, and below which folder."""

    pattern: str = Field(
        max_length=300, description="Glob on the path below the folder: `**/*.tex`, `sections/*.{tex,bib}`."
    )
    path: str = Field("", description="Folder to search; the workspace folder if empty.")
    limit: int = Field(100, ge=1, le=1_000, description="Files to list at most.")


class GlobFiles(Tool[GlobFilesArguments, ToolServices]):
    """The files whose path matches a glob."""

    name = "glob_files"
    description = (
        "Lists files whose path matches a glob pattern, sorted by name. Use it to find out what a project consists of."
    )
    kind: ClassVar[Kind] = "search"
    arguments = GlobFilesArguments
    default_decision = "allow"

    def title(self, args: GlobFilesArguments) -> str:
        """Names the pattern."""
        return f"List files {args.pattern}"

    def is_concurrency_safe(self, args: GlobFilesArguments) -> bool:
        """Reading never disturbs."""
        return True

    def rule_names(self, args: GlobFilesArguments, context: ToolContext[ToolServices]) -> tuple[str, ...]:
        """The canonical path."""
        return path_names(args.path, context)

    async def execute(self, args: GlobFilesArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Matches every file below the folder."""
        workspace = context.services.workspace
        base = workspace.resolve(args.path or str(workspace.roots[0]))
        files = await workspace.walk(base)
        found = await anyio.to_thread.run_sync(matching, files, base, args.pattern)
        if not found:
            return ToolOutput(
                f"No file below {base} matches {args.pattern!r} ({len(files)} files looked at).", metadata={"paths": []}
            )
        lines: list[str] = []
        size = 0
        for path in found[: args.limit]:
            size += len(str(path)) + 1
            if size > BUDGET:
                break
            lines.append(str(path))
        if len(lines) < len(found):
            lines.append(f"[{len(found) - len(lines)} more; narrow the pattern]")
        return ToolOutput(
            "\n".join(lines),
            metadata={"paths": [str(path) for path in found[: args.limit]]},
            tainted=await _foreign(found, workspace),
            taint_source="file names of a folder that is not trusted",
        )


async def _foreign(found: Sequence[Path], workspace: Workspace) -> bool:
    """Whether the names come from elsewhere; the first file that can be read says so for all."""
    for path in found[:10]:
        try:
            file = await workspace.read(path)
        except AstroResearchError:
            continue
        return not file.trusted or not is_own(path, workspace)
    return False


def matching(files: Sequence[Path], base: Path, pattern: str) -> list[Path]:
    """The files whose path below `base` matches; a pattern without a slash matches names at any depth."""
    if pattern.count("*") + pattern.count("?") > _MAX_STARS:
        raise InvalidInput(f"The pattern has more than {_MAX_STARS} wildcards.", field="pattern")
    deep = pattern if "/" in pattern else f"**/{pattern}"
    return [path for path in files if glob.globmatch(path.relative_to(base).as_posix(), deep, flags=_FLAGS)]

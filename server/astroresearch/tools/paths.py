"""Names of paths for permission rules, and whose text a file holds."""

from __future__ import annotations

from pathlib import Path

from astroresearch.engine.tool import ToolContext
from astroresearch.errors import AstroResearchError, NotAllowed
from astroresearch.tools.ports import FileContent, ToolServices, Workspace

_FROM_ELSEWHERE = frozenset({".bib", ".bbl", ".bst", ".cls", ".sty", ".clo"})
"Files of a manuscript that mostly come from elsewhere."


def path_names(path: str, context: ToolContext[ToolServices], *, write: bool = False) -> tuple[str, ...]:
    """A path below its root, then whole, both canonical; as given where it can't be resolved (the call will then fail)."""
    workspace = context.services.workspace
    try:
        real = workspace.resolve(path or str(workspace.roots[0]), write=write)
    except (AstroResearchError, IndexError):
        return (path,)
    root = next((root for root in workspace.roots if real != root and root in real.parents), None)
    return (str(real),) if root is None else (real.relative_to(root).as_posix(), str(real))


def is_own(path: Path, workspace: Workspace) -> bool:
    """Whether a file belongs to the workspace folders rather than to the library, the skills or the settings."""
    try:
        workspace.resolve(str(path), write=True)
    except NotAllowed:
        return False
    return True


def is_foreign(file: FileContent, workspace: Workspace) -> bool:
    """Whether a file's text counts as a stranger's: not the user's own manuscript in a trusted workspace."""
    return not file.trusted or file.path.suffix.lower() in _FROM_ELSEWHERE or not is_own(file.path, workspace)

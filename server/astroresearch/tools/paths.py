"""Names of paths for permission rules."""

from __future__ import annotations

from astroresearch.engine.tool import ToolContext
from astroresearch.errors import AstroResearchError
from astroresearch.tools.ports import ToolServices


def path_names(path: str, context: ToolContext[ToolServices], *, write: bool = False) -> tuple[str, ...]:
    """A path below its root, then whole, both canonical; as given where it can't be resolved (the call will then fail)."""
    workspace = context.services.workspace
    try:
        real = workspace.resolve(path or str(workspace.roots[0]), write=write)
    except (AstroResearchError, IndexError):
        return (path,)
    root = next((root for root in workspace.roots if real != root and root in real.parents), None)
    return (str(real),) if root is None else (real.relative_to(root).as_posix(), str(real))

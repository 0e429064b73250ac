"""Which paths tools may touch: pure functions on canonical paths, used by every implementation of `tools.ports.Workspace`."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from astroresearch.errors import NotAllowed

_PROTECTED_FOLDERS = frozenset({".git", ".hg", ".svn", ".vscode", ".idea", ".astroresearch"})
_PROTECTED_FILES = frozenset(
    {".gitmodules", ".gitattributes", ".gitconfig", ".envrc", ".env", ".latexmkrc", "latexmkrc", ".nvim.lua", ".exrc",
     ".dir-locals.el", ".editorconfig", ".pre-commit-config.yaml"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders that tools may see. Give them as they are; they are made canonical here, each time."""

    workspace: tuple[Path, ...]
    "May be read and, apart from what `is_protected` names, written."
    readable: tuple[Path, ...] = ()
    "The library's, the skills' and the results' folders: read only."

    @property
    def canonical(self) -> tuple[Path, ...]:
        """All of them with links resolved, the workspace first."""
        return tuple(Path(os.path.realpath(root)) for root in (*self.workspace, *self.readable))


def resolve(name: str, roots: Roots, *, write: bool = False, base: Path | None = None) -> Path:
    """The canonical path of a name that a model gave.

    Args:
        name: Absolute, with `~`, or relative to `base`.
        roots: What may be seen.
        write: Also refuse the read-only roots, protected files and every link on the way.
        base: Where relative names start; None: the first workspace folder.

    Raises:
        NotAllowed: It leads out of the roots, or may not be written.
    """
    text = _plain_name(name)
    start = base or (roots.workspace[0] if roots.workspace else None)
    expanded = os.path.expanduser(text) if text.startswith("~") else text
    if not os.path.isabs(expanded):
        if start is None:
            raise NotAllowed(f"`{name}` is relative, and no folder is open.", hint="Give an absolute path.")
        expanded = os.path.join(os.path.realpath(start), expanded)
    real = Path(os.path.realpath(expanded))
    # Behind a link that leads to itself, `realpath` leaves the rest as it is: `loop/../link` comes out unresolved.
    if os.path.realpath(real) != str(real):
        raise NotAllowed(f"`{name}` leads through a link that leads to itself.")
    if not is_inside(real, roots.canonical):
        raise NotAllowed(
            f"`{name}` is outside the folders that tools may see.",
            hint="They are the workspace, the library and the skills.",
        )
    if write:
        _check_write(name, expanded, real, roots)
    return real


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a canonical path is one of these canonical folders or below one."""
    return any(path == root or root in path.parents for root in roots)


def is_protected(path: PurePath, root: PurePath) -> bool:
    """Whether a path below `root` holds settings that would run or allow something: never written by a tool."""
    parts = [_folded(part) for part in path.relative_to(root).parts]
    return any(part in _PROTECTED_FOLDERS for part in parts) or (bool(parts) and parts[-1] in _PROTECTED_FILES)


def _folded(part: str) -> str:
    # Windows ignores dots and spaces at the end of a name, macOS case, composition and zero-width characters.
    seen = "".join(c for c in unicodedata.normalize("NFKC", part) if unicodedata.category(c) != "Cf")
    return seen.rstrip(". ").casefold() if seen.strip(". ") else seen


def _plain_name(name: str) -> str:
    if not name.strip():
        raise NotAllowed("The path is empty.", hint="Name a file or folder of the workspace.")
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        raise NotAllowed("The path holds control characters.")
    if any("\ud800" <= char <= "\udfff" for char in name):
        raise NotAllowed("The path is not valid text.")
    return name


def _check_write(name: str, expanded: str, real: Path, roots: Roots) -> None:
    homes = [Path(os.path.realpath(root)) for root in roots.workspace]
    home = next((root for root in homes if is_inside(real, [root])), None)
    if home is None or real == home:
        raise NotAllowed(f"`{name}` can't be written: it is not a file of the workspace.")
    if is_protected(real, home):
        raise NotAllowed(f"`{name}` can't be written by a tool: it belongs to settings, hooks or version control.")
    # The canonical path has no links; if the name as given, with `..` taken away, is another path, it went through one.
    lexical = Path(os.path.normpath(expanded))
    bases = [*homes, *(Path(os.path.abspath(root)) for root in roots.workspace)]
    if not any(lexical == real or _same_below(lexical, base, real, home) for base in bases):
        raise NotAllowed(f"`{name}` can't be written: it leads through a link.", hint=f"Name `{real}` itself.")


def _same_below(lexical: Path, base: Path, real: Path, home: Path) -> bool:
    return is_inside(lexical, [base]) and home / lexical.relative_to(base) == real

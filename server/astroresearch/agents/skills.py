"""Skills: folders with a SKILL.md in the open Agent Skills format. Later places win: shipped, the user's, the workspace's."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import anyio.to_thread
import yaml

from astroresearch.domain.skill import SkillInfo
from astroresearch.errors import NotFound

_MAX_BYTES = 200_000
_MAX_DESCRIPTION = 500
_log = logging.getLogger(__name__)


def shipped() -> Path:
    """The folder of the skills that come with the product: the checkout's where there is one, else the package's."""
    package = Path(str(resources.files("astroresearch")))
    checkout = package.parent.parent / "skills"
    return (
        checkout if (package.parent.parent / "pyproject.toml").is_file() and checkout.is_dir() else package / "skills"
    )


def places(*, config: Path, workspace: Path | None, trusted: bool, further: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Where skills are looked for, in the order in which later ones win. An untrusted workspace's are never read."""
    found = [shipped(), config / "skills", *further]
    if workspace is not None and trusted:
        found.append(workspace / ".astroresearch" / "skills")
    return tuple(found)


class SkillLibrary:
    """Fits `tools.ports.Skills`. Reads the folders once; `refresh` reads them again."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._skills: dict[str, SkillInfo] = {}
        self.refresh()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where it looks; tools may read below."""
        return self._folders

    def refresh(self) -> None:
        """Reads the front matter of every skill; one that can't be read is left out with a warning in the log."""
        found: dict[str, SkillInfo] = {}
        for folder in self._folders:
            for file in sorted(folder.glob("*/SKILL.md")):
                try:
                    info, _ = parse(file)
                except (OSError, ValueError, yaml.YAMLError) as error:
                    _log.warning("The skill %s is left out: %s", file, error)
                    continue
                found[info.name] = info
        self._skills = found

    def index(self) -> Sequence[SkillInfo]:
        """All of them, sorted by name."""
        return tuple(self._skills[name] for name in sorted(self._skills))

    async def load(self, name: str) -> tuple[SkillInfo, str]:
        """A skill and its body.

        Raises:
            NotFound: There is none of that name, or its file is gone or broken.
        """
        info = self._skills.get(name.strip().lower())
        if info is None:
            known = ", ".join(sorted(self._skills)) or "none"
            raise NotFound(f"There is no skill {name!r}.", hint=f"There are: {known}.")
        try:
            return await anyio.to_thread.run_sync(parse, info.path / "SKILL.md")
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise NotFound(f"The skill {name!r} can't be read: {error}") from error


def parse(file: Path) -> tuple[SkillInfo, str]:
    """A skill's front matter and body.

    Raises:
        OSError: It can't be read.
        ValueError: No front matter, no name or description, or too large.
        yaml.YAMLError: The front matter is not YAML.
    """
    if file.stat().st_size > _MAX_BYTES:
        raise ValueError(f"it is larger than {_MAX_BYTES // 1000} kB")
    text = file.read_text("utf-8-sig").replace("\r\n", "\n")
    if not text.startswith("---\n"):
        raise ValueError("it does not begin with front matter (---)")
    head, mark, body = text[4:].partition("\n---")
    if not mark:
        raise ValueError("its front matter has no end (---)")
    fields = yaml.safe_load(head)
    if not isinstance(fields, dict):
        raise ValueError("its front matter is not a list of fields")
    name = _field(fields, "name").lower()
    description = " ".join(_field(fields, "description").split())[:_MAX_DESCRIPTION]
    context = str(fields.get("context", "inline"))
    return SkillInfo(name, description, file.parent, context=context), body.lstrip("-").strip()


def _field(fields: dict[Any, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"its front matter has no {key}")
    return value.strip()

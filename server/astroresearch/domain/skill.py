"""A skill: instructions in a folder of their own, in the open Agent Skills format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SkillInfo:
    """A skill's front matter."""

    name: str
    description: str
    path: Path
    trusted: bool = True
    context: str = "inline"

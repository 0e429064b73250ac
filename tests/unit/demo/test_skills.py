"""The shipped skills: in the open format, and speaking of tools that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

SKILLS = sorted((Path(__file__).resolve().parents[3] / "skills").glob("*/SKILL.md"))
TOOLS = Path(__file__).resolve().parents[3] / "server" / "astroresearch" / "tools"


def test_two_skills_are_shipped():
    assert {file.parent.name for file in SKILLS} >= {"literature-review", "check-citations"}


@pytest.mark.parametrize("file", SKILLS, ids=lambda f: f.parent.name)
def test_a_skill_is_in_the_open_format(file: Path):
    text = file.read_text("utf-8")
    _, head, body = text.split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields["name"] == file.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 40 <= len(fields["description"]) <= 500
    assert len(body.splitlines()) < 500


@pytest.mark.parametrize("file", SKILLS, ids=lambda f: f.parent.name)
def test_a_skill_names_only_tools_that_exist(file: Path):
    names = set(re.findall(r"`([a-z]+_[a-z_]+)`", file.read_text("utf-8"))) - {"cite_key"}
    assert names
    assert names <= {path.stem for path in TOOLS.rglob("*_*.py")}

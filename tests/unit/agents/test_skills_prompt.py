"""Skills and the prompt that lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from astroresearch.agents.prompt import system_prompt, title_of, user_message
from astroresearch.agents.skills import SkillLibrary, parse, places, shipped
from astroresearch.errors import NotFound


def skill(folder: Path, name: str, text: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path


GOOD = "---\nname: units\ndescription: >\n  Checks units\n  of a table.\nlicense: MIT\n---\n\n# Units\nUse SI.\n"


async def test_front_matter_and_body(tmp_path: Path) -> None:
    skill(tmp_path, "units", GOOD)
    library = SkillLibrary([tmp_path])
    (info,) = library.index()
    assert (info.name, info.description) == ("units", "Checks units of a table.")
    loaded, body = await library.load("Units")
    assert loaded.path == tmp_path / "units"
    assert body == "# Units\nUse SI."
    with pytest.raises(NotFound, match="There are: units"):
        await library.load("nope")


async def test_later_places_win_and_bad_ones_are_left_out(tmp_path: Path) -> None:
    skill(tmp_path / "a", "units", GOOD)
    skill(tmp_path / "b", "units", GOOD.replace("Use SI.", "Use cgs."))
    for number, text in enumerate(
        [
            "no front matter",
            "---\nname: x\n---\n",
            "---\n: [\n---\n",
            "---\nname: x\ndescription: y\n",
            "---\n- a\n---\n",
            "x" * 300_000,
        ]
    ):
        skill(tmp_path / "b", f"bad{number}", text)
    library = SkillLibrary([tmp_path / "a", tmp_path / "b", tmp_path / "missing"])
    assert [info.name for info in library.index()] == ["units"]
    assert "cgs" in (await library.load("units"))[1]


def test_front_matter_can_not_run_anything(tmp_path: Path) -> None:
    evil = skill(tmp_path, "evil", "---\nname: !!python/object/apply:os.system ['touch /tmp/x']\ndescription: d\n---\n")
    assert SkillLibrary([tmp_path]).index() == ()
    assert evil.exists()


def test_an_untrusted_workspace_has_no_skills(tmp_path: Path) -> None:
    own = tmp_path / ".astroresearch" / "skills"
    assert own in places(config=tmp_path / "c", workspace=tmp_path, trusted=True)
    assert own not in places(config=tmp_path / "c", workspace=tmp_path, trusted=False)


def test_the_shipped_skills_can_be_read() -> None:
    for file in shipped().glob("*/SKILL.md"):
        info, body = parse(file)
        assert info.name == file.parent.name
        assert body


def test_the_system_prompt_is_the_same_every_time(tmp_path: Path) -> None:
    skill(tmp_path, "units", GOOD)
    skills = SkillLibrary([tmp_path]).index()
    assert system_prompt(skills) == system_prompt(tuple(reversed(skills)))
    assert "- units: Checks units of a table." in system_prompt(skills)
    assert "# Skills" not in system_prompt()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is it?", "What is it?"),
        ("\n\n  A   question  \nwith more", "A question"),
        ("word " * 40, "word word word word word word word word word word word word word word…"),
        ("x" * 100, "x" * 70 + "…"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_of(text) == title


def test_the_message_says_the_date_and_no_more_without_an_editor() -> None:
    content, tainted = user_message("Hello", None)
    assert content.startswith("Hello\n\n<editor>\nToday: 20")
    assert not tainted

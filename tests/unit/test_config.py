"""Where settings come from, which source wins, and what happens to values that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from astroresearch.config import SETTINGS, Folders, folders, load


@pytest.fixture
def where(tmp_path: Path) -> Folders:
    return folders({"ASTRORESEARCH_HOME": str(tmp_path / "home")})


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


VARIABLES = [(setting.key, name) for setting in SETTINGS for name in setting.env]


@pytest.mark.parametrize(("key", "name"), VARIABLES)
def test_every_variable_sets_its_setting(where: Folders, key: str, name: str) -> None:
    value = "DEBUG" if key == "log.level" else "given"
    settings = load(where=where, env={name: value})
    assert settings[key] == value
    assert settings.origins[key] == f"environment variable {name}"
    assert not settings.problems


def test_the_named_variables_are_all_there() -> None:
    wanted = {"OPENAI_API_KEY", "OPENAI_BASE_URL", "ASTRORESEARCH_MODEL", "ADS_API_TOKEN", "ADS_DEV_KEY"}
    wanted |= {f"ASTRORESEARCH_{name}_URL" for name in ("ADS", "ARXIV", "SESAME", "SIMBAD")}
    assert wanted <= {name for _, name in VARIABLES}


def test_home_moves_everything(tmp_path: Path) -> None:
    ours = folders({"ASTRORESEARCH_HOME": str(tmp_path)})
    assert {ours.data, ours.config, ours.state} == {tmp_path}


def test_later_sources_win(where: Folders, tmp_path: Path) -> None:
    def steps(env: dict[str, str] = {}, editor: dict[str, Any] | None = None, workspace: Path | None = None) -> Any:
        settings = load(where=where, env=env, workspace=workspace, editor=editor)
        return settings.integer("agent.max_steps"), settings.text("model.name")

    assert steps() == (50, "")
    write(where.config, '[agent]\nmax_steps = 1\n[model]\nname = "file"')
    assert steps() == (1, "file")
    write(tmp_path / ".astroresearch", "[agent]\nmax_steps = 2")
    assert steps(workspace=tmp_path) == (2, "file")
    env = {"ASTRORESEARCH_MODEL": "variable"}
    assert steps(env, workspace=tmp_path) == (2, "variable")
    editor = {"model": {"name": "editor"}, "agent.max_steps": 3}
    assert steps(env, editor, tmp_path) == (3, "editor")


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.user_only], ids=lambda s: s.key)
def test_a_workspace_sets_nothing_that_is_the_users_alone(where: Folders, tmp_path: Path, setting: Any) -> None:
    section, _, name = setting.key.partition(".")
    write(tmp_path / ".astroresearch", f'[{section}]\n{name} = "evil"')
    settings = load(where=where, env={}, workspace=tmp_path)
    assert settings[setting.key] == setting.default
    assert "never read from a workspace" in settings.problems[0].message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[agent]\nmax_steps = "many"', "`agent.max_steps` must be a whole number, not 'many'"),
        ("[agent]\nmax_steps = true", "must be a whole number, not True"),
        ("[permissions]\nedits = 'maybe'", "must be one of ask, accept, not 'maybe'"),
        ("[model]\nfoo = 1", "Unknown setting `model.foo`"),
        ("[model", "Could not be read"),
    ],
)
def test_a_value_that_does_not_fit_is_named_and_left_out(where: Folders, text: str, said: str) -> None:
    write(where.config, text)
    settings = load(where=where, env={})
    assert said in settings.problems[0].message
    assert settings.integer("agent.max_steps") == 50
    assert settings.text("permissions.edits") == "ask"


def test_what_was_set_before_stays_when_a_later_value_does_not_fit(where: Folders, tmp_path: Path) -> None:
    write(where.config, "[agent]\nmax_steps = 7")
    write(tmp_path / ".astroresearch", "[agent]\nmax_steps = []")
    settings = load(where=where, env={}, workspace=tmp_path)
    assert settings.integer("agent.max_steps") == 7
    assert "left out" in settings.problems[0].message


def test_a_secret_that_does_not_fit_is_not_repeated(where: Folders) -> None:
    write(where.config, "[model]\napi_key = 123456789")
    (problem,) = load(where=where, env={}).problems
    assert "123456789" not in problem.message

"""The pages under docs/ say what the code says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from astroresearch.cli.commands import group
from astroresearch.config import SETTINGS
from astroresearch.domain.plain import camel
from astroresearch.engine.events import LOG_KIND, WIRE
from astroresearch.lsp import params
from astroresearch.lsp.protocol import EVENT_WORDS, METHODS, SERVER_NOTIFICATIONS, SERVER_REQUESTS

REPO = Path(__file__).resolve().parents[2]
PROTOCOL = (REPO / "docs/protocol.md").read_text("utf-8")
CONFIGURATION = (REPO / "docs/configuration.md").read_text("utf-8")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_stands_in_the_reference_with_its_parameters(method: str) -> None:
    _, _, section = PROTOCOL.partition(f"### `{method}`\n")
    assert section, f"docs/protocol.md lacks {method}"
    body = section.split("\n### ")[0].split("\n## ")[0]
    spec = METHODS[method]
    for name in getattr(params, spec.params).model_fields:
        assert f"`{camel(name)}`" in body, f"{method}: docs/protocol.md lacks the parameter {camel(name)}"
    if spec.result:
        assert spec.result in body, f"{method}: docs/protocol.md has another result than lsp/protocol.py"


def test_the_reference_names_no_method_that_is_not_there() -> None:
    assert set(re.findall(r"^### `(astroresearch/\S+)`$", PROTOCOL, re.M)) == set(METHODS)


def test_every_event_stands_in_the_table_with_its_three_names() -> None:
    for cls, word in WIRE.items():
        assert f"| `{word}` | `{cls.__name__}` | `{LOG_KIND[cls]}` |" in PROTOCOL


def test_the_words_that_initialize_announces_are_the_engines() -> None:
    assert set(EVENT_WORDS) == set(WIRE.values())


def test_what_the_server_sends_is_named() -> None:
    for name in (*SERVER_REQUESTS, *SERVER_NOTIFICATIONS):
        assert f"`{name}`" in PROTOCOL


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.key)
def test_every_setting_variable_and_default_is_documented(setting: object) -> None:
    key, default, env = setting.key, setting.default, setting.env  # type: ignore[attr-defined]
    row = next((line for line in CONFIGURATION.splitlines() if line.startswith(f"| `{key}` ")), "")
    assert row, f"docs/configuration.md lacks {key}"
    assert f"| `{json.dumps(default) if default != '' else '(empty)'}` |" in row
    for name in env:
        assert f"`{name}`" in row


def test_the_example_configuration_holds_every_default() -> None:
    text = (REPO / "docs/example-config.toml").read_text("utf-8")
    example = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))
    for setting in SETTINGS:
        section, _, name = setting.key.partition(".")
        found = example[section][name] if name else example[section]
        assert found == setting.default, setting.key


def test_every_command_is_documented() -> None:
    page = (REPO / "docs/cli.md").read_text("utf-8")
    for name in group.list_commands(None):  # type: ignore[arg-type]
        assert f"`astroresearch {name}" in page, f"docs/cli.md lacks {name}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [REPO / "README.md", *(REPO / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(REPO)} links to {target}"


def test_options_that_the_page_names_are_the_commands() -> None:
    page = (REPO / "docs/cli.md").read_text("utf-8")
    for name, rest in re.findall(r"^\| `astroresearch (\w+)([^`]*)` \|", page, re.M):
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        below = getattr(command, "commands", {}).values()
        known = {option for c in (command, *below) for p in c.params for option in p.opts}
        assert set(re.findall(r"--[\w-]+", rest)) <= known, f"docs/cli.md: {name}"

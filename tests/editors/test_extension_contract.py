"""The extension mirrors the server: its settings, methods, events and version."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from astroresearch.config import SETTINGS
from astroresearch.engine.events import EVENT_TYPES
from astroresearch.lsp.protocol import METHODS, PROTOCOL_VERSION, SERVER_NOTIFICATIONS, SERVER_REQUESTS

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-extension"
PACKAGE: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text("utf-8"))
PROPERTIES: dict[str, Any] = PACKAGE["contributes"]["configuration"]["properties"]
PROTOCOL = (EXTENSION / "src" / "protocol.ts").read_text("utf-8")
OWN = {"astroresearch.server.command", "astroresearch.interpreter", "astroresearch.trace.server"}
"Settings of the extension itself."
TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "table": "object"}


def strings_of(constant: str) -> list[str]:
    """The strings of `export const NAME = [...]` in protocol.ts."""
    match = re.search(rf"export const {constant} = \[(.*?)\]", PROTOCOL, re.S)
    assert match, constant
    return re.findall(r'"([^"]+)"', match[1])


SHOWN = [setting for setting in SETTINGS if not (setting.secret or setting.files_only)]


def test_every_setting_of_the_server_can_be_set_except_secrets_and_hooks() -> None:
    expected = {f"astroresearch.{s.key}" for s in SHOWN}
    assert set(PROPERTIES) - OWN == expected


def test_types_defaults_choices_and_words_are_the_servers() -> None:
    for setting in SHOWN:
        shown = PROPERTIES[f"astroresearch.{setting.key}"]
        assert shown["type"] == TYPES[setting.type], setting.key
        assert shown["default"] == setting.default, setting.key
        assert tuple(shown.get("enum", ())) == setting.choices, setting.key
        assert shown["markdownDescription"] == setting.doc, setting.key


def test_a_workspace_can_set_nothing_that_is_the_users_alone() -> None:
    for setting in SHOWN:
        scope = PROPERTIES[f"astroresearch.{setting.key}"]["scope"]
        assert scope == ("machine" if setting.user_only else "resource"), setting.key


def test_an_untrusted_workspace_can_set_nothing_at_all() -> None:
    restricted = set(PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    assert restricted == {key for key, shown in PROPERTIES.items() if shown["scope"] != "machine"}


def test_methods_are_the_servers() -> None:
    assert strings_of("METHODS") == list(METHODS)
    assert strings_of("SERVER_REQUESTS") == list(SERVER_REQUESTS)
    assert strings_of("SERVER_NOTIFICATIONS") == list(SERVER_NOTIFICATIONS)
    assert f"PROTOCOL_VERSION = {PROTOCOL_VERSION};" in PROTOCOL


def test_events_are_the_servers() -> None:
    match = re.search(r"const NAMES: Record<EventType, true> = \{(.*?)\};", PROTOCOL, re.S)
    assert match
    assert re.findall(r'"?([a-z.]+)"?: true', match[1]) == list(EVENT_TYPES)


def test_no_command_hides_a_command_of_the_server() -> None:
    ours = {command["command"] for command in PACKAGE["contributes"]["commands"]}
    assert not ours & {method.replace("/", ".") for method in METHODS}


def test_every_command_that_is_offered_is_registered() -> None:
    source = (EXTENSION / "src" / "commands.ts").read_text("utf-8")
    registered = set(re.findall(r'"(_?astroresearch\.\w+)": \(', source))
    assert {command["command"] for command in PACKAGE["contributes"]["commands"]} == {
        name for name in registered if not name.startswith("_")
    }

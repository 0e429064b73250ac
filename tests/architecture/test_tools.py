"""A tool is one file, one line in the registry, one test and one page."""

from __future__ import annotations

from pathlib import Path

import pytest

from astroresearch.tools import registry

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / "server/astroresearch/tools"
NAMES = sorted(
    p.stem for folder in ("files", "papers", "session", "delegation") for p in (TOOLS / folder).glob("[a-z]*.py")
)


def test_the_registry_holds_exactly_the_files() -> None:
    assert list(registry.standard().names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_has_a_test_and_a_page(name: str) -> None:
    assert (REPO / f"docs/tools/{name}.md").is_file()
    assert any(name in path.read_text("utf-8") for path in (REPO / "tests/unit/tools").rglob("test_*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_describes_itself_and_its_parameters(name: str) -> None:
    tool = registry.standard().get(name)
    assert tool is not None
    assert len(tool.description) > 40
    for field, schema in tool.definition().parameters.get("properties", {}).items():
        assert schema.get("description"), f"{name}: {field} has no description"

"""Rules on the source itself that no linter knows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPO / "server/astroresearch").rglob("*.py"))
EDGES = {
    "engine/executor.py", "lsp/transport.py", "lsp/server.py", "cli/output.py", "agents/turns.py", "library/index.py",
    "library/pdf_child.py", "library/pdf_extract.py",
}  # fmt: skip
"Where a broad `except` is allowed: the executor, the LSP edge, background tasks, the command line's end, the PDF child's end."


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(REPO)))
def test_broad_excepts_stand_at_the_edges_only(path: Path) -> None:
    text = path.read_text("utf-8")
    if re.search(r"except (BaseException|Exception)( as \w+)?:.*BLE001", text):
        assert str(path.relative_to(REPO / "server/astroresearch")) in EDGES


def test_no_lock_file_names_a_registry_host() -> None:
    for lock in REPO.glob("vscode-extension/package-lock.json"):
        assert '"resolved"' not in lock.read_text("utf-8")


def test_the_extension_has_the_servers_version() -> None:
    import json

    version = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert json.loads((REPO / "vscode-extension/package.json").read_text("utf-8"))["version"] == version

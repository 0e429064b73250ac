"""The main job in a real VS Code workbench (code-server, Chromium) with the built .vsix and the real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
EXTENSION = REPO / "vscode-extension"
DRIVER = Path(__file__).parent / "vscode"
PICTURES = REPO / "test-results" / "vscode"
EDIT = {"path": "main.tex", "old_string": "The gas in", "new_string": "The hot gas in"}
SCRIPT = [
    {
        "match": "Perseus",
        "thought": "I look into the library, the manuscript and its files.",
        "calls": [
            {"name": "rag_search", "arguments": {"query": "cools radiatively Hubble time Perseus"}},
            {"name": "read_file", "arguments": {"path": "main.tex"}},
            {"name": "grep_files", "arguments": {"pattern": "Fabian1994"}},
        ],
    },
    {"calls": [{"name": "file_edit", "arguments": EDIT}]},
    {
        "text": "It cools: $t_{\\rm cool} < H_0^{-1}$.\n\n![chart](http://127.0.0.1:9/chart.png)\n\n"
        "$$t_{\\rm cool} = \\frac{3 n k T}{2 n^2 \\Lambda}$$\n",
        "cite": True,
    },
    {"match": "wait", "wait_for": "/nowhere/never", "text": "late"},
]


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The extension, built anew when a source is younger; skips with a reason where it can't be."""
    check = subprocess.run([DRIVER / "install.sh", "--check"], capture_output=True, text=True)
    if check.returncode:
        pytest.skip(check.stderr.strip())
    if not (EXTENSION / "node_modules").is_dir():
        pytest.skip("the extension is not set up; `make vsix` does it")
    if not list((REPO / "dist").glob("astroresearch-*.whl")):
        pytest.skip("the server's wheel is not built; `make vsix` does it")
    built = max(EXTENSION.glob("*.vsix"), key=lambda path: path.stat().st_mtime, default=None)
    sources = [path for part in ("src", "webview", "media") for path in (EXTENSION / part).rglob("*")]
    youngest = max(path.stat().st_mtime for path in [*sources, EXTENSION / "package.json"])
    if built is None or built.stat().st_mtime < youngest:
        subprocess.run(["npm", "run", "--silent", "package"], cwd=EXTENSION, check=True, capture_output=True)
        built = max(EXTENSION.glob("*.vsix"), key=lambda path: path.stat().st_mtime)
    return built


@pytest.mark.browser
@pytest.mark.timeout(300)
def test_the_main_job(
    vsix: Path, workspace: Path, environment: Callable[[Any], dict[str, str]], tmp_path: Path
) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    arguments = [workspace, tmp_path / "state", vsix, sys.executable, PICTURES]
    command = ["node", DRIVER / "main_job.mjs", *arguments]
    ran = subprocess.run(command, env=os.environ | environment(SCRIPT), capture_output=True, text=True, timeout=280)
    steps = {step["step"]: step for step in map(json.loads, ran.stdout.splitlines())}
    assert steps, ran.stderr
    failed = [step for step in steps.values() if not step["ok"]]
    assert not failed, failed[0]
    data = {name: step.get("data") for name, step in steps.items()}

    tools = data["the timeline grows by three tools"]
    assert len(tools) >= 3
    asked = data["a permission is asked and takes no answer at once"]
    assert all(asked["atOnce"]), "a button took an answer at once"
    assert not asked["focused"], "something was preselected"
    assert "The hot gas in" in asked["detail"]
    assert data["the answer has math and no image"] == {"images": 0, "loaded": []}
    assert "✓ verified" in data["a quote is verified, and a click shows its page"]
    assert data["after a restart the session is there again"] == 2
    assert data["nobody outside was asked"] == []

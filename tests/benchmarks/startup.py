"""`initialize` against a bare pygls server in the same run: spawn to answer, best of several pairs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

PAIRS = 7
BARE = """
from lsprotocol import types as T
from pygls.lsp.server import LanguageServer
s = LanguageServer("bare", "0")
@s.feature(T.TEXT_DOCUMENT_COMPLETION, T.CompletionOptions(trigger_characters=["{", ","], resolve_provider=True))
def completion(ls, params): return None
@s.feature(T.TEXT_DOCUMENT_HOVER)
def hover(ls, params): return None
s.start_io()
"""


def _until_initialized(command: list[str], home: str) -> float:
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=dict(os.environ, ASTRORESEARCH_HOME=home),
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    process.stdin.flush()
    process.stdout.readline()
    elapsed = time.perf_counter() - started
    process.kill()
    process.communicate()
    return elapsed


def measure() -> list[dict[str, Any]]:
    """Ratio of medians over interleaved pairs."""
    with tempfile.TemporaryDirectory() as home:
        ours_command = [sys.executable, "-m", "astroresearch", "serve"]
        bare_command = [sys.executable, "-c", BARE]
        _until_initialized(ours_command, home)
        _until_initialized(bare_command, home)
        pairs = [(_until_initialized(ours_command, home), _until_initialized(bare_command, home)) for _ in range(PAIRS)]
    ours = statistics.median(p[0] for p in pairs)
    bare = statistics.median(p[1] for p in pairs)
    ratio = statistics.median(a / b for a, b in pairs)
    return [
        {"name": "initialize, spawn to answer, against a bare pygls server", "ours": ours * 1000, "reference": bare * 1000,
         "ratio": ratio, "goal": "≤ 1.3× the bare server's", "ok": ratio <= 1.3, "unit": "ms"}
    ]  # fmt: skip

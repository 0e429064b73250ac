"""What docs/protocol.md says of plain results is what a server answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from astroresearch.lsp.client import connect
from astroresearch.lsp.protocol import METHODS, command_of


@pytest.mark.parametrize(
    ("method", "inner"),
    [("status", ""), ("library/status", ""), ("models/list", "models"), ("tools/list", "tools")],
)
async def test_results_have_the_documented_fields(home: Path, workspace: Path, method: str, inner: str) -> None:
    name = f"astroresearch/{method}"
    async with connect(workspace, env={"ASTRORESEARCH_HOME": str(home)}) as client:
        answer: Any = await client.request(name, {})
        twin = await client.request("workspace/executeCommand", {"command": command_of(name), "arguments": [{}]})
    assert twin == answer
    found = answer[inner][0] if inner else answer
    documented = re.sub(r"^\{\w+: \[(.*)\]\}$", r"\1", METHODS[name].result)
    assert set(re.findall(r"\w+", documented)) == set(found)

"""One page a tool for docs/tools, from the tool itself: `python -m astroresearch.tools.pages docs/tools` writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from astroresearch.engine.tool import AnyTool
from astroresearch.tools.registry import standard

_EFFECTS = {
    "none": "none: it reads",
    "library_write": "writes into your library",
    "workspace_write": "changes files of your workspace",
    "egress": "sends a query to ADS or arXiv",
    "exec": "runs a command",
    "memory": "writes into the agent's memory",
}
_DECISIONS = {"allow": "allowed without asking", "ask": "asks first", "deny": "refused"}


def page(tool: AnyTool) -> str:
    """A tool's page, Markdown."""
    definition = tool.definition()
    traits = [
        f"- Effect: {_EFFECTS[tool.effect]}.",
        f"- Where no rule matches: {_DECISIONS[tool.default_decision]}.",
        f"- A cancel: {'lets it finish' if tool.interrupt_behavior == 'block' else 'ends it at once'}.",
    ]
    if tool.reads_untrusted:
        traits.append(
            "- Its result counts as a stranger's text: afterwards the agent asks before anything that matters."
        )
    if tool.causes_sibling_abort:
        traits.append("- If it fails, the other calls of the same step end too.")
    rows = [
        _row(name, schema, required=name in definition.parameters.get("required", ()))
        for name, schema in definition.parameters.get("properties", {}).items()
    ]
    return "\n".join(
        [f"# {tool.name}", "", definition.description, "", *traits, "", "| parameter | type | default | meaning |",
         "|---|---|---|---|", *rows, ""]
    )  # fmt: skip


def _row(name: str, schema: dict[str, Any], *, required: bool) -> str:
    default = "required" if required else f"`{schema.get('default')!r}`"
    return f"| `{name}` | {_type(schema)} | {default} | {schema.get('description', '').replace('|', chr(92) + '|')} |"


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "object"))


def write(folder: Path) -> None:
    """Writes all pages."""
    registry = standard()
    folder.mkdir(parents=True, exist_ok=True)
    for name in registry.names():
        if tool := registry.get(name):
            (folder / f"{name}.md").write_text(page(tool), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/tools"))

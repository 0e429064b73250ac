"""Domain objects as plain JSON with camelCase keys: the shape in which front ends and tool metadata show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LEFT_OUT = {"raw"}
"Fields that stay inside: a source's whole record is for exports only."


def plain(value: Any) -> Any:
    """Dataclasses become dicts with camelCase keys, tuples lists; `raw` is left out; everything else stays."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            camel(f.name): plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in _LEFT_OUT
        }
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    return value


def camel(name: str) -> str:
    """`paper_id` → `paperId`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)

"""Papers and objects as JSON, for the cache of answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.target import Target


def dump_papers(papers: Sequence[Paper]) -> bytes:
    """With the sources' own records."""
    return json.dumps([dataclasses.asdict(paper) for paper in papers], ensure_ascii=False).encode()


def load_papers(data: bytes) -> list[Paper] | None:
    """None where the bytes are of another version, or damaged: then the answer is fetched anew."""
    try:
        return [_paper(record) for record in json.loads(data)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def dump_target(target: Target) -> bytes:
    """All fields."""
    return json.dumps(dataclasses.asdict(target), ensure_ascii=False).encode()


def load_target(data: bytes) -> Target | None:
    """See `load_papers`."""
    try:
        record = json.loads(data)
        record["aliases"] = tuple(record["aliases"])
        record["magnitudes"] = tuple((str(band), float(value)) for band, value in record["magnitudes"])
        if (motion := record["proper_motion_mas_yr"]) is not None:
            record["proper_motion_mas_yr"] = (float(motion[0]), float(motion[1]))
        return Target(**record)
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def _paper(record: Mapping[str, Any]) -> Paper:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    ids: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record["identifiers"].items()
    }
    values["identifiers"] = Identifiers(**ids)
    values["raw"] = dict(record["raw"])
    return Paper(**values)

"""Small helpers that every store uses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import apsw


def now() -> str:
    """The time, ISO 8601 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def clean(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def dumps(value: Any) -> str:
    """JSON in ASCII: keeps lone surrogates, which a model may send, exactly."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)


def rows(connection: apsw.Connection, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    return connection.execute(sql, values).fetchall()


def match_any(terms: list[str]) -> str:
    """An FTS5 query for any of these words or phrases, which may hold any characters."""
    return " OR ".join(quoted(term) for term in terms)


def quoted(term: str) -> str:
    """A term as an FTS5 string."""
    return '"' + clean(term).replace("\0", " ").replace('"', '""') + '"'

"""Globs of permission rules, on canonical paths, hosts and plain text."""

from __future__ import annotations

import re
from functools import lru_cache

_SPECIAL = re.compile(r"([*?\[])")


def escape(text: str) -> str:
    """A glob that matches this text and nothing else."""
    return _SPECIAL.sub(r"[\1]", text)


def matches(pattern: str, text: str, *, across: bool = False, fold: bool = False) -> bool:
    """Whether the whole text fits.

    `*` and `?` stop at `/` unless `across`; `**` never stops, and a pattern of nothing but stars fits everything. `fold`
    ignores case.
    """
    if not pattern.strip("*"):
        return bool(pattern)
    return _compiled(pattern, across, fold).fullmatch(text) is not None


def host_matches(pattern: str, host: str) -> bool:
    """`*.arxiv.org` fits its subdomains, not `arxiv.org` itself and not `arxiv.org.evil.example`."""
    return matches(pattern.lower().rstrip("."), host, across=True)


@lru_cache(maxsize=1024)
def _compiled(pattern: str, across: bool, fold: bool) -> re.Pattern[str]:
    one = "." if across else "[^/]"
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and not across:
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        elif pattern[at] in "*?":
            parts.append(one + ("*" if pattern[at] == "*" else ""))
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end]
            negated = inner[0] in "!^" and len(inner) > 1
            body = re.escape(inner[1:] if negated else inner).replace(r"\-", "-")
            parts.append(f"[{'^' if negated else ''}{body}]")
            at = end + 1
        else:
            parts.append(re.escape(pattern[at]))
            at += 1
    try:
        return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if fold else 0))
    except re.error:  # a class such as [z-a]: taken as plain text
        return re.compile(re.escape(pattern), re.DOTALL | (re.IGNORECASE if fold else 0))

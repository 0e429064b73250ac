"""Shell commands as permission rules see them: each sub-command by itself, and what can't be read covered by nothing."""

from __future__ import annotations

import re
import shlex

from astroresearch.engine import globs

_HIDDEN = re.compile(r"[`\n\r]|\$[({]|<\(|>\(|<<")
_JOINTS = {"&&", "||", ";", "|", "|&", "&"}


def split(command: str) -> list[str] | None:
    """The sub-commands of a line, or None where it holds what this does not read (substitutions, here-documents)."""
    if _HIDDEN.search(command):
        return None
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word in _JOINTS:
                parts.append([])
            elif word and set(word) <= set("&|;()<>"):
                return None
            else:
                parts[-1].append(word)
    except ValueError:
        return None
    return [" ".join(part) for part in parts if part]


def covers(pattern: str, command: str, *, strict: bool) -> bool:
    """Whether a rule's pattern is about a command. `git log *` is also about `git log` alone.

    strict (deny, ask): any sub-command, or the whole text where it can't be split. Otherwise (allow): every sub-command,
    and never one that can't be split.
    """
    parts = split(command)
    if parts is None:
        return strict and (_fits(pattern, command, fold=True) or _stem(pattern) in command)
    if strict:
        return any(_fits(pattern, part, fold=True) for part in (*parts, command))
    return bool(parts) and all(_fits(pattern, part, fold=False) for part in parts)


def _fits(pattern: str, command: str, *, fold: bool) -> bool:
    bare = pattern[:-2] if pattern.endswith(" *") else pattern
    return globs.matches(pattern, command, across=True, fold=fold) or globs.matches(
        bare, command, across=True, fold=fold
    )


def _stem(pattern: str) -> str:
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0].strip() or "\0"

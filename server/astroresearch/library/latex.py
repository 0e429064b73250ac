"""Text as LaTeX that compiles anywhere: accents as commands, special characters escaped, `<SUB>` as a subscript."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_SPECIAL = re.compile(r"[&%#_]")
_MARKUP = (
    (re.compile(r"<SUP>(.+?)</SUP>", re.IGNORECASE), r"$^{\1}$"),
    (re.compile(r"<SUB>(.+?)</SUB>", re.IGNORECASE), r"$_{\1}$"),
    (re.compile(r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>"), ""),
)
_INITIALS = re.compile(r"([A-Z]\.)\s(?=[A-Z]\.)")


def encode(text: str) -> str:
    """Everything outside `$…$` encoded; unbalanced braces are left out, since they would break the whole file."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    pieces = re.split(r"(\$[^$]*\$)", text)
    return "".join(piece if at % 2 else _outside(piece) for at, piece in enumerate(pieces))


def encode_name(name: str) -> str:
    """`Levesque, E. M.` → `{Levesque}, E.~M.`; a collaboration `{Planck Collaboration}`."""
    last, comma, first = encode(name).partition(",")
    return f"{{{last}}}{comma}{_INITIALS.sub(lambda m: m.group(1) + '~', first)}"


def _outside(text: str) -> str:
    text = text.replace("$", r"\$") if text.count("$") else text
    if text.isascii():
        return balanced(_SPECIAL.sub(lambda m: "\\" + m.group(), text))
    plain = re.split(r"([^\x00-\x7f]+)", text)
    return "".join(_accents(piece) if at % 2 else _outside(piece) for at, piece in enumerate(plain))


def balanced(text: str) -> str:
    """Without braces where they are not in pairs, and without a backslash that would swallow what comes next."""
    text = re.sub(r"\\+$", "", text)
    plain = re.sub(r"\\[{}]", "", text)  # BibTeX counts escaped braces, other readers don't: both must come out even
    return text if _even(text) and _even(plain) else re.sub(r"\\*[{}]", "", text)


def _even(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return False
    return depth == 0


def _accents(text: str) -> str:
    return str(_encoder().unicode_to_latex(text))


@cache
def _encoder() -> Any:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    return UnicodeToLatexEncoder(
        non_ascii_only=True,
        replacement_latex_protection="braces-all",
        unknown_char_policy="keep",
        unknown_char_warning=False,
    )

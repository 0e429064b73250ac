"""Names of authors: `Last, First`, collaborations, and the ASCII that cite keys are made of."""

from __future__ import annotations

import re
import unicodedata

_GROUP = re.compile(r"\b(collaboration|consortium|team|project|group|survey|network)\b", re.IGNORECASE)
_GROUP_HEAD = re.compile(r"^(?:on behalf of |for )?(?:the )?", re.IGNORECASE)
_PARTICLES = frozenset(
    [
        "da",
        "das",
        "de",
        "del",
        "della",
        "den",
        "der",
        "des",
        "di",
        "do",
        "dos",
        "du",
        "el",
        "la",
        "le",
        "les",
        "lo",
        "te",
        "ten",
        "ter",
        "van",
        "vande",
        "vanden",
        "vander",
        "von",
        "vom",
        "zu",
        "zum",
        "zur",
        "'t",
    ]
)
_SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv)\.?$", re.IGNORECASE)
_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307", '"': "\u0308",
    "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328", "b": "\u0331",
}  # fmt: skip
_ACCENT = re.compile(r"\\(?:([`'^~=.\"])\s*|([uvHckrdb])(?:\s+|(?=\{)))\{?(\\[ij]|[A-Za-z])\s?\}?")
_SYMBOLS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
    "i": "i", "j": "j", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "dj": "đ", "DJ": "Đ",
}  # fmt: skip
_SYMBOL = re.compile(r"\\(" + "|".join(sorted(_SYMBOLS, key=len, reverse=True)) + r")(?![A-Za-z])(?:\s+|\{\})?")
_FOLDS = str.maketrans(
    {
        "ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ð": "d", "Ð": "D",
        "þ": "th", "Þ": "Th", "đ": "d", "Đ": "D", "ı": "i", "ħ": "h", "’": "'", "‐": "-", "–": "-",
    }
)  # fmt: skip


def plain_name(text: str) -> str:
    """A name without LaTeX: `{\\'e}` → `é`, `{Planck Collaboration}` → `Planck Collaboration`."""
    text = _ACCENT.sub(lambda m: m.group(3).lstrip("\\") + _ACCENTS[m.group(1) or m.group(2)], text)
    text = _SYMBOL.sub(lambda m: _SYMBOLS[m.group(1)], text)
    text = text.replace("~", " ").replace("{", "").replace("}", "").replace("\\", "")
    return unicodedata.normalize("NFC", " ".join(text.split()))


def is_group(author: str) -> bool:
    """Whether an author is a collaboration."""
    return bool(_GROUP.search(author))


def inverted(author: str) -> str:
    """`Peter H. N. de With` → `de With, Peter H. N.`; a collaboration is one name, without its speaker and `The`."""
    author = plain_name(author)
    if is_group(author):
        return group_name(author)
    if "," in author:
        return author
    words = author.split()
    suffix = f", {words.pop()}" if len(words) > 2 and _SUFFIX.match(words[-1]) else ""
    if len(words) < 2:
        return author
    cut = len(words) - 1
    while cut > 1 and words[cut - 1].lower() in _PARTICLES:
        cut -= 1
    return f"{' '.join(words[cut:])}, {' '.join(words[:cut])}{suffix}"


def group_name(author: str) -> str:
    """`The X Collaboration: L. Adleman` → `X Collaboration`."""
    name = re.split(r"[:;]", plain_name(author), maxsplit=1)[0]
    name = _GROUP_HEAD.sub("", name.strip(" ,"))
    last, _, first = name.partition(",")
    if first and _GROUP.search(first) and not _GROUP.search(last):
        name = f"{first.strip()} {last.strip()}".strip()  # `Collaboration, Planck` and its like
    return name.partition(",")[0].strip() if _GROUP.search(name.partition(",")[0]) else name.strip(" ,")


def family(author: str) -> str:
    """The family name of `Last, First`; a collaboration's whole name."""
    author = plain_name(author)
    return group_name(author) if is_group(author) else author.partition(",")[0].strip()


def ascii_fold(text: str) -> str:
    """`Könyves` → `Konyves`; characters without an ASCII relative are dropped."""
    folded = unicodedata.normalize("NFKD", plain_name(text).translate(_FOLDS))
    return folded.encode("ascii", "ignore").decode()


def key_name(author: str) -> str:
    """The family name as cite keys have it: ASCII letters and digits only, `PlanckCollaboration`, `Levesque`."""
    return re.sub(r"[^A-Za-z0-9]", "", ascii_fold(family(author)))

"""LaTeX text made plain: for showing (`plain`) and for searching (`fold`)."""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "b": "\u0331", "k": "\u0328",
    "r": "\u030a",
}  # fmt: skip
_LETTERS = {
    "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
    "AA": "Å", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "dj": "đ", "DJ": "Đ", "ng": "ŋ",
}  # fmt: skip
_SYMBOLS = {
    "textendash": "–", "textemdash": "—", "textbackslash": "\\", "textasciitilde": "~", "textquoteright": "’",
    "textquoteleft": "‘", "textdegree": "°", "textmu": "µ", "ldots": "…", "dots": "…", "S": "§", "copyright": "©",
    "LaTeX": "LaTeX", "TeX": "TeX", "sim": "~", "times": "×", "pm": "±", "deg": "°", "arcsec": "″", "arcmin": "′",
    "odot": "⊙", "sun": "⊙", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ",
    "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ",
    "omega": "ω", "Lambda": "Λ", "Omega": "Ω", "Delta": "Δ", "Sigma": "Σ", "lesssim": "≲", "gtrsim": "≳", "approx": "≈",
}  # fmt: skip
_ACCENT = re.compile(
    r"\\(?:([`'^\"~=.])\s*|([uvHcdbkr])(?:\s+|(?=[{\\])))(?:\{\s*\\?([ij]|[^\W\d_])\s*\}|\\([ij])(?![a-zA-Z])\s?|([^\W\d_]))"
)
_LETTER = re.compile(r"\\(" + "|".join(sorted(_LETTERS, key=len, reverse=True)) + r")(?![a-zA-Z])\s?(?:\{\})?")
_COMMAND = re.compile(r"\\([a-zA-Z]+)\*?\s?")
_ESCAPED = re.compile(r"\\([&%$#_{} ,;:!/@-])")
_WORD_COMMAND = re.compile(r"\\[a-zA-Z]+\*?\s*")
_SPACES = re.compile(r"\s+")
_DROP = str.maketrans(dict.fromkeys('{}$"') | {"~": " "})
_OTHER_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "o", "ł": "l", "Ł": "l", "ß": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "đ": "d",
     "Đ": "d", "ð": "d", "Ð": "d", "þ": "th", "Þ": "th", "ı": "i", "ȷ": "j", "ŋ": "n", "’": "'", "–": "-", "—": "-"}
)  # fmt: skip


def _accented(match: re.Match[str]) -> str:
    accent = _ACCENTS[match[1] or match[2]]
    letter = match[3] or match[4] or match[5]
    return unicodedata.normalize("NFC", letter + accent)


def plain(text: str) -> str:
    """Readable text: accents composed, braces and formatting commands gone, blanks collapsed."""
    if "\\" in text:
        text = _ACCENT.sub(_accented, text)
        text = _LETTER.sub(lambda m: _LETTERS[m[1]], text)
        text = _ESCAPED.sub(lambda m: "" if m[1] in "/-!@" else " " if m[1] in " ,;:" else "\0" + m[1], text)
        text = _COMMAND.sub(lambda m: _SYMBOLS.get(m[1], ""), text)
    text = text.replace("---", "—").replace("--", "–").replace("~", " ").replace("\0{", "\1").replace("\0}", "\2")
    text = text.replace("\0$", "\3").replace("{", "").replace("}", "").replace("$", "")
    text = text.replace("\1", "{").replace("\2", "}").replace("\3", "$").replace("\0", "")
    return _SPACES.sub(" ", text).strip()


def fold(text: str) -> str:
    """Text for comparing: lower case, no accents, no LaTeX."""
    if "\\" in text:
        text = _LETTER.sub(lambda m: _LETTERS[m[1]], text)
        text = _WORD_COMMAND.sub("", text)
        text = re.sub(r"\\.", "", text)
    text = text.translate(_DROP)
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_OTHER_LETTERS))
        text = "".join(c for c in text if not unicodedata.combining(c))
    return _SPACES.sub(" ", text).lower().strip()

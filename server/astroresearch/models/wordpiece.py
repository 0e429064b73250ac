"""BERT's uncased word pieces in plain Python, with the vocabulary that the package blingfire carries.

Only that package's data file is read: its native library, which exists for some platforms only, is never loaded.
"""

from __future__ import annotations

import importlib.util
import re
import struct
import unicodedata
from itertools import pairwise
from pathlib import Path

CLS, SEP, UNKNOWN = 101, 102, 100
_FIRST_WORD = 96
"Offset of the table of words in blingfire's `.i2w` format: a count, that many + 1 offsets, then the words."
_TOKENS = re.compile(r"[^\W_]+|[^\w\s]|_")
_MAX_WORD = 100


def vocabulary_path() -> Path | None:
    """Where the vocabulary is, or None if blingfire is not installed. Does not import it."""
    spec = importlib.util.find_spec("blingfire")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / "bert_base_tok.i2w"
    return path if path.is_file() else None


def read_vocabulary(data: bytes) -> dict[str, int]:
    """Pieces and their ids; one that goes on a word begins with `##`.

    Raises:
        ValueError: The data is not in the format that we know.
    """
    (count,) = struct.unpack_from("<I", data, _FIRST_WORD)
    if not 1000 < count < 200_000:
        raise ValueError("This is no table of words.")
    offsets = struct.unpack_from(f"<{count + 1}I", data, _FIRST_WORD + 4)
    base = _FIRST_WORD + 4 + 4 * (count + 1)
    out: dict[str, int] = {}
    for number, (start, end) in enumerate(pairwise(offsets)):
        piece = data[base + start : base + end].decode("utf-8")
        out[piece[1:] if piece.startswith(" ") else f"##{piece}"] = number
    if out.get("[cls]") != CLS or out.get("[sep]") != SEP or out.get("[unk]") != UNKNOWN:
        raise ValueError("This is not BERT's vocabulary.")
    return out


class WordPiece:
    """Text to ids."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._ids = vocabulary
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str, limit: int = 256) -> list[int]:
        """Ids with [CLS] and [SEP], `limit` at most."""
        out = [CLS]
        for token in _TOKENS.findall(_plain(text)):
            if token not in self._cache:
                if len(self._cache) > 50_000:
                    self._cache.clear()
                self._cache[token] = self._pieces(token)
            out += self._cache[token]
            if len(out) >= limit:
                break
        return [*out[: limit - 1], SEP]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _MAX_WORD:
            return [UNKNOWN]
        out: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                if (found := self._ids.get(mark + word[start:end])) is not None:
                    out.append(found)
                    start = end
                    break
            else:
                return [UNKNOWN]
        return out


def _plain(text: str) -> str:
    """Lower case without accents; each CJK letter is a word of its own."""
    text = text.lower()
    if text.isascii():
        return text
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return re.sub(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])", r" \1 ", text)

"""Quotes: what stands there is found, what was changed is not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astroresearch.library.quotes import find, fold

TEXT = (
    "We find that the eﬃcient heating is not seen in 12 of 15 clusters. The slope is −0.5 ± 0.1 and the mass is 1.5 × 10¹⁴ M⊙, "
    "while the flux reaches 3.2 mJy at 5 GHz.\nThe well-known mag- netic ﬁeld of “cool cores” cannot exceed 25 μG (see Fig. 3)."
)


@pytest.mark.parametrize(
    "quote",
    [
        "the efficient heating is not seen in 12 of 15 clusters",
        "slope is -0.5 ± 0.1",
        "slope is −0.5  ±\n0.1",
        "3.2 mJy at 5 GHz. The well-known magnetic field",
        "wellknown magnetic field of",
        '"cool cores" cannot exceed 25 μG',
        "“we find that the efficient heating.”",
        "mass is 1.5 × 10¹⁴",
        "magnetic field of 'cool cores'".replace("'", '"'),
    ],
)
def test_found(quote: str) -> None:
    found = find(quote, fold(TEXT))
    assert found is not None
    assert 0 <= found.start < found.end <= len(TEXT)


@pytest.mark.parametrize(
    "quote",
    [
        "the efficient heating is seen in 12 of 15 clusters",
        "heating is not seen in 2 of 15 clusters",
        "heating is not seen in 12 of 16 clusters",
        "2 of 15 clusters",
        "slope is 0.5 ± 0.1",
        "0.5 ± 0.1",
        "slope is +0.5",
        "slope is -05 ± 01",
        "mass is 15 × 10¹⁴",
        "mass is 1.5 × 1014",
        "mass is 1.5 × 10",
        "reaches 3.2 mJ",
        "reaches 3.2 MJy",
        "reaches 32 mJy",
        "field can exceed 25",
        "cannot exceed 25 mG",
        "cannot exceed 25 μ",
        "",
        "…",
    ],
)
def test_not_found(quote: str) -> None:
    assert find(quote, fold(TEXT)) is None


def test_a_negation_is_not_made_by_a_space() -> None:
    assert find("the effect is notable here", fold("the effect is not able here")) is None
    assert find("no table shows", fold("notable shows")) is None


WORD = st.sampled_from(
    [
        "the",
        "of",
        "gas",
        "flow",
        "core",
        "heat",
        "not",
        "no",
        "cannot",
        "without",
        "mass",
        "z",
        "redshift",
        "km",
        "s-1",
        "keV",
        "erg",
        "GHz",
        "mJy",
        "±",
        "−",
        "-",
        "=",
        "~",
        "<",
        ">",
        "1",
        "2",
        "12",
        "0.5",
        "1.5",
        "10.25",
        "−3",
        "+7",
        "5%",
        "1e44",
        "10⁴⁴",
        "naïve",
        "ﬁeld",
        "eﬃcient",
        "Hα",
        "μG",
        "Å",
        "☉",
        "(see",
        "Fig.",
        "3)",
        "well-known",
        "X-ray",
        "et",
        "al.,",
        "2011;",
        "\xadsoft",
        "α=2",
        "e.g.",
    ]
)


@given(st.lists(WORD, min_size=3, max_size=60), st.data())
@settings(max_examples=300, deadline=None)
def test_every_verbatim_quote_is_found(words: list[str], data: st.DataObject) -> None:
    seams = data.draw(st.lists(st.sampled_from([" ", "\n", "  ", "\f"]), min_size=len(words), max_size=len(words)))
    text = "".join(w + s for w, s in zip(words, seams, strict=True))
    start = data.draw(st.integers(0, len(words) - 2))
    end = data.draw(st.integers(start + 1, len(words)))
    quote = " ".join(words[start:end])
    found = find(quote, fold(text))
    if any(c.isalnum() for c in quote):
        assert found is not None


NUMBER = st.from_regex(r"[−+-]?[1-9][0-9]{0,2}(\.[0-9]{1,2})?", fullmatch=True)


@given(
    NUMBER,
    NUMBER,
    st.sampled_from(["keV", "mJy", "km", "Mpc"]),
    st.sampled_from(["is", "is not", "cannot be", "has no"]),
)
@settings(max_examples=300, deadline=None)
def test_a_changed_number_is_never_verified(one: str, other: str, unit: str, verb: str) -> None:
    text = fold(f"In this sample the value {verb} {one} {unit} at most.")
    for number, how in ((other, verb), (one, "is"), (one, "is not")):
        changed = fold(number).text != fold(one).text or how != verb
        found = find(f"the value {how} {number} {unit}", text)
        assert (found is None) if changed else (found is not None)


@given(st.text(max_size=200), st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_folded_and_searched(text: str, quote: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.origin)
    assert all(a <= b for a, b in zip(folded.origin, folded.origin[1:], strict=False))
    find(quote, folded)


def test_changed_digits_in_long_text_are_never_verified() -> None:
    chance = random.Random(5)
    words = [chance.choice(["flux", "mass", "12.5", "−3", "of", "not", "7", "0.04", "keV"]) for _ in range(400)]
    text = fold(" ".join(words))
    for _ in range(300):
        start = chance.randrange(380)
        quote = words[start : start + 12]
        at = chance.randrange(12)
        if not any(c.isdigit() for c in quote[at]):
            continue
        quote[at] = quote[at] + "8"
        assert find(" ".join(quote), text) is None

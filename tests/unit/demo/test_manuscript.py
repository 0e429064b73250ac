"""The sample manuscript: whole, and with exactly the faults that it is to show."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

ROOT = Path(str(resources.files("astroresearch.demo"))) / "manuscript"
MISSING = "1993MNRAS.264L..25B"
BIBCODES = {
    "1994ARA&A..32..277F",
    "2001AJ....122.2281C",
    "2003MNRAS.344L..43F",
    "2006PhR...427....1P",
    "2007ARA&A..45..117M",
    "2007MNRAS.381.1381S",
    "2012ARA&A..50..455F",
    "2016Natur.535..117H",
}


def source() -> str:
    """All .tex files in the order in which they are included."""
    main = (ROOT / "main.tex").read_text("utf-8")
    return re.sub(r"\\input\{([^}]*)\}", lambda m: (ROOT / f"{m[1]}.tex").read_text("utf-8"), main)


def cited() -> set[str]:
    found = re.findall(r"\\cite[a-z]*(?:\[[^]]*\])*\{([^}]*)\}", source())
    return {key.strip() for keys in found for key in keys.split(",")}


def test_every_cited_key_but_one_is_in_the_bibliography():
    keys = set(re.findall(r"@\w+\{([^,]+),", (ROOT / "refs.bib").read_text("utf-8")))
    assert cited() - keys == {MISSING}
    assert keys <= cited()


def test_the_bibliography_holds_the_true_bibcodes():
    bib = (ROOT / "refs.bib").read_text("utf-8")
    assert set(re.findall(r"/abs/(\S{19})\}", bib)) == BIBCODES
    assert all(len(code) == 19 for code in {*BIBCODES, MISSING})
    assert bib.count("{") == bib.count("}")


def test_every_label_that_is_referred_to_exists_once():
    labels = re.findall(r"\\label\{([^}]*)\}", source())
    assert len(labels) == len(set(labels))
    assert set(re.findall(r"\\ref\{([^}]*)\}", source())) <= set(labels)


def test_one_sentence_lacks_a_citation():
    text = (ROOT / "sections" / "core.tex").read_text("utf-8")
    (paragraph,) = [p for p in text.split("\n\n") if "A second system of emission lines" in p]
    assert "\\cite" not in paragraph
    assert "3000~\\kms{}" in paragraph


def test_every_included_file_names_its_root():
    files = sorted((ROOT / "sections").glob("*.tex"))
    assert len(files) == 4
    assert all(f.read_text("utf-8").startswith("% !TeX root = ../main.tex\n") for f in files)

"""The sample notes: built in a child process, honest about themselves, readable in order."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from astroresearch.demo.papers import MARK, SAMPLES, build_in_child
from astroresearch.errors import AstroResearchError

READ = """
import json, sys, pymupdf
print(json.dumps([[p.get_text() for p in pymupdf.open(f)] for f in sys.argv[1:]], ensure_ascii=False))
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The text of each note's pages."""
    folder = tmp_path_factory.mktemp("notes")
    subprocess.run([sys.executable, "-m", "astroresearch.demo.papers", str(folder)], check=True)
    files = [str(folder / sample.file_name) for sample in SAMPLES]
    done = subprocess.run([sys.executable, "-c", READ, *files], check=True, capture_output=True)
    texts = json.loads(unicodedata.normalize("NFKC", done.stdout.decode()))
    return {sample.name: text for sample, text in zip(SAMPLES, texts, strict=True)}


async def test_the_same_sources_give_the_same_bytes(tmp_path: Path):
    first = await build_in_child(tmp_path / "a")
    second = await build_in_child(tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert all(p.read_bytes().startswith(b"%PDF-") for p in first)


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(AstroResearchError) as caught:
        await build_in_child(tmp_path / "file")
    assert "file" in caught.value.message


def test_importing_the_records_does_not_import_pymupdf():
    code = "import sys, astroresearch.demo.papers; sys.exit('pymupdf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_each_note_says_what_it_is(sample, pages):
    assert MARK in " ".join(pages[sample.name][0].split())
    assert sample.paper.title.endswith(" (sample note)")
    assert sample.paper.title.removesuffix(" (sample note)") in " ".join(pages[sample.name][0].split())
    assert 2 <= len(pages[sample.name]) <= 3
    assert (sample.paper.doctype, sample.paper.sources) == ("note", ("sample",))
    assert MARK in sample.paper.comment
    assert sample.paper.identifiers == type(sample.paper.identifiers)()
    assert sample.paper.journal == ""


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_text_comes_in_reading_order(sample, pages):
    text = "\n".join(pages[sample.name])
    headings = [f"\n{n}. " for n in range(1, 5)] + ["\nReferences"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)


def test_a_sentence_across_lines_of_a_column_stays_together(pages):
    text = " ".join(" ".join(pages["quiet_gas"]).split())
    assert (
        "The gas has a velocity dispersion along the line of sight of 164 ± 10 km/s in the region 30 to 60 kpc" in text
    )

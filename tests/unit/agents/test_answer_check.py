"""Quotes and papers of an answer are looked up before the turn ends."""

from __future__ import annotations

from typing import Any

import pytest

from astroresearch.agents.answer_check import Checked, check, parts_of, quotes_of
from astroresearch.engine.messages import Message
from tests.fakes.services import PERSEUS, FakeLibrary
from tests.unit.agents.conftest import DeskMaker, check_timeline

TRUE = "Viscous dissipation of their energy may balance radiative cooling."
FALSE = "The ripples are caused by dark matter annihilation."


def tool(content: str, name: str = "read_file", status: str = "completed", **metadata: Any) -> Message:
    return Message("tool", content, tool_call_id="abcdefghi", name=name, status=status, meta={"metadata": metadata})


async def checked(answer: str, *messages: Message, citations: Any = ()) -> Checked:
    library = FakeLibrary()
    return await check(answer, messages, citations, library=library, papers=library)


@pytest.mark.parametrize(
    ("answer", "quotes"),
    [
        (f"They say “{TRUE}” (Fabian et al. 2003, p. 2).", [TRUE]),
        (f'They say "{TRUE}" twice: "{TRUE}".', [TRUE]),
        (f"> {TRUE}\n>\n> — **Fabian et al. 2003**, p. 2", [TRUE]),
        (f"> {TRUE[:39]}\n> {TRUE[39:]} (Fabian et al. 2003, p. 2)", [TRUE]),
        (f"> “{TRUE}” — Fabian et al. 2003", [TRUE]),
        (f"> {TRUE} — Fabian et al. 2003", [TRUE]),
        (r"> about 5 \* 10 to the 44 erg", ["about 5 * 10 to the 44 erg"]),
        ('the “cooling flow” problem and a 5" beam', []),
        ('```\nprint("one two three four five six")\n```', []),
        ("> [!NOTE] this is a remark of the model's own", []),
        ("", []),
    ],
)
def test_quotes_are_told_from_names_and_code(answer: str, quotes: list[str]) -> None:
    assert quotes_of(answer) == quotes


def test_what_a_quote_leaves_out_is_not_looked_for() -> None:
    assert parts_of("[T]he gas is hot … and it cools [radiatively] within one gigayear") == [
        "The gas is hot",
        "and it cools",
        "within one gigayear",
    ]


async def test_a_true_quote_becomes_a_verified_citation() -> None:
    out = await checked(f"They say “{TRUE}”")
    assert out.notice == ""
    assert [(c["paperId"], c["page"], c["verified"]) for c in out.citations] == [(PERSEUS.id, 2, True)]


async def test_an_invented_quote_is_named() -> None:
    out = await checked(f"They say “{FALSE}”")
    assert FALSE in out.notice
    assert [(c["paperId"], c["quote"], c["verified"]) for c in out.citations] == [("", FALSE, False)]


async def test_a_quote_of_a_file_needs_no_paper() -> None:
    out = await checked(f"Your text says “{FALSE}”", tool(FALSE))
    assert out == Checked(())


@pytest.mark.parametrize(
    "message",
    [
        tool(FALSE, name="save_note"),
        tool(FALSE, name="file_edit"),
        tool(FALSE, status="failed"),
        Message("assistant", FALSE),
    ],
)
async def test_the_models_own_words_prove_nothing(message: Message) -> None:
    assert FALSE in (await checked(f"They say “{FALSE}”", message)).notice


async def test_quotes_of_tools_are_not_cited_twice() -> None:
    cited = {"paperId": PERSEUS.id, "page": 2, "quote": TRUE, "verified": True}
    assert (await checked(f"> {TRUE}", citations=(cited,))).citations == (cited,)


@pytest.mark.parametrize(
    "answer",
    [
        "See 2011ApJ...732...59Z.",
        "See doi:10.1086/999999.",
        "See arXiv:1912.99999.",
        "So say Zwingli et al. (2011).",
        "It is so (Zwingli 2011, p. 3).",
    ],
)
async def test_a_paper_that_nobody_showed_is_named(answer: str) -> None:
    out = await checked(answer, tool("Ripples in Perseus", name="search_papers"))
    assert out.notice.startswith("Cited, but neither in the library")


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (f"See {PERSEUS.identifiers.bibcode}.", ""),
        ("See 2011ApJ...732...59Z.", "title: Z, bibcode: 2011ApJ...732...59Z"),
        ("So say Fabian et al. (2003).", "Fabian, A. C. 2003, MNRAS"),
        ("In May 2003 and (in 2011) it rained.", ""),
        ("NGC 1275 is in the Perseus cluster (z = 0.0176).", ""),
    ],
)
async def test_papers_that_were_read_are_fine(answer: str, read: str) -> None:
    assert (await checked(answer, tool(read))).notice == ""


async def test_the_user_is_told_before_the_turn_ends(desk: DeskMaker) -> None:
    async with desk([{"text": f"They say “{TRUE}” and “{FALSE}”"}]) as d:
        outcome = await d.send("What are the ripples?")
        check_timeline(d.events)
        assert d.types()[-2:] == ["notice", "done"]
        assert FALSE in d.of("notice")[0]["text"]
        assert TRUE not in d.of("notice")[0]["text"]
        assert [c["verified"] for c in outcome.citations] == [True, False]

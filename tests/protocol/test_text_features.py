"""The manuscript through a real server: completion, hover, definition, references, rename, diagnostics, actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from astroresearch.demo.standin import Standin
from astroresearch.lsp.client import Buffers, Client, RemoteError

BIB = (
    "@article{good1, author={Doe, Jane}, title={First title}, journal={\\apj}, year=2001, doi={10.1086/123456},\n"
    "  abstract={We observe ![x](http://example.org/a.png) dwarfs.}}\n"
    '@article{good2, author={M{\\"u}ller, Rick}, title={Second title}, journal={AJ}, year=2002, crossref={good1}}\n'
)
TEX = (
    "\\documentclass{article}\n\\usepackage{natbib}\n\\begin{document}\n\\section{One}\\label{sec:one}\n"
    "Müller 🔭 galaxies shine brightly \\citep{good1,goodX} in \\ref{sec:one}.\n\\input{part}\n\\citep{}\n"
    "\\bibliography{refs}\n\\end{document}\n"
)
PART = "More of it \\citet{good1}.\n"


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    folder = tmp_path / "my päper"
    folder.mkdir()
    for name, text in (("main.tex", TEX), ("part.tex", PART), ("refs.bib", BIB)):
        (folder / name).write_text(text, "utf-8")
    return folder


def at(text: str, word: str, shift: int = 1) -> dict[str, int]:
    """The position `shift` characters into a word, in UTF-16."""
    offset = text.index(word) + shift
    line = text[:offset].rsplit("\n", 1)[-1]
    return {"line": text.count("\n", 0, offset), "character": len(line.encode("utf-16-le")) // 2}


async def ask(client: Client, uri: str, method: str, position: dict[str, int], **more: Any) -> Any:
    return await client.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position, **more})


async def change(client: Client, uri: str, version: int, position: dict[str, int], text: str) -> None:
    edit = {"range": {"start": position, "end": position}, "text": text}
    await client.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [edit]}
    )


async def test_completion_follows_the_typing_and_resolves(server: Any, paper: Path) -> None:
    async with server(paper) as client:
        uri = await client.open_document(paper / "main.tex")
        where = at(TEX, "\\citep{}", 7)
        answer = await ask(client, uri, "completion", where)
        assert answer["isIncomplete"]
        assert {item["label"] for item in answer["items"]} == {"good1", "good2"}
        await change(client, uri, 2, where, "muller")
        items = (await ask(client, uri, "completion", {**where, "character": where["character"] + 6}))["items"]
        assert items[0]["label"] == "good2"
        resolved = await client.request("completionItem/resolve", items[0])
        assert "Müller, Rick (2002). Second title" in resolved["documentation"]["value"]


async def test_an_unsaved_bib_wins_over_the_disk(server: Any, paper: Path) -> None:
    async with server(paper) as client:
        uri = await client.open_document(paper / "main.tex")
        bib = await client.open_document(paper / "refs.bib")
        await change(client, bib, 2, {"line": 0, "character": 0}, "@misc{brandnew, title={Zap}}\n")
        items = (await ask(client, uri, "completion", at(TEX, "\\citep{}", 7)))["items"]
        assert "brandnew" in {item["label"] for item in items}
        await client.notify("textDocument/didClose", {"textDocument": {"uri": bib}})
        items = (await ask(client, uri, "completion", at(TEX, "\\citep{}", 7)))["items"]
        assert "brandnew" not in {item["label"] for item in items}


async def test_hover_shows_the_paper_and_loads_nothing(server: Any, paper: Path) -> None:
    async with server(paper) as client:
        uri = await client.open_document(paper / "main.tex")
        shown = (await ask(client, uri, "hover", at(TEX, "good1")))["contents"]["value"]
        for part in (
            "First title",
            "Doe, Jane (2001)",
            "The Astrophysical Journal",
            "cited 2×",
            "doi.org/10.1086/123456",
        ):
            assert part in shown
        assert "![x]" not in shown
        assert "sec:one" in (await ask(client, uri, "hover", at(TEX, "sec:one}.")))["contents"]["value"]
        assert await ask(client, uri, "hover", at(TEX, "shine")) is None


async def test_definition_and_references_are_exact(server: Any, paper: Path) -> None:
    async with server(paper) as client:
        uri = await client.open_document(paper / "main.tex")
        place = (await ask(client, uri, "definition", at(TEX, "good1")))[0]
        assert place["uri"].endswith("refs.bib")
        assert place["range"] == {"start": {"line": 0, "character": 9}, "end": {"line": 0, "character": 14}}
        found = await ask(client, uri, "references", at(TEX, "good1"), context={"includeDeclaration": True})
        assert sorted(p["uri"].rsplit("/", 1)[1] for p in found) == ["main.tex", "part.tex", "refs.bib", "refs.bib"]


async def test_rename_edits_every_place_with_versions(server: Any, paper: Path) -> None:
    async with server(paper, takes_edits=True) as client:
        uri = await client.open_document(paper / "main.tex")
        edit = await ask(client, uri, "rename", at(TEX, "good1"), newName="Doe2001")
        files = {
            change["textDocument"]["uri"].rsplit("/", 1)[1]: (change["textDocument"]["version"], len(change["edits"]))
            for change in edit["documentChanges"]
        }
        assert files == {"main.tex": (1, 1), "part.tex": (None, 1), "refs.bib": (None, 2)}
        with pytest.raises(RemoteError, match="already has"):
            await ask(client, uri, "rename", at(TEX, "good1"), newName="good2")
        with pytest.raises(RemoteError, match="can't be"):
            await ask(client, uri, "rename", at(TEX, "good1"), newName="a,b")


async def test_an_undefined_key_is_found_and_can_be_replaced(server: Any, paper: Path) -> None:
    async with server(paper, takes_edits=True) as client:
        uri = await client.open_document(paper / "main.tex")
        report = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        found = [d for d in report["items"] if d["code"] == "astroresearch.tex.undefined-key"]
        assert ["goodX" in d["message"] for d in found] == [True]
        assert found[0]["range"]["start"] == at(TEX, "goodX", 0)
        params = {"textDocument": {"uri": uri}, "range": found[0]["range"], "context": {"diagnostics": found}}
        actions = await client.request("textDocument/codeAction", params)
        edit = next(a["edit"] for a in actions if a["title"].startswith("Replace"))
        assert edit["documentChanges"][0]["edits"][0]["newText"] in ("good1", "good2")
        assert edit["documentChanges"][0]["textDocument"]["version"] == 1


async def test_a_key_that_is_an_identifier_offers_its_entry(server: Any, paper: Path) -> None:
    text = TEX.replace("goodX", "arXiv:1901.05465")
    async with server(paper) as client:
        uri = await client.open_document(paper / "main.tex", text)
        where = at(text, "arXiv:")
        params = {"textDocument": {"uri": uri}, "range": {"start": where, "end": where}, "context": {"diagnostics": []}}
        actions = await client.request("textDocument/codeAction", params)
        command = next(a["command"] for a in actions if a["title"].startswith("Add entry from arXiv"))
        assert command["command"] == "astroresearch.bib.insert"
        assert command["arguments"][0]["paper"] == "arXiv:1901.05465"


async def test_outline_folding_and_links(server: Any, paper: Path) -> None:
    async with server(paper) as client:
        uri = await client.open_document(paper / "main.tex")
        bib = await client.open_document(paper / "refs.bib")
        document = {"textDocument": {"uri": uri}}
        outline = await client.request("textDocument/documentSymbol", document)
        assert [(s["name"], [c["name"] for c in s["children"]]) for s in outline] == [("One", ["sec:one"])]
        entries = await client.request("textDocument/documentSymbol", {"textDocument": {"uri": bib}})
        assert [s["name"] for s in entries] == ["good1", "good2"]
        links = await client.request("textDocument/documentLink", document)
        assert "https://doi.org/10.1086/123456" in {link["target"] for link in links}
        assert await client.request("textDocument/foldingRange", document)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
async def test_files_in_any_encoding(server: Any, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "main.tex").write_text("\\documentclass{article}\n\\cite{m}\n\\bibliography{refs}\n")
    (tmp_path / "refs.bib").write_bytes("@misc{müll1, title={Größe}}\r\n@misc{m2, title={T}}".encode(encoding))
    async with server(tmp_path) as client:
        uri = await client.open_document(tmp_path / "main.tex")
        answer = await ask(client, uri, "completion", {"line": 1, "character": 7})
        assert {item["label"] for item in answer["items"]} == {"müll1", "m2"}


async def test_papers_of_the_library_are_offered_below_the_bibs_own(server: Any, workspace: Path) -> None:
    async with Standin() as standin, server(workspace, env=dict(standin.env)) as client:
        await client.request("astroresearch/notes/create", {"text": "x", "paper": "2012ARA&A..50..455F"})
        text = "\\documentclass{article}\n\\begin{document}\n\\cite{Feedback}\n\\bibliography{refs}\n\\end{document}\n"
        uri = await client.open_document(workspace / "main.tex", text)
        at = {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 14}}
        answer = await client.request("textDocument/completion", at)
        offered = {item["label"]: item for item in answer["items"]}
        assert offered["2012ARA&A..50..455F"]["command"]["command"] == "astroresearch.bib.insert"


async def _actions(client: Client, uri: str, line: int, start: int, end: int) -> dict[str, Any]:
    where = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    params = {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": []}}
    return {action["title"]: action for action in await client.request("textDocument/codeAction", params)}


async def _run(client: Client, action: dict[str, Any]) -> None:
    command = {name: action["command"][name] for name in ("command", "arguments")}
    await client.request("workspace/executeCommand", command)


async def test_find_citations_offers_papers_and_cites_the_chosen_one(server: Any, workspace: Path) -> None:
    async def choose(request: Any) -> Any:
        return next(a for a in request["actions"] if "Observational Evidence" in a["title"])

    handlers = {"window/showMessageRequest": choose}
    async with (
        Standin() as standin,
        server(workspace, env=dict(standin.env), takes_edits=True, on_request=handlers) as client,
    ):
        buffers = Buffers(client)
        text = (workspace / "main.tex").read_text().replace("Cool cores", "Feedback of active galactic nuclei")
        (workspace / "main.tex").write_text(text)
        uri = await buffers.open(workspace / "main.tex")
        sentence = text.splitlines()[2]
        action = (await _actions(client, uri, 2, 0, len(sentence)))["Find citations for this sentence"]
        action["command"]["arguments"][0]["query"] = "Observational Evidence Active Galactic Nuclei Feedback"
        await _run(client, action)
        assert "2012ARA&A..50..455F" in buffers.texts[uri]
        assert any("Observational Evidence" in t for u, t in buffers.texts.items() if u.endswith(".bib"))


async def test_an_object_that_is_looked_up_is_shown(server: Any, workspace: Path) -> None:
    async with Standin() as standin, server(workspace, env=dict(standin.env)) as client:
        shown: list[str] = []
        client.on_notification["window/showMessage"] = lambda params: shown.append(params["message"])
        uri = await client.open_document(workspace / "main.tex", "\\documentclass{article}\nNGC 1275 shines.\n")
        actions = await _actions(client, uri, 1, 0, 8)
        await _run(client, next(a for title, a in actions.items() if title.startswith("Look up the object")))
        assert "49.95" in shown[-1]


async def test_a_note_is_offered_only_where_it_can_be_typed(server: Any, workspace: Path) -> None:
    async with server(workspace) as client:
        uri = await client.open_document(workspace / "main.tex")
        assert not any("note" in title for title in await _actions(client, uri, 2, 0, 8))
    async with server(workspace, experimental={"timeline": True}) as client:
        uri = await client.open_document(workspace / "main.tex")
        assert any("note" in title for title in await _actions(client, uri, 2, 0, 8))

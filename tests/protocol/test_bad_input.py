"""Bad input gets a sentence that says what is wrong and what to do, and nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from astroresearch.demo.standin import Standin
from astroresearch.lsp.client import RemoteError

ENCRYPTED = "pdf_hostile/pdfminer.six__aes-256.pdf"


async def _failed_import(server: Any, path: Path) -> dict[str, Any]:
    async with server() as client:
        answer = await client.request("astroresearch/papers/import", {"paths": [str(path)]})
        assert answer["imported"] == []
        assert await client.request("astroresearch/library/search", {"query": "x"})
    assert len(answer["failed"]) == 1
    found: dict[str, Any] = answer["failed"][0]
    assert "Traceback" not in found["message"]
    return found


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"<html><body>Please log in</body></html>", "not_pdf"), (b"%PDF-1.7\ngarbage", "damaged")],
)
async def test_what_is_no_pdf_is_refused_with_a_reason(
    server: Any, home: Path, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(content)
    assert (await _failed_import(server, path))["reason"] == reason
    assert not [p for p in (home / "papers").rglob("*") if p.is_file()]


async def test_an_encrypted_pdf_says_so(server: Any, shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    shutil.copy(shared / "hostile" / ENCRYPTED, path)
    assert (await _failed_import(server, path))["reason"] == "encrypted"


async def test_a_pdf_over_the_limit_is_refused(server: Any, tmp_path: Path) -> None:
    path = tmp_path / "huge.pdf"
    with path.open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(101 * 1024 * 1024)
    assert (await _failed_import(server, path))["reason"] == "too_large"


async def test_a_missing_file_is_named(server: Any, tmp_path: Path) -> None:
    assert "nothere.pdf" in (await _failed_import(server, tmp_path / "nothere.pdf"))["message"]


async def test_an_unknown_identifier_is_not_found(server: Any) -> None:
    async with Standin() as standin, server(env=dict(standin.env)) as client:
        for name in ("1999ApJ...999..999X", "2912.99999"):
            with pytest.raises(RemoteError) as caught:
                await client.request("astroresearch/papers/get", {"paper": name})
            assert caught.value.kind == "not_found"


async def test_a_wrong_token_is_named_and_arxiv_still_answers(server: Any) -> None:
    async with Standin() as standin, server(env={**standin.env, "ADS_API_TOKEN": "wrong-canary"}) as client:
        answer = await client.request("astroresearch/papers/search", {"query": "cooling flows"})
        said = " ".join(answer["notices"])
        assert "ADS" in said
        assert "token" in said
        assert "wrong-canary" not in str(answer)


async def test_no_network_is_said_for_each_source(server: Any) -> None:
    dead = {f"ASTRORESEARCH_{name}_URL": "http://127.0.0.1:9" for name in ("ADS", "ARXIV", "SESAME", "SIMBAD")}
    async with server(env=dead | {"ADS_API_TOKEN": "t"}) as client:
        with pytest.raises(RemoteError) as caught:
            await client.request("astroresearch/papers/search", {"query": "cooling flows"})
        assert "ADS" in str(caught.value)
        assert "arXiv" in str(caught.value)


async def test_a_note_of_a_megabyte_is_kept_and_a_larger_one_is_refused_in_words(server: Any) -> None:
    async with server() as client:
        note = await client.request("astroresearch/notes/create", {"text": "x" * 1_000_000})
        kept = await client.request("astroresearch/notes/get", {"id": note["id"]})
        assert len(kept["text"]) == 1_000_000
        with pytest.raises(RemoteError) as caught:
            await client.request("astroresearch/notes/create", {"text": "x" * 5_000_000})
        assert caught.value.remote_code == -32602


async def test_a_database_from_the_future_is_left_alone_and_the_text_features_work(
    server: Any, home: Path, workspace: Path
) -> None:
    import apsw

    async with server(workspace) as client:
        await client.request("astroresearch/notes/create", {"text": "kept"})
    connection = apsw.Connection(str(home / "library.db"))
    connection.execute("pragma user_version = 9999")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    before = (home / "library.db").read_bytes()
    async with server(workspace) as client:
        with pytest.raises(RemoteError) as caught:
            await client.request("astroresearch/notes/create", {"text": "x"})
        assert "newer" in str(caught.value)
        uri = await client.open_document(workspace / "main.tex")
        at = {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 20}}
        assert "Cooling Flows" in (await client.request("textDocument/hover", at))["contents"]["value"]
    assert (home / "library.db").read_bytes() == before


async def test_a_broken_bib_costs_its_broken_entry_only(server: Any, workspace: Path) -> None:
    with (workspace / "refs.bib").open("a") as file:
        file.write(
            "@article{broken, title = {Never closed\n\n@article{Good2001, author={Doe, J}, title={T}, journal={ApJ}, year=2001}\n"
        )
    async with server(workspace) as client:
        uri = await client.open_document(workspace / "refs.bib")
        report = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert report["items"]
        main = await client.open_document(
            workspace / "main.tex", "\\documentclass{article}\\bibliography{refs}\\cite{Good}"
        )
        at = {"textDocument": {"uri": main}, "position": {"line": 0, "character": 49}}
        answer = await client.request("textDocument/completion", at)
        assert "Good2001" in [item["label"] for item in answer["items"]]


async def test_no_model_is_said_with_the_way_to_add_one(server: Any, workspace: Path) -> None:
    async with server(workspace) as client:
        answer = await client.request("astroresearch/chat/send", {"text": "What heats cool cores?"})
    assert answer["stopReason"] == "end_turn"
    assert "no language model" in answer["answer"].lower()


async def test_a_data_folder_that_is_a_file_is_said(server: Any, home: Path, workspace: Path) -> None:
    (home / "library.db").mkdir()
    async with server(workspace) as client:
        with pytest.raises(RemoteError) as caught:
            await client.request("astroresearch/notes/list", {})
        assert "folder" in str(caught.value)

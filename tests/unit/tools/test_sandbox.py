"""Which paths tools may touch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astroresearch.errors import NotAllowed
from astroresearch.tools.sandbox import Roots, is_inside, resolve

PARTS = st.sampled_from(
    [
        "..",
        ".",
        "a",
        "b.tex",
        "~",
        "~root",
        "link",
        "out",
        ".git",
        "config",
        "fig..old.pdf",
        "",
        " ",
        "...",
        "A",
        "/",
        "loop",
        "up",
    ]
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("sandbox")
    root = base / "work"
    for folder in (root / "a", root / ".git", base / "secret", base / "library"):
        folder.mkdir(parents=True)
    (root / "fig..old.pdf").write_text("x")
    (root / "b.tex").write_text("x")
    (base / "secret" / "key").write_text("x")
    (base / "library" / "paper.md").write_text("x")
    (root / "link").symlink_to(root / "a")
    (root / "out").symlink_to(base / "secret")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "alias.tex").symlink_to(root / "b.tex")
    return base


def roots(tree: Path) -> Roots:
    return Roots((tree / "work",), (tree / "library",))


@settings(max_examples=400, deadline=None)
@given(parts=st.lists(PARTS, max_size=7), absolute=st.booleans(), write=st.booleans())
def test_nothing_outside_the_roots_is_ever_given(tree: Path, parts: list[str], absolute: bool, write: bool) -> None:
    name = "/".join(parts)
    if absolute:
        name = f"{tree}/work/{name}"
    try:
        path = resolve(name, roots(tree), write=write)
    except NotAllowed:
        return
    allowed = [tree / "work"] if write else [tree / "work", tree / "library"]
    assert is_inside(path, [Path(os.path.realpath(root)) for root in allowed])
    assert os.path.realpath(path) == str(path)
    if write:
        assert ".git" not in path.parts
        assert path != tree / "work"


@settings(max_examples=200, deadline=None)
@given(name=st.text(max_size=40))
def test_any_text_gives_a_path_inside_or_a_sentence(tree: Path, name: str) -> None:
    try:
        path = resolve(name, roots(tree))
    except NotAllowed:
        return
    assert is_inside(path, roots(tree).canonical)


@pytest.mark.parametrize(
    "name", ["fig..old.pdf", "b.tex", "a/../b.tex", "./b.tex", "link/new.tex", "..hidden", "b.tex~"]
)
def test_readable(tree: Path, name: str) -> None:
    assert is_inside(resolve(name, roots(tree)), [tree / "work"])


@pytest.mark.parametrize(
    "name",
    [
        "../secret/key",
        "out/key",
        "up/secret/key",
        "/etc/passwd",
        "~/x",
        "~root/x",
        "a/../../secret/key",
        "loop/../out/key",
        "loop/../link/x",
        "b.tex\0.txt",
        "",
        "  ",
    ],
)
def test_refused(tree: Path, name: str) -> None:
    with pytest.raises(NotAllowed):
        resolve(name, roots(tree))


def test_the_library_is_read_only(tree: Path) -> None:
    name = str(tree / "library" / "paper.md")
    assert resolve(name, roots(tree)).name == "paper.md"
    with pytest.raises(NotAllowed):
        resolve(name, roots(tree), write=True)


@pytest.mark.parametrize(
    "name",
    [".git/config", ".GIT/config", "a/.git/hooks/x", ".vscode/settings.json", ".astroresearch/config.toml",
     ".git./config", ".g\u200cit/config", "\uff0egit/config",
     "latexmkrc",
     "a/.latexmkrc", ".envrc", "link/new.tex", "alias.tex", "out/key", ".", ""],
)  # fmt: skip
def test_never_written(tree: Path, name: str) -> None:
    with pytest.raises(NotAllowed):
        resolve(name, roots(tree), write=True)


def test_written(tree: Path) -> None:
    assert resolve("a/new.tex", roots(tree), write=True) == Path(os.path.realpath(tree / "work" / "a" / "new.tex"))
    assert resolve("a/.gitkeep", roots(tree), write=True).name == ".gitkeep"


def test_a_root_that_is_reached_through_a_link_can_be_written(tree: Path) -> None:
    (tree / "shortcut").symlink_to(tree / "work")
    given_roots = Roots((tree / "shortcut",))
    assert resolve("b.tex", given_roots, write=True) == tree / "work" / "b.tex"
    assert resolve(str(tree / "shortcut" / "b.tex"), given_roots, write=True) == tree / "work" / "b.tex"


def test_without_a_folder_relative_names_have_no_meaning(tree: Path) -> None:
    with pytest.raises(NotAllowed):
        resolve("b.tex", Roots(()))

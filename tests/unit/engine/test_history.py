from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from astroresearch.engine.history import missing_result, normalise
from astroresearch.engine.messages import Message, ToolCall
from tests.fakes.log import complaints


def call(ident: str, arguments: str = "{}", name: str = "read_file") -> ToolCall:
    return ToolCall(ident, name, arguments)


def asks(*idents: str, text: str = "") -> Message:
    return Message("assistant", text, tuple(call(i) for i in idents), turn_id="t1")


def result(ident: str, text: str = "found", status: str = "completed") -> Message:
    return Message("tool", text, tool_call_id=ident, name="read_file", status=status)


USER = Message("user", "What is known of NGC 1275?")
DONE = Message("assistant", "It is the central galaxy of the Perseus cluster.")


def test_a_sound_history_comes_back_itself() -> None:
    sound = [Message("system", "You help."), USER, asks("a", "b"), result("a"), result("b"), DONE]
    assert normalise(sound) is sound


def test_a_missing_result_says_that_effects_are_unknown() -> None:
    mended = normalise([USER, asks("a", "b"), result("a"), USER])
    assert [m.tool_call_id for m in mended] == ["", "", "a", "b", ""]
    assert mended[3].status == "interrupted"
    assert "unknown" in mended[3].content
    assert mended[3].turn_id == "t1"


def test_interrupted_and_rejected_are_told_apart() -> None:
    texts = {missing_result(call("a"), kind).content for kind in ("interrupted", "not_run", "cancelled", "denied")}
    assert len(texts) == 4
    assert "did not run" not in missing_result(call("a"), "interrupted").content
    assert "denied" in missing_result(call("a"), "denied").content


def test_results_in_the_wrong_place_are_moved_to_their_call() -> None:
    mended = normalise([result("b"), USER, asks("a", "b"), USER, result("a"), DONE])
    assert [(m.role, m.tool_call_id) for m in mended] == [
        ("user", ""), ("assistant", ""), ("tool", "a"), ("tool", "b"), ("user", ""), ("assistant", ""),
    ]  # fmt: skip


def test_orphans_and_duplicates_are_dropped_and_the_telling_one_stays() -> None:
    unknown, real = result("a", "lost", "interrupted"), result("a", "the page")
    mended = normalise([USER, result("z"), asks("a"), unknown, real, DONE])
    assert [m.content for m in mended if m.role == "tool"] == ["the page"]


def test_empty_messages_are_dropped_and_empty_results_filled() -> None:
    mended = normalise([USER, Message("assistant", " "), asks("a"), result("a", ""), Message("user", "")])
    assert [m.role for m in mended] == ["user", "assistant", "tool"]
    assert mended[2].content == "(no output)"


def test_ids_that_repeat_get_new_ones_with_their_results() -> None:
    first, second = result("call_0", "one"), result("call_0", "two")
    mended = normalise([USER, asks("call_0"), first, asks("call_0"), second])
    assert complaints(mended) == []
    assert [m.content for m in mended if m.role == "tool"] == ["one", "two"]
    new = mended[3].tool_calls[0].id
    assert len(new) == 9
    assert new.isalnum()


def test_two_calls_of_one_message_with_one_id() -> None:
    mended = normalise([USER, asks("x", "x"), result("x", "one"), result("x", "two")])
    assert complaints(mended) == []
    assert [m.content for m in mended if m.role == "tool"] == ["one", "two"]


def test_broken_arguments_are_never_replayed() -> None:
    for broken in ('{"path": "ma', '"{}"', "[1]", "", "NaN", '{"a": NaN}', "[" * 100_000):
        mended = normalise([USER, Message("assistant", "", (call("a", broken),)), result("a", "cut")])
        assert mended[1].tool_calls[0].arguments == "{}"


IDS = st.sampled_from(["a", "b", "c", "d", ""])
CALLS = st.builds(call, IDS, st.sampled_from(["{}", '{"path":"x"}', '{"pa', ""]))
MESSAGES = st.one_of(
    st.builds(
        Message, st.sampled_from(["user", "system", "assistant", "developer"]), st.sampled_from(["", " ", "hello"])
    ),
    st.builds(
        lambda text, calls: Message("assistant", text, tuple(calls)),
        st.sampled_from(["", "let me look"]),
        st.lists(CALLS, max_size=4),
    ),
    st.builds(
        result,
        IDS,
        st.sampled_from(["", "found"]),
        st.sampled_from(["completed", "failed", "denied", "cancelled", "interrupted", ""]),
    ),
)
HISTORIES = st.lists(MESSAGES, max_size=14)


@given(HISTORIES)
def test_whatever_comes_in_a_valid_history_goes_out(history: list[Message]) -> None:
    assert complaints(normalise(history)) == []


@given(HISTORIES)
def test_it_is_idempotent_and_keeps_sound_objects(history: list[Message]) -> None:
    once = normalise(history)
    twice = normalise(once)
    assert twice == once
    assert all(a is b for a, b in zip(once, twice, strict=True))
    assert normalise(list(history)) == once


@given(HISTORIES)
def test_no_words_of_anybody_get_lost(history: list[Message]) -> None:
    def said(messages: list[Message]) -> list[str]:
        return [m.content for m in messages if m.role in ("user", "assistant") and m.content.strip()]

    assert said(normalise(history)) == said(history)


@settings(max_examples=60)
@given(HISTORIES, st.lists(st.sampled_from(["hello", "and then?"]), min_size=1, max_size=3))
def test_what_is_added_leaves_the_beginning_as_it_was(history: list[Message], later: list[str]) -> None:
    before = normalise(history)
    assert normalise([*before, *(Message("user", t) for t in later)])[: len(before)] == before

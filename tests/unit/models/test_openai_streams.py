"""Streams as providers really send them, through a real socket."""

from __future__ import annotations

import json
import subprocess
import sys

import anyio
import pytest

from astroresearch.engine.model import ModelRequest, TextDelta
from astroresearch.errors import ModelError
from tests.fakes.chat import HELLO, READ_FILE, SYSTEM, ask, client
from tests.fakes.provider import (
    DONE,
    Cut,
    Endless,
    FakeProvider,
    Reply,
    Reset,
    Stall,
    Step,
    call_delta,
    chunk,
    frame,
    raw,
    text,
    usage,
)

END = (chunk({}, "stop"), DONE)


async def answer_to(*steps: Step, content_type: str = "text/event-stream", **changes):
    async with FakeProvider([raw(*steps, content_type=content_type)]) as provider:
        return await ask(client(provider, **changes))


async def failure_of(*steps: Step, content_type: str = "text/event-stream", **changes) -> ModelError:
    """The error of a provider that always answers so."""
    async with FakeProvider(default=raw(*steps, content_type=content_type)) as provider:
        with pytest.raises(ModelError) as caught:
            await ask(client(provider, **changes))
        assert not caught.value.shown
        assert "127.0.0.1" in caught.value.message
        return caught.value


def test_importing_the_client_does_not_import_the_library():
    code = "import sys, astroresearch.models.openai_chat; sys.exit('openai' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "server"}, check=False).returncode == 0


async def test_an_ordinary_answer_and_the_least_of_a_request():
    async with FakeProvider([text("Bubbles ", "heat it.", prompt=120, completion=7)]) as provider:
        answer = await ask(client(provider))
    assert answer.shown == answer.reply.text == "Bubbles heat it."
    assert (answer.reply.finish, answer.reply.model) == ("stop", "m")
    assert (answer.reply.usage.input, answer.reply.usage.output, answer.reply.usage.estimated) == (120, 7, False)
    body = provider.requests[0].body
    assert set(body) == {"model", "messages", "stream", "stream_options", "tools"}
    assert provider.requests[0].headers["authorization"] == "Bearer sk-canary-0123456789abcdef"


@pytest.mark.parametrize(
    "before",
    [
        frame({"choices": [], "prompt_filter_results": []}),
        frame({"choices": None}),
        frame({"choices": [{"index": 0, "delta": None, "finish_reason": None}]}),
        frame({"choices": ["odd"]}),
        ": keep-alive\n\n: OPENROUTER PROCESSING\n\n",
        "data: \n\n",
        "event: ping\ndata: {}\n\n",
        "\ufeff",
    ],
)
async def test_what_holds_nothing_is_passed_over(before):
    assert (await answer_to(before, chunk({"content": "hi"}), *END)).shown == "hi"


async def test_crlf_split_utf8_and_data_after_done_are_invisible():
    body = (chunk({"content": "α 天文 é"}) + "".join(END) + chunk({"content": "ghost"})).replace("\n", "\r\n")
    raw_text = body.replace("\\u03b1 \\u5929\\u6587 \\u00e9", "α 天文 é").encode()
    answer = await answer_to(*(raw_text[i : i + 1] for i in range(len(raw_text))))
    assert answer.shown == "α 天文 é"


@pytest.mark.parametrize(
    "steps",
    [
        [chunk({"content": "The core of "})],
        [chunk({"content": "The core of "}), Cut()],
        [chunk({"content": "The core of "}), Reset()],
    ],
)
async def test_a_stream_without_an_end_is_interrupted(steps):
    answer = await answer_to(*steps)
    assert answer.reply.finish == "interrupted"
    assert answer.reply.text == answer.shown == "The core of "
    assert "broke off" in answer.reply.problem


async def test_a_broken_stream_runs_no_call():
    steps = [chunk({"content": "I read."}), chunk(call_delta("read_file", '{"path": "a"}', id="c1")), Cut()]
    answer = await answer_to(*steps)
    assert (answer.reply.finish, answer.reply.tool_calls) == ("interrupted", ())


async def test_a_stream_that_broke_before_any_output_is_tried_again():
    async with FakeProvider([raw(chunk({"role": "assistant"}), Cut()), raw(Reset()), text("ok")]) as provider:
        waits: list[float] = []
        answer = await ask(client(provider, waits=waits))
    assert answer.shown == "ok"
    assert len(answer.notices) == len(waits) == 2
    assert len(provider.requests) == 3


async def test_a_stream_that_breaks_after_output_is_not_tried_again():
    async with FakeProvider([raw(chunk({"content": "The "}), Cut())]) as provider:
        await ask(client(provider))
    assert len(provider.requests) == 1


@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "text/plain", ""])
async def test_a_page_instead_of_a_stream_names_url_and_type(kind):
    error = await failure_of("<html><body>gateway</body></html>", content_type=kind)
    assert error.kind == "bad_answer"
    assert "gateway" in error.message
    assert (kind.split(";")[0] or "no content type") in error.message


async def test_an_empty_stream_fails():
    assert (await failure_of()).kind == "broken_stream"
    assert (await failure_of(DONE)).kind == "bad_answer"
    assert (await failure_of(frame({"choices": []}), DONE)).kind == "bad_answer"


async def test_a_whole_completion_instead_of_a_stream_is_an_answer():
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
    }
    body = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3},
    }
    answer = await answer_to("\n\n\n", json.dumps(body, indent=1), content_type="application/json")
    assert [c.name for c in answer.reply.tool_calls] == ["read_file"]
    assert answer.reply.usage.input == 9


async def test_a_stream_with_the_wrong_content_type_is_still_one():
    assert (await answer_to(chunk({"content": "hi"}), *END, content_type="application/json")).shown == "hi"


ERRORS = [
    frame({"error": {"message": "exploded", "type": "server_error", "code": 502}}),
    frame({"object": "error", "message": "exploded", "type": "BadRequestError", "code": 400}),
    'error: {"code": 400, "message": "exploded", "type": "invalid_request_error"}\n\n',
    frame({"error": "exploded"}),
    'event: error\ndata: {"error": {"message": "exploded"}}\n\n',
    chunk({"content": ""}, "error", error={"code": 502, "message": "exploded"}),
    frame([{"error": {"code": 400, "message": "exploded"}}]),
    "event: error\ndata: exploded\n\n",
]


@pytest.mark.parametrize("error", ERRORS)
async def test_an_error_inside_the_stream(error):
    answer = await answer_to(chunk({"content": "The core"}), error, DONE)
    assert answer.reply.finish == "interrupted"
    assert answer.reply.text == "The core"
    assert "exploded" in answer.reply.problem
    failed = await failure_of(error, DONE)
    assert "exploded" in failed.message
    assert failed.kind in ("unavailable", "refused")


async def test_an_overflow_inside_the_stream_is_an_overflow():
    message = "This model's maximum context length is 8192 tokens"
    assert (await failure_of(frame({"error": {"message": message, "code": 400}}), DONE)).kind == "context_length"


async def test_bad_json_is_a_broken_stream():
    assert (await failure_of('data: {"id": \n\n', *END)).kind == "broken_stream"
    assert (await failure_of(f"data: {'[' * 100_000}\n\n", *END)).kind == "broken_stream"
    answer = await answer_to(chunk({"content": "The "}), 'data: {"id": \n\n', *END)
    assert (answer.reply.finish, answer.reply.text) == ("interrupted", "The ")


@pytest.mark.parametrize("comment", [False, True])
async def test_a_stall_is_a_timeout_in_spite_of_comments(comment):
    async with FakeProvider(default=raw(Stall(comment))) as provider:
        with pytest.raises(ModelError) as caught:
            await ask(client(provider, idle_timeout_s=0.2))
        assert caught.value.kind == "timeout"
        with anyio.fail_after(5):
            await provider.requests[0].closed.wait()
        assert provider.requests[0].closed_early
        assert len(provider.requests) == 1


async def test_a_stall_after_text_keeps_it():
    answer = await answer_to(chunk({"content": "The "}), Stall(), idle_timeout_s=0.2)
    assert (answer.reply.finish, answer.reply.text) == ("interrupted", "The ")
    assert "nothing for" in answer.reply.problem


async def test_a_stall_after_the_answer_does_no_harm():
    assert (await answer_to(chunk({"content": "hi"}, "stop"), Stall(), idle_timeout_s=0.2)).reply.finish == "stop"
    assert (await answer_to(chunk({"content": "hi"}, "stop"), DONE, Endless(": x\n\n", 0.01))).reply.finish == "stop"


async def test_a_cut_after_the_answer_does_no_harm():
    assert (await answer_to(chunk({"content": "hi"}, "stop"), Cut())).reply.finish == "stop"


async def test_done_without_a_finish_reason_ends_an_answer():
    assert (await answer_to(chunk({"content": "hi"}), DONE)).reply.finish == "stop"
    cut_call = chunk(call_delta("read_file", '{"path": ', id="c"))
    assert (await failure_of(cut_call, DONE)).kind == "bad_answer"


@pytest.mark.parametrize("leave", ["cancel", "break"])
async def test_leaving_early_closes_the_socket(leave):
    async with FakeProvider([raw(Endless(chunk({"content": "word "})))]) as provider:
        model = client(provider)
        with anyio.CancelScope() as scope:
            async with model.stream(ModelRequest((SYSTEM, HELLO))) as items:
                async for item in items:
                    assert isinstance(item, TextDelta)
                    if leave == "break":
                        break
                    scope.cancel()
        with anyio.fail_after(5):
            await provider.requests[0].closed.wait()
        assert provider.requests[0].closed_early


async def test_a_cancel_while_the_model_is_silent_closes_the_socket():
    async with FakeProvider([raw(Stall())]) as provider:
        model = client(provider)
        async with anyio.create_task_group() as group:
            group.start_soon(ask, model)
            await provider.arrived.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            await provider.requests[0].closed.wait()
        assert provider.requests[0].closed_early


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
async def test_reasoning_in_its_fields(name):
    answer = await answer_to(chunk({name: "Is it "}), chunk({name: "AGN?"}), chunk({"content": "Yes."}), *END)
    assert (answer.thoughts, answer.shown) == ("Is it AGN?", "Yes.")
    assert (answer.reply.reasoning, answer.reply.reasoning_field) == ("Is it AGN?", name)


async def test_two_copies_of_reasoning_count_once():
    answer = await answer_to(chunk({"reasoning": "So.", "reasoning_content": "So."}), chunk({"content": "Yes."}), *END)
    assert answer.thoughts == "So."


async def test_content_as_typed_parts():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    answer = await answer_to(
        chunk({"content": [thinking]}), chunk({"content": [{"type": "text", "text": "Yes."}]}), *END
    )
    assert (answer.thoughts, answer.shown) == ("Hm.", "Yes.")


async def test_thinking_tags_in_pieces():
    whole = "\n<think>Is it AGN?</think>\n\nYes, see <think> in the text."
    answer = await answer_to(*(chunk({"content": c}) for c in whole), *END)
    assert answer.thoughts == "Is it AGN?"
    assert answer.shown == answer.reply.text == "Yes, see <think> in the text."


async def test_an_orphan_closing_tag_is_learnt():
    steps = [chunk({"content": "Is it "}), chunk({"content": "AGN?\n</think>\n\nYes."}), *END]
    async with FakeProvider([raw(*steps), raw(*steps), raw(chunk({"content": "Just so."}), *END)]) as provider:
        model = client(provider)
        first, second, third = [await ask(model) for _ in range(3)]
    assert (first.reply.reasoning, first.reply.text) == ("Is it AGN?", "Yes.")
    assert (second.thoughts.strip(), second.shown) == ("Is it AGN?", "Yes.")
    assert third.reply.text == "Just so."


async def test_a_literal_closing_tag_in_code_stays():
    answer = await answer_to(chunk({"content": "Write `</think>\n` there."}), *END)
    assert answer.reply.text == "Write `</think>\n` there."


async def test_reasoning_only_is_an_answer_with_no_text():
    answer = await answer_to(chunk({"reasoning": "Hm."}), *END)
    assert (answer.reply.text, answer.reply.finish) == ("", "stop")


async def test_a_megabyte_token_and_odd_characters_survive():
    big = "x" * 1_000_000
    halves = [frame({"choices": [{"delta": {"content": half}}]}) for half in ("\ud83d", "\ude80 \ud800 \0")]
    answer = await answer_to(chunk({"content": big}), *halves, *END)
    assert answer.shown == big + "🚀 \ufffd \ufffd"
    answer.shown.encode()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "refusal"),
        ("tool_calls", "stop"),
        ("abort", "interrupted"),
        ("network_error", "interrupted"),
    ],
)
async def test_finish_reasons(reason, finish):
    assert (await answer_to(chunk({"content": "hi"}), chunk({}, reason), DONE)).reply.finish == finish


async def test_an_empty_finish_reason_ends_nothing():
    answer = await answer_to(chunk({"content": "a"}, ""), chunk({"content": "b"}), *END)
    assert answer.shown == "ab"


async def test_a_refusal_is_one():
    answer = await answer_to(chunk({"refusal": "I can't help with that."}), *END)
    assert (answer.reply.finish, answer.shown) == ("refusal", "I can't help with that.")


COUNTS = {"prompt_tokens": 50, "completion_tokens": 5}


@pytest.mark.parametrize(
    ("steps", "cached"),
    [
        ([chunk({}, "stop"), usage(50, 5, prompt_tokens_details={"cached_tokens": 40})], 40),
        ([chunk({}, "stop"), usage(50, 5, prompt_cache_hit_tokens=30)], 30),
        ([frame({"choices": [{"delta": {}, "finish_reason": "stop", "usage": {**COUNTS, "cached_tokens": 20}}]})], 20),
        ([chunk({}, "stop", x_groq={"usage": COUNTS})], 0),
        ([usage(10, 1), usage(50, 3), chunk({}, "stop", usage=COUNTS)], 0),
        (
            [
                chunk({}, "stop", usage=COUNTS),
                frame({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}),
            ],
            0,
        ),
    ],
)
async def test_usage_wherever_it_is(steps, cached):
    found = (await answer_to(chunk({"content": "hi"}), *steps, DONE)).reply.usage
    assert (found.input, found.output, found.cached, found.estimated) == (50, 5, cached, False)


async def test_missing_usage_is_estimated():
    found = (await answer_to(chunk({"content": "hi " * 40}), *END)).reply.usage
    assert found.estimated
    assert found.input > 10
    assert found.output > 20


async def test_a_prompt_that_the_server_cut_is_told_once():
    async with FakeProvider(default=text("ok", prompt=4096)) as provider:
        model = client(provider)
        long = type(HELLO)("user", "word " * 20_000)
        first, second = await ask(model, [SYSTEM, long]), await ask(model, [SYSTEM, long])
    assert any("OLLAMA_CONTEXT_LENGTH" in n for n in first.notices)
    assert second.notices == []


async def test_a_window_filled_silently_is_an_overflow():
    async with FakeProvider([Reply([chunk({}, "length"), usage(8190, 0), DONE])]) as provider:
        with pytest.raises(ModelError) as caught:
            await ask(client(provider, context_window=8192))
    assert caught.value.kind == "context_length"


async def test_tools_are_sent_sorted_as_given_and_once_encoded():
    async with FakeProvider() as provider:
        await ask(client(provider), tools=(READ_FILE,))
        await ask(client(provider), tools=())
    assert provider.requests[0].body["tools"][0]["function"]["name"] == "read_file"
    assert "tools" not in provider.requests[1].body

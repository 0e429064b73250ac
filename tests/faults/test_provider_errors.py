"""What providers answer when they do not answer: waits, retries, sentences for people; and the next request works."""

from __future__ import annotations

import email.utils
import json
import time
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astroresearch.config import Folders, Secret, load
from astroresearch.errors import ModelError
from astroresearch.models.accumulate import CallSlots
from astroresearch.models.faults import Refusal, refusal, retry_after
from astroresearch.models.openai_chat import OpenAIChat
from astroresearch.models.profiles import ModelProfile
from astroresearch.models.sse import EventReader
from astroresearch.models.thinking import ThinkSplitter
from tests.fakes.chat import KEY, ask, client
from tests.fakes.provider import (
    FAULTS,
    FakeProvider,
    Reply,
    Reset,
    Stall,
    calls,
    error,
    overflow,
    rate_limited,
    raw,
    text,
)


async def failure(*replies: Reply, waits: list[float] | None = None, **changes) -> tuple[ModelError, FakeProvider]:
    """The error of a provider that answers so, the last one for ever."""
    async with FakeProvider(replies[:-1], default=replies[-1]) as provider:
        with pytest.raises(ModelError) as caught:
            await ask(client(provider, waits=waits, **changes))
    assert KEY not in str(caught.value)
    return caught.value, provider


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_ends_typed_and_the_next_request_works(fault):
    async with FakeProvider([FAULTS[fault]()]) as provider:
        model = client(provider, idle_timeout_s=0.3)
        failed, reply = await _outcome(model)
        if failed is not None:
            assert failed.message
            assert failed.hint
            assert KEY not in str(failed)
        elif reply.finish == "interrupted":
            assert reply.problem
        provider.replies.clear()
        assert (await ask(model)).shown == "Done."


async def _outcome(model: OpenAIChat) -> tuple[ModelError | None, Any]:
    try:
        return None, (await ask(model)).reply
    except ModelError as failed:
        return failed, None


def dated(value: str) -> str:
    """`in N` as the HTTP date of N seconds from now, as late as the request; else the value."""
    if not value.startswith("in "):
        return value
    return email.utils.formatdate(time.time() + float(value.removeprefix("in ")), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry_After": "7"}, 7, 7),
        ({"Retry_After": "0.5"}, 0.5, 0.5),
        ({"Retry_After_Ms": "250", "Retry_After": "9"}, 0.25, 0.25),
        ({"Retry_After": "in 50"}, 0, 50),
        ({}, 4, 4),
        ({"Retry_After": "soon"}, 4, 4),
    ],
)
async def test_a_rate_limit_is_waited_for_and_shown(headers, low, high):
    waits: list[float] = []
    async with FakeProvider([rate_limited(**{k: dated(v) for k, v in headers.items()}), text("ok")]) as provider:
        answer = await ask(client(provider, waits=waits))
    assert answer.shown == "ok"
    assert len(waits) == 1
    assert low <= waits[0] <= high
    assert f"again in {waits[0]:.0f} s" in answer.notices[0]


@pytest.mark.parametrize(
    ("asked", "said"), [("86400", "24 h"), ("in 86400", "24 h"), ("61", "61 s"), ("600", "10 min")]
)
async def test_a_long_wait_stops_and_says_when(asked, said):
    waits: list[float] = []
    failed, provider = await failure(rate_limited(Retry_After=dated(asked)), waits=waits)
    assert (failed.kind, waits, len(provider.requests)) == ("rate_limited", [], 1)
    assert said in failed.hint
    assert failed.retry_after_s is not None
    assert failed.retry_after_s > 60


async def test_an_empty_purse_is_not_waited_for():
    failed, provider = await failure(
        error("429 Too Many Requests", {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    )
    assert len(provider.requests) == 1
    assert "quota" in failed.message


def test_a_date_is_counted_from_now():
    assert retry_after({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, now=70) == 30
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, now=200) == 0


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 5.289s.", 5.289),
        ("try again in 1m2.5s", 62.5),
        ("Try again in 200ms", 0.2),
        ("retry after 3s", 3),
        ("try again in 2h", 7200),
        ("try again later", None),
    ],
)
def test_waits_in_words(words, seconds):
    assert retry_after({}, words) == seconds


@pytest.mark.parametrize(
    "status",
    [
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "529 Overloaded",
        "408 Request Timeout",
    ],
)
@pytest.mark.parametrize("body", ["", "<html>busy</html>", '{"error": {"message": "overloaded"}}'])
async def test_faults_that_pass_get_three_tries(status, body):
    waits: list[float] = []
    failed, provider = await failure(error(status, body, "text/html"), waits=waits)
    assert (failed.kind, failed.status, len(provider.requests)) == ("unavailable", int(status[:3]), 3)
    assert waits[0] < waits[1]
    assert "<" not in failed.message
    async with FakeProvider([error(status, body), text("ok")]) as provider:
        assert (await ask(client(provider))).shown == "ok"


async def test_a_reset_before_the_first_byte_gets_three_tries():
    failed, provider = await failure(raw(Reset()))
    assert (failed.kind, len(provider.requests)) == ("broken_stream", 3)


@pytest.mark.parametrize("reply", [Reply(silent=True), Reply([Stall()], "500 Internal Server Error", "text/plain")])
async def test_no_answer_at_all_is_a_timeout(reply):
    failed, provider = await failure(reply, idle_timeout_s=0.2)
    assert (failed.kind, len(provider.requests)) == ("timeout", 1)
    assert "model.idle_timeout_s" in failed.hint


async def test_nobody_listening():
    model = OpenAIChat(ModelProfile("m", "http://127.0.0.1:9/v1"), sleep=_no_wait)
    with pytest.raises(ModelError) as caught:
        await ask(model)
    assert caught.value.kind == "unavailable"
    assert "http://127.0.0.1:9/v1" in caught.value.message
    assert "model.base_url" in caught.value.hint


async def _no_wait(seconds: float) -> None:
    return None


OVERFLOWS = [
    (400, {"error": {"message": "x", "code": "context_length_exceeded"}}),
    (
        400,
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "request (18032 tokens) exceeds the available context size (4096 tokens), try increasing it",
            }
        },
    ),
    (400, {"message": "prompt is too long: 213462 tokens > 200000 maximum"}),
    (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1196265) exceeds the maximum number of tokens allowed",
                }
            }
        ],
    ),
    (400, {"error": "Range of input length should be [1, 98304]"}),
    (422, {"detail": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}),
    (413, ""),
    (
        413,
        {
            "error": {
                "message": "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000",
                "code": "rate_limit_exceeded",
            }
        },
    ),
    (429, {"error": {"message": "Request too large for gpt-4o on tokens per min: Limit 30000, Requested 40000"}}),
]


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
async def test_an_overflow_is_known_and_never_sent_again(status, body):
    failed, provider = await failure(error(f"{status} No", body))
    assert (failed.kind, len(provider.requests)) == ("context_length", 1)
    assert "model.context_window" in failed.hint


async def test_a_rate_limit_that_speaks_of_tokens_is_no_overflow():
    message = "Rate limit reached: too many tokens per minute, reduce the length of the messages"
    failed, _ = await failure(error("429 Too Many Requests", {"error": {"message": message}}))
    assert failed.kind == "rate_limited"


async def test_an_empty_400_is_an_overflow_only_where_it_may_be_one():
    assert (await failure(error("400 Bad Request", "")))[0].kind == "refused"
    assert (await failure(error("400 Bad Request", ""), context_window=20))[0].kind == "context_length"


async def test_any_other_400_is_shown_and_never_sent_again():
    failed, provider = await failure(
        error("400 Bad Request", [{"error": {"message": "Function call is missing a thought_signature"}}])
    )
    assert (failed.kind, failed.status, len(provider.requests)) == ("refused", 400, 1)
    assert "thought_signature" in failed.message


async def test_a_vllm_without_tool_calling_is_told_how():
    message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    failed, provider = await failure(error("400 Bad Request", {"object": "error", "message": message}))
    assert len(provider.requests) == 1
    assert "--tool-call-parser" in failed.hint


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_a_refused_key_is_named_by_its_place_not_by_itself(status):
    said = error(status, {"error": {"message": f"Incorrect API key provided: {KEY}. Also sk-other-0123456789"}})
    failed, provider = await failure(said, key_source="environment")
    assert (failed.kind, len(provider.requests)) == ("auth", 1)
    assert provider.base_url in failed.message
    assert "model.api_key" in failed.hint
    assert "environment" in failed.hint
    assert "sk-other" not in str(failed)


async def test_no_key_where_one_is_wanted():
    failed, provider = await failure(error("401 Unauthorized", ""), api_key=None)
    assert "none is set" in failed.message
    assert provider.requests[0].headers["authorization"] == "Bearer none"


async def test_an_unknown_model_or_a_wrong_path():
    failed, provider = await failure(error("404 Not Found", "404 page not found", "text/plain"))
    assert (failed.kind, len(provider.requests)) == ("no_model", 1)
    assert "/v1" in failed.hint


async def test_the_fallback_is_asked_when_the_first_fails_before_output():
    async with FakeProvider() as provider:
        provider.rule = lambda body: error("404 Not Found", "") if body["model"] == "m" else None
        answer = await ask(client(provider, fallback="n"))
    assert answer.shown == "Done."
    assert answer.reply.model == "n"
    assert "Asking n instead" in answer.notices[-1]


async def test_the_fallback_is_not_asked_after_output_nor_for_an_overflow():
    async with FakeProvider([FAULTS["cut"]()]) as provider:
        assert (await ask(client(provider, fallback="n"))).reply.finish == "interrupted"
    assert len(provider.requests) == 1
    failed, provider = await failure(overflow(), fallback="n")
    assert (failed.kind, len(provider.requests)) == ("context_length", 1)


def test_a_profile_comes_from_the_settings(tmp_path):
    where = Folders(tmp_path, tmp_path, tmp_path)
    env = {
        "ASTRORESEARCH_MODEL": "qwen3",
        "OPENAI_BASE_URL": "http://user:pw@localhost:11434/v1/?k=1",
        "OPENAI_API_KEY": KEY,
    }
    profile = ModelProfile.from_settings(load(where=where, env=env))
    assert (profile.name, profile.is_local, profile.prices) == ("qwen3", True, None)
    assert profile.shown_url == "http://localhost:11434/v1/"
    assert profile.api_key is not None
    assert KEY not in repr(profile)
    with pytest.raises(ModelError) as caught:
        ModelProfile.from_settings(load(where=where, env={}))
    assert caught.value.kind == "no_model"


async def test_one_client_serves_many_answers_at_once():
    async with FakeProvider(default=calls(("read_file", {"path": "a"}))) as provider:
        model = client(provider)
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(ask, model)
        await model.aclose()
    assert len(provider.requests) == 8


BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "status", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(BODIES)
def test_any_error_body_is_read(body):
    found = refusal(400, body, ModelProfile("m", api_key=Secret(KEY)))
    assert isinstance(found, Refusal)
    assert len(found.text) <= 500


@given(st.lists(st.text(max_size=8), max_size=8), st.integers(1, 7))
def test_events_do_not_depend_on_how_bytes_are_cut(datas, size):
    datas = [d.replace("\r", "").replace("\n", "") for d in datas]
    wire = "".join(f": c\r\ndata: {json.dumps(d)}\n\n" for d in datas).encode()
    reader = EventReader()
    events = [e for i in range(0, len(wire), size) for e in reader.feed(wire[i : i + size])]
    assert [json.loads(e.data) for e in events] == datas


@given(st.text("<>/think ab\n", max_size=40), st.data())
def test_thinking_does_not_depend_on_how_text_is_cut(body, data):
    def run(pieces):
        splitter = ThinkSplitter()
        out = [p for piece in pieces for p in splitter.feed(piece)] + splitter.finish()
        return {kind: "".join(t for k, t in out if k == kind) for kind in ("thought", "text")}

    text_in = data.draw(st.sampled_from(["", "<think>", "\n<think>x</think>"])) + body
    cut = data.draw(st.integers(0, len(text_in)))
    assert run([text_in]) == run([text_in[:cut], text_in[cut:]]) == run(list(text_in))


@given(st.lists(BODIES, max_size=6))
def test_any_call_delta_is_taken(deltas):
    slots = CallSlots()
    for delta in deltas:
        slots.add(delta)
    assert all(call.id for call in slots.calls("x"))

"""Tool calls as providers really send them, and what is sent back in the next request."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from astroresearch.engine.messages import Message, ToolCall
from astroresearch.engine.model import ModelReply
from astroresearch.models.profiles import Lessons, ModelProfile
from astroresearch.models.wire import Encoder
from tests.fakes.chat import HELLO, SYSTEM, ask, client
from tests.fakes.provider import (
    DONE,
    FakeProvider,
    Step,
    call_delta,
    calls,
    chunk,
    complaint,
    error,
    raw,
    text,
)

END = (chunk({}, "tool_calls"), DONE)
PATH = '{"path": "main.tex"}'


async def reply_to(*steps: Step) -> ModelReply:
    async with FakeProvider([raw(*steps)]) as provider:
        return (await ask(client(provider))).reply


def pairs(reply: ModelReply) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in reply.tool_calls]


def two(*, index_a=0, index_b=1, id_a="a", id_b="b") -> list[str]:
    """Two calls, each in one piece."""
    return [
        chunk(call_delta("f", '{"a": 1}', id=id_a, index=index_a)),
        chunk(call_delta("g", '{"b": 1}', id=id_b, index=index_b)),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        two(),
        two(index_a=None, index_b=None),
        two(index_b=0),
        two(id_a="call_0", id_b="call_0"),
        two(id_a=None, id_b=None),
        two(id_a="", id_b="", index_a=None, index_b=None),
        two(id_a=None, id_b=None, index_a=None, index_b=None),
        two(id_a="call_0", id_b="call_0", index_a=None, index_b=None),
        [
            chunk(
                {
                    "tool_calls": [
                        *call_delta("f", '{"a": 1}', id="a")["tool_calls"],
                        *call_delta("g", '{"b": 1}', id="b", index=1)["tool_calls"],
                    ]
                }
            )
        ],
        [  # the pieces of two calls come mixed
            chunk(call_delta("f", '{"a"', id="a", index=0)),
            chunk(call_delta("g", '{"b"', id="b", index=1)),
            chunk(call_delta(None, ": 1}", index=0)),
            chunk(call_delta(None, ": 1}", index=1)),
        ],
        [  # empty and repeated fields later
            chunk(call_delta("f", '{"a"', id="a")),
            chunk(call_delta("", ": 1}", id="")),
            chunk(call_delta("g", '{"b"', id="b", index=1)),
            chunk(call_delta("g", ": 1}", id="b", index=1)),
        ],
        [  # a seen id without an index goes on with its call
            chunk(call_delta("f", '{"a"', id="a", index=None)),
            chunk(call_delta("g", '{"b": 1}', id="b", index=None)),
            chunk(call_delta(None, ": 1}", id="a", index=None)),
        ],
    ],
)
async def test_two_calls_stay_two(pieces):
    reply = await reply_to(*pieces, *END)
    assert pairs(reply) == [("f", '{"a": 1}'), ("g", '{"b": 1}')]
    assert reply.finish == "tool_calls"
    assert len({call.id for call in reply.tool_calls}) == 2
    assert all(re.fullmatch("[A-Za-z0-9]{9}", call.id) for call in reply.tool_calls)


async def test_nulls_in_later_pieces():
    later = {"tool_calls": [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "1}"}}]}
    assert pairs(await reply_to(chunk(call_delta("f", '{"a": ', id="a")), chunk(later), *END)) == [("f", '{"a": 1}')]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [({"path": "main.tex"}, PATH), (None, ""), ("", ""), ('{"path": ', '{"path": '), ('"{}" x', '"{}" x')],
)
async def test_arguments_are_kept_as_written(arguments, kept):
    assert pairs(await reply_to(chunk(call_delta("read_file", arguments, id="a")), *END)) == [("read_file", kept)]


@pytest.mark.parametrize(
    "odd",
    [
        {"tool_calls": None},
        {"tool_calls": ["x"]},
        {"tool_calls": [{"index": 0}]},
        {"tool_calls": [{"index": 0, "function": None}]},
    ],
)
async def test_odd_deltas_are_no_calls(odd):
    reply = await reply_to(chunk({"content": "hi"}), chunk(odd), *END)
    assert (reply.tool_calls, reply.finish, reply.text) == ((), "stop", "hi")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "tool_calls"), ("tool_calls", "tool_calls"), ("length", "length"), ("function_call", "tool_calls")],
)
async def test_the_end_is_judged_by_what_is_there(reason, finish):
    reply = await reply_to(chunk(call_delta("read_file", PATH, id="a")), chunk({}, reason), DONE)
    assert (reply.finish, len(reply.tool_calls)) == (finish, 1)


async def test_fifty_calls_at_once():
    many = [chunk(call_delta("read_file", PATH, id=f"c{n}", index=n)) for n in range(50)]
    assert len((await reply_to(*many, *END)).tool_calls) == 50


WRITTEN = '{"name": "read_file", "arguments": {"path": "main.tex"}}'


@pytest.mark.parametrize(
    "whole",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"```\n{WRITTEN}\n```\n",
        f"<tool_call>\n{WRITTEN}\n</tool_call>",
        f"<tools>{WRITTEN}</tools>",
        f"[TOOL_CALL]{WRITTEN}[/TOOL_CALL]",
        '\n{"arguments": {"path": "main.tex"}, "name": "read_file"}',
        '{"name": "read_file", "parameters": {"path": "main.tex"}}',
        '{"type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"main.tex\\"}"}}',
    ],
)
async def test_a_call_written_as_text_is_recognised_and_not_shown(whole):
    async with FakeProvider([raw(*(chunk({"content": c}) for c in whole), chunk({}, "stop"), DONE)]) as provider:
        answer = await ask(client(provider))
    assert answer.shown == answer.reply.text == ""
    assert pairs(answer.reply) == [("read_file", PATH)]
    assert answer.reply.tool_calls[0].recovered
    assert answer.reply.finish == "tool_calls"


@pytest.mark.parametrize(
    "whole",
    [
        f"{WRITTEN}\n{WRITTEN}",
        f"```json\n{WRITTEN}\n{WRITTEN}\n```",
        f"```json\n{WRITTEN}\n```\n```json\n{WRITTEN}\n```",
        f"<tool_call>\n{WRITTEN}\n</tool_call>\n<tool_call>\n{WRITTEN}\n</tool_call>",
    ],
)
async def test_several_written_calls_are_recognised(whole):
    async with FakeProvider([raw(*(chunk({"content": c}) for c in whole), chunk({}, "stop"), DONE)]) as provider:
        answer = await ask(client(provider))
    assert answer.shown == answer.reply.text == ""
    assert pairs(answer.reply) == [("read_file", PATH)] * 2


@pytest.mark.parametrize(
    "whole",
    [
        WRITTEN.replace("read_file", "rm"),
        f"{WRITTEN}\n{WRITTEN.replace('read_file', 'rm')}",
        f"{WRITTEN}\nThat is what I would send.",
        f"{WRITTEN}\n{WRITTEN[:-9]}",
        f"I would send {WRITTEN}",
        f"```json\n{WRITTEN}\n``` is what I would send.",
        '{"name": "read_file"',
        '{"name": "NGC 1275", "z": 0.0176}',
        '```python\nprint("hi")\n```',
        "[1] says so.",
        "`x` is it.",
        "{",
    ],
)
async def test_other_text_is_shown_as_it_is(whole):
    async with FakeProvider([raw(*(chunk({"content": c}) for c in whole), chunk({}, "stop"), DONE)]) as provider:
        answer = await ask(client(provider))
    assert answer.shown == answer.reply.text == whole
    assert answer.reply.tool_calls == ()


def turn(reply: ModelReply, *more: Message) -> list[Message]:
    """A history with this reply, its results, and what follows."""
    said = Message(
        "assistant", reply.text, reply.tool_calls, reasoning=reply.reasoning, reasoning_field=reply.reasoning_field
    )
    results = [Message("tool", "\\cite{x}", tool_call_id=c.id, name=c.name) for c in reply.tool_calls]
    return [SYSTEM, HELLO, said, *results, *more]


async def test_the_provider_gets_its_own_id_and_unknown_fields_back():
    signed = call_delta("read_file", PATH, id="call_7", extra_content={"google": {"thought_signature": "SIG"}})
    async with FakeProvider([raw(chunk(signed), *END)]) as provider:
        model = client(provider)
        reply = (await ask(model)).reply
        await ask(model, turn(reply))
        await ask(client(provider, name="other"), turn(reply))
    sent = provider.requests[1].messages[2]
    assert sent["content"] == ""
    assert sent["tool_calls"] == [
        {
            "id": "call_7",
            "type": "function",
            "function": {"name": "read_file", "arguments": PATH},
            "extra_content": {"google": {"thought_signature": "SIG"}},
        }
    ]
    assert provider.requests[1].messages[3] == {"role": "tool", "tool_call_id": "call_7", "content": "\\cite{x}"}
    assert "extra_content" not in provider.requests[2].messages[2]["tool_calls"][0]
    assert provider.refused == []


async def test_ids_that_repeat_in_every_answer_are_told_apart():
    async with FakeProvider(default=calls(("read_file", {"path": "a"}), ids=["call_0"])) as provider:
        model = client(provider)
        history = turn((await ask(model)).reply)
        history += turn((await ask(model, history)).reply)[2:]
        history += turn((await ask(model, history)).reply)[2:]
        await ask(model, history)
    assert provider.refused == []
    first, *others = [m["tool_calls"][0]["id"] for m in provider.requests[-1].messages if "tool_calls" in m]
    assert first == "call_0"
    assert "call_0" not in others


async def test_a_request_is_a_prefix_of_the_next():
    async with FakeProvider([calls(("read_file", {"path": "a"}), ids=["call_0"]) for _ in range(4)]) as provider:
        model = client(provider)
        history = [SYSTEM, HELLO]
        for _ in range(4):
            history += turn((await ask(model, history)).reply)[2:]
    sent = [r.messages for r in provider.requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(sent))


async def test_broken_calls_go_back_in_a_form_that_strict_servers_take():
    call = ToolCall("aaaaaaaaa", "Open main.tex", '{"path": ', provider_id="x" * 60)
    empty = ToolCall("bbbbbbbbb", "", "", provider_id="y")
    history = [
        SYSTEM,
        HELLO,
        Message("assistant", "", (call, empty)),
        Message("tool", "", tool_call_id="aaaaaaaaa"),
        Message("tool", "lone \ud800 and \0", tool_call_id="bbbbbbbbb"),
        Message("assistant", ""),
        Message("user", "go on"),
    ]
    async with FakeProvider() as provider:
        await ask(client(provider), history)
    assert provider.refused == []
    sent = provider.requests[0].messages
    assert [c["function"]["name"] for c in sent[2]["tool_calls"]] == ["Open_main_tex", "unknown"]
    assert sent[2]["tool_calls"][0]["id"] == "aaaaaaaaa"
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == {"not_valid_json": '{"path": '}
    assert sent[3]["content"] == "(no output)"
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "tool", "user"]


def encoded(profile: ModelProfile, history: list[Message], lessons: Lessons | None = None) -> list[dict]:
    return Encoder(profile).messages(history, lessons or Lessons())


def steered() -> list[Message]:
    call = ToolCall("aaaaaaaaa", "read_file", PATH, provider_id="call_0")
    return turn(ModelReply("", (call,), "tool_calls", None, "Hm.", "reasoning"), Message("user", "And now?"))  # type: ignore[arg-type]


def test_mistral_gets_nine_characters_and_words_between_tool_and_user():
    sent = encoded(ModelProfile("mistral-large", "https://api.mistral.ai/v1"), steered())
    assert complaint({"model": "m", "messages": sent}, mistral=True) is None
    assert [m["role"] for m in sent][-3:] == ["tool", "assistant", "user"]
    assert complaint({"model": "m", "messages": encoded(ModelProfile("m"), steered())}, mistral=True) is not None


def test_reasoning_goes_back_only_to_those_who_demand_it():
    assert encoded(ModelProfile("deepseek-chat", "https://api.deepseek.com"), steered())[2]["reasoning"] == "Hm."
    assert "reasoning" not in encoded(ModelProfile("gpt-5"), steered())[2]
    call = ToolCall("aaaaaaaaa", "read_file", PATH)
    unthought = [SYSTEM, HELLO, Message("assistant", "", (call,)), Message("tool", "x", tool_call_id="aaaaaaaaa")]
    assert encoded(ModelProfile("deepseek-chat"), unthought)[2]["reasoning_content"] == ""


def test_messages_are_encoded_once():
    encoder, history = Encoder(ModelProfile("m")), [SYSTEM, HELLO]
    first, second = encoder.messages(history, Lessons()), encoder.messages(history, Lessons())
    assert first == second
    assert encoder._plain(SYSTEM) is encoder._plain(SYSTEM)
    assert encoder._plain(SYSTEM) is not encoder._plain(Message("system", "You help astronomers."))


@pytest.mark.parametrize(
    ("style", "on", "sent"),
    [
        ("none", True, {}),
        ("enable_thinking", True, {"enable_thinking": True}),
        ("enable_thinking", False, {"enable_thinking": False}),
        ("thinking_type", True, {"thinking": {"type": "enabled"}}),
        ("chat_template", False, {"chat_template_kwargs": {"enable_thinking": False}}),
        ("reasoning_effort", True, {"reasoning_effort": "medium"}),
        ("reasoning_effort", False, {}),
    ],
)
async def test_each_style_has_its_own_switch(style, on, sent):
    async with FakeProvider() as provider:
        await ask(client(provider, thinking_style=style, extra_body={"seed": 1}), thinking=on, max_output_tokens=99)
    body = provider.requests[0].body
    rest = {k: v for k, v in body.items() if k not in ("model", "messages", "stream", "stream_options", "tools")}
    assert rest == {**sent, "seed": 1, "max_tokens": 99}


def refuse(field: str, shape: str):
    """A provider that refuses a field of the body, in the words of one of several."""
    words = {
        "openai": {
            "error": {"message": f"Unsupported parameter: '{field}' is not supported with this model.", "param": field}
        },
        "mistral": {
            "detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}]
        },
        "plain": {"error": f"Unrecognized request argument supplied: {field}"},
    }
    return lambda body: (
        error("400 Bad Request" if shape == "openai" else "422 Unprocessable Entity", words[shape])
        if field in body
        else None
    )


@pytest.mark.parametrize("shape", ["openai", "mistral", "plain"])
@pytest.mark.parametrize("field", ["stream_options", "parallel_tool_calls", "enable_thinking", "max_tokens"])
async def test_a_refused_field_is_left_out_from_then_on(field, shape):
    async with FakeProvider() as provider:
        provider.rule = refuse(field, shape)
        model = client(
            provider, thinking_style="enable_thinking", extra_body={"parallel_tool_calls": True}, max_output_tokens=9
        )
        first, second = await ask(model), await ask(model)
    assert first.shown == second.shown == "Done."
    assert [field in r.body for r in provider.requests] == [True, False, False]
    assert (len(first.notices), len(second.notices)) == (1, 0)


async def test_max_completion_tokens_takes_the_place_of_max_tokens():
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    async with FakeProvider() as provider:
        provider.rule = lambda body: (
            error("400 Bad Request", {"error": {"message": message}}) if "max_tokens" in body else None
        )
        await ask(client(provider, max_output_tokens=50))
    assert provider.requests[-1].body["max_completion_tokens"] == 50


@pytest.mark.parametrize(
    "said", ["registry.ollama.ai/library/gemma:latest does not support tools", "`tools` is not supported by this model"]
)
async def test_a_model_without_tools_still_answers(said):
    async with FakeProvider() as provider:
        provider.rule = lambda body: error("400 Bad Request", {"error": {"message": said}}) if "tools" in body else None
        answer = await ask(client(provider), steered())
    assert answer.shown == "Done."
    assert [m["role"] for m in provider.requests[-1].messages] == ["system", "user", "assistant", "user", "user"]


async def test_a_refused_empty_content_is_left_out():
    def rule(body):
        empty = any(m.get("content") == "" for m in body["messages"])
        return (
            error("400 Bad Request", {"error": {"message": "messages: text content blocks must be non-empty"}})
            if empty
            else None
        )

    async with FakeProvider() as provider:
        provider.rule = rule
        answer = await ask(client(provider), steered())
    assert answer.shown == "Done."
    assert "content" not in provider.requests[-1].messages[2]


async def test_an_order_of_roles_is_learnt():
    async with FakeProvider(mistral=True) as provider:
        answer = await ask(
            client(provider),
            [
                *turn(ModelReply("", (ToolCall("aaaaaaaaa", "read_file", PATH),), "tool_calls", None)),
                Message("user", "And?"),
            ],
        )  # type: ignore[arg-type]
    assert answer.shown == "Done."
    assert len(provider.requests) == 2


async def test_reasoning_is_sent_back_once_demanded():
    message = "The reasoning_content in the thinking mode must be passed back to the API."

    def rule(body):
        lacks = any("tool_calls" in m and "reasoning" not in m for m in body["messages"])
        return error("400 Bad Request", {"error": {"message": message}}) if lacks else None

    async with FakeProvider() as provider:
        provider.rule = rule
        assert (await ask(client(provider), steered())).shown == "Done."
    assert provider.requests[-1].messages[2]["reasoning"] == "Hm."


async def test_groqs_malformed_call_gets_one_more_try_with_a_word():
    body = {
        "error": {"message": "Failed to call a function", "code": "tool_use_failed", "failed_generation": "<function=x"}
    }
    async with FakeProvider([error("400 Bad Request", body), text("ok")]) as provider:
        assert (await ask(client(provider))).shown == "ok"
    assert "not valid" in provider.requests[1].messages[-1]["content"]

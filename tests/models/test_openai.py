"""What is known of a model on an OpenAI-compatible server, what it is therefore asked, and its calls in fragments."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.errors import ModelError
from local.models.chat import Degraded, Json, ModelInfo, ToolCall
from local.models.client import LOGPROBS, OptionalFields
from local.models.openai import (
    GOOGLE,
    LLAMA_SERVER,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    UNKNOWN,
    VLLM,
    CallAssembler,
    Dialect,
    Known,
    chat_request,
    find,
    known,
    response_format,
    to_openai,
)

USER = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PROPS = {
    "default_generation_settings": {"n_ctx": 8192},
    "modalities": {"vision": True},
    "chat_template_caps": {"supports_tools": True},
    "chat_template": "{% if enable_thinking %}",
}
ROUTED = {
    "id": "m",
    "context_length": 200_000,
    "supported_parameters": ["tools", "reasoning"],
    "architecture": {"input_modalities": ["text", "image"]},
    "top_provider": {"context_length": 128_000},
}
ALL = frozenset({"completion", "tools", "thinking", "vision"})


@pytest.mark.parametrize(
    ("entry", "props", "capabilities", "length", "dialect"),
    [
        ({"owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}, PROPS, ALL, 8192, LLAMA_SERVER),
        ({"owned_by": "llamacpp", "meta": {"n_ctx": 4096}}, {}, frozenset(), 4096, LLAMA_SERVER),
        ({"owned_by": "vllm", "max_model_len": 32768}, {}, frozenset(), 32768, VLLM),
        ({"owned_by": "library"}, {}, frozenset(), None, OLLAMA),
        ({"owned_by": "google"}, {}, frozenset(), None, GOOGLE),
        ({"owned_by": "system"}, {}, frozenset(), None, OPENAI),
        ({"owned_by": "me"}, {}, frozenset(), None, UNKNOWN),
        ({}, {}, frozenset(), None, UNKNOWN),
        (ROUTED, {}, ALL, 128_000, OPENROUTER),
        ({"supported_parameters": [], "context_length": 9}, {}, frozenset({"completion"}), 9, OPENROUTER),
        ({"meta": 3, "max_model_len": "?"}, {"modalities": []}, frozenset(), None, UNKNOWN),
    ],
)
def test_each_server_is_recognised_and_what_it_does_not_say_stays_unknown(
    entry: Json, props: Json, capabilities: frozenset[str], length: int | None, dialect: Dialect
) -> None:
    found = known("m", entry, props)
    assert found == Known(ModelInfo("m", capabilities, length), dialect)


def test_a_template_without_tools_or_thinking_cannot_do_them() -> None:
    props = {"chat_template_caps": {"supports_tools": False}, "chat_template": "{{ messages }}"}
    assert known("m", {"owned_by": "llamacpp"}, props).info.capabilities == {"completion"}


def test_a_model_is_found_under_the_names_that_servers_give_it() -> None:
    listed: list[Json] = [{"id": "models/gemini"}, {"id": "tiny:latest"}, {"id": "m"}, {}]
    assert [find(listed, name) for name in ("gemini", "tiny", "m")] == listed[:3]
    assert find(listed, "other") is None


def ask(dialect: Dialect, *capabilities: str, **how: Any) -> tuple[Json, list[Degraded]]:
    asked: Json = {"tools": [], "think": False, "options": None} | how
    return chat_request(Known(ModelInfo("m", frozenset(capabilities)), dialect), USER, **asked)


@pytest.mark.parametrize(
    ("dialect", "on", "off"),
    [
        (LLAMA_SERVER, *({"chat_template_kwargs": {"enable_thinking": value}} for value in (True, False))),
        (OPENROUTER, {"reasoning": {"enabled": True}}, {"reasoning": {"enabled": False}}),
        (OLLAMA, {"reasoning_effort": "medium"}, {"reasoning_effort": "none"}),
        (UNKNOWN, {}, {}),
    ],
)
def test_thinking_is_turned_on_and_off_as_the_server_wants_it(dialect: Dialect, on: Json, off: Json) -> None:
    common = {"model": "m", "messages": USER, "stream": True, "stream_options": {"include_usage": True}}
    assert ask(dialect, think=True) == (common | on, [])
    assert ask(dialect) == (common | off, [])


def test_what_a_model_is_known_not_to_do_is_left_out_and_told() -> None:
    body, notes = ask(OPENROUTER, "completion", tools=[TOOL], think=True)
    assert not {"tools", "reasoning"} & body.keys()
    assert [note.note.split("; ")[0] for note in notes] == ["m cannot think aloud", "m cannot call tools"]
    assert ask(UNKNOWN, tools=[TOOL], think=True)[0]["tools"] == [TOOL]


def test_options_get_the_servers_names_and_what_it_has_not_is_told() -> None:
    options = {"num_ctx": 9, "num_predict": 5, "temperature": 0, "top_k": 1, "repeat_penalty": 1.1, "seed": None}
    body, notes = ask(VLLM, options=options)
    names = ("max_tokens", "temperature", "top_k", "repetition_penalty")
    assert [body[name] for name in names] == [5, 0, 1, 1.1]
    assert not notes and not {"num_ctx", "num_predict", "seed"} & body.keys()
    body, notes = ask(OPENAI, options=options)
    assert body["max_completion_tokens"] == 5
    assert notes == [Degraded("the server of m has no option repeat_penalty, top_k; it answers without")]


def test_no_limit_of_tokens_is_no_field() -> None:
    assert "max_tokens" not in ask(UNKNOWN, options={"num_predict": -1})[0]


# The conversation

LONG = "550e8400-e29b-41d4-a716-446655440000:10:"


def call(call_id: str | None, name: str = "f", **arguments: Any) -> Json:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}}


def assistant(*calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def result(call_id: str | None, content: str, name: str = "f") -> Json:
    return {"role": "tool", "tool_name": name, "tool_call_id": call_id, "content": content}


def results(messages: list[Json]) -> list[tuple[str, str]]:
    return [(m["tool_call_id"], m["content"]) for m in to_openai(messages, UNKNOWN) if m["role"] == "tool"]


def test_a_tool_round_trip_has_short_ids_that_match_and_arguments_as_text() -> None:
    messages = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q"},
        assistant(call(f"{LONG}0", x=1), call(f"{LONG}1", "g")),
        result(f"{LONG}1", "two", "g"),
        result(f"{LONG}0", "one"),
    ]
    assert to_openai(messages, UNKNOWN) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                {"id": "call00002", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call00002", "content": "two"},
        {"role": "tool", "tool_call_id": "call00001", "content": "one"},
    ]


def test_ids_differ_from_step_to_step() -> None:
    messages = [assistant(call("a")), result("a", "1"), assistant(call("a")), result("a", "2")]
    assert results(messages) == [("call00001", "1"), ("call00002", "2")]


@pytest.mark.parametrize("call_id", [None, "", "same"])
def test_ids_that_are_missing_or_doubled_pair_by_tool_and_order(call_id: str | None) -> None:
    messages = [assistant(call(call_id), call(call_id)), result(call_id, "1"), result(call_id, "2")]
    assert results(messages) == [("call00001", "1"), ("call00002", "2")]
    messages = [assistant(call(None), call(None, "g")), result(None, "of g", "g"), result(None, "of f")]
    assert results(messages) == [("call00002", "of g"), ("call00001", "of f")]


def test_a_call_without_a_result_is_said_to_have_none() -> None:
    user = {"role": "user", "content": "Q"}
    translated = to_openai([assistant(call("a"), call("b")), result("b", "2"), user], UNKNOWN)
    assert [m["role"] for m in translated] == ["assistant", "tool", "tool", "user"]
    assert translated[2] == {"role": "tool", "tool_call_id": "call00001", "content": "(no result)"}
    assert to_openai([assistant(call("a"))], UNKNOWN)[-1]["content"] == "(no result)"


def test_a_result_whose_call_is_gone_is_told_as_text() -> None:
    assert to_openai([result("a", "42", "sum")], OPENAI) == [{"role": "user", "content": "Result of sum: 42"}]


def test_thinking_and_tool_names_go_only_to_servers_that_take_them() -> None:
    messages = [assistant(call("a"), thinking="hm"), result("a", "1")]
    llama, llama_result = to_openai(messages, LLAMA_SERVER)
    assert (llama["reasoning_content"], llama_result["name"]) == ("hm", "f")
    vllm = to_openai(messages, VLLM)[0]
    assert vllm["reasoning"] == vllm["reasoning_content"] == "hm"
    strict, strict_result = to_openai(messages, OPENAI)
    assert strict.keys() == {"role", "content", "tool_calls"}
    assert strict_result.keys() == {"role", "content", "tool_call_id"}


@pytest.mark.parametrize(
    ("image", "url"),
    [
        ("iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo="),
        ("/9j/4AAQ", "data:image/jpeg;base64,/9j/4AAQ"),
        ("data:image/gif;base64,R0lGOD", "data:image/gif;base64,R0lGOD"),
    ],
)
def test_images_become_parts_of_the_message(image: str, url: str) -> None:
    (message,) = to_openai([{"role": "user", "content": "What is it?", "images": [image]}], UNKNOWN)
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    assert message == {"role": "user", "content": parts}


def test_the_system_messages_at_the_beginning_are_one() -> None:
    said = [{"role": role, "content": text} for role, text in (("system", "S"), ("system", "M"), ("user", "Q"))]
    later = {"role": "system", "content": "L"}
    assert to_openai([*said, later], UNKNOWN) == [{"role": "system", "content": "S\n\nM"}, said[2], later]


# Fragments of calls, as servers have been seen to send them


def fragment(arguments: Any = None, name: str | None = None, index: int | None = None, **more: Any) -> Json:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"function": function} | ({} if index is None else {"index": index}) | more


def assemble(*fragments: Any, reason: str = "tool_calls") -> list[ToolCall]:
    assembler = CallAssembler("m")
    for part in fragments:
        assembler.add(part)
    return assembler.calls(reason)


A, B = ToolCall("f", {"x": 1}, "a"), ToolCall("g", {"y": 2}, "b")


WHOLE_A, WHOLE_B = ('{"x":1}', "f"), ('{"y":2}', "g")


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment("", "f", 0, id="a", type="function"), fragment('{"x"', index=0), fragment("", "g", 1, id="b"),
         fragment('{"y": ', index=1), fragment(": 1}", index=0), fragment("2}", index=1)],
        [fragment(*WHOLE_B, 1, id="b"), fragment(*WHOLE_A, 0, id="a")],  # in another order
        [fragment(*WHOLE_A, 3, id="a"), fragment(*WHOLE_B, 7, id="b")],  # the index begins anywhere
        [fragment(*WHOLE_A, id="a"), fragment(*WHOLE_B, id="b")],
        [fragment(*WHOLE_A, 0, id="a"), fragment(*WHOLE_B, 0, id="b")],  # all with the first index
        [fragment("{", "f", id="a"), fragment('"x":1}'), fragment("{", "g", id="b"), fragment('"y":2}', id="b")],
        [*(fragment(piece, "f", 0, id="a") for piece in ('{"x"', ":", "1}", "")), fragment({"y": 2}, "g", 1, id="b")],
    ],
)  # fmt: skip
def test_fragments_become_calls_in_the_order_of_their_index(fragments: list[Json]) -> None:
    assert assemble(*fragments) == [A, B]


@pytest.mark.parametrize("index", [None, 0])
def test_calls_of_one_tool_are_told_apart(index: int | None) -> None:
    calls = assemble(fragment('{"x":1}', "f", index), fragment('{"x":2}', "f", index))
    assert calls == [ToolCall("f", {"x": 1}), ToolCall("f", {"x": 2})]
    pieces = [(fragment("", "f", 0, id=call_id), fragment('{"x":1}', index=0)) for call_id in "ab"]
    assert assemble(*pieces[0], *pieces[1]) == [ToolCall("f", {"x": 1}, "a"), ToolCall("f", {"x": 1}, "b")]
    assert [call.name for call in assemble(fragment(*WHOLE_A, 0, id="a"), fragment(*WHOLE_B, 1, id="a"))] == ["f", "g"]


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment('{"x":1', "f", 0)],
        [fragment('{"x":1}{"x":2}', "f", 0)],
        [fragment("[1]", "f", 0)],
        [fragment([1], "f", 0)],
        [fragment(3, "f", 0)],
        [fragment("{}", index=0)],
        [fragment("{}")],
        ["f"],
        [{"function": "f"}],
        [None],
    ],
)
def test_what_is_unclear_is_never_guessed_at(fragments: list[Any]) -> None:
    with pytest.raises(ModelError) as caught:
        assemble(*fragments)
    assert caught.value.kind == "bad_call"


@pytest.mark.parametrize("arguments", ["", '{"x"'])
def test_a_call_cut_by_the_token_limit_says_so_and_is_not_made_without_arguments(arguments: str) -> None:
    with pytest.raises(ModelError, match="token limit within a call of f: raise num_predict"):
        assemble(fragment(arguments, "f", 0), reason="length")


# What a call may go without

FORM: Json = {"format": {"type": "object"}}


def refusal(status: int | None, text: str = "no") -> ModelError:
    return ModelError(text, kind="bad_request", status=status)


@pytest.mark.parametrize(
    ("text", "left"),
    [("top_logprobs unknown", FORM), ("failed to parse GRAMMAR", LOGPROBS), ("bad json_schema", LOGPROBS), ("?", FORM)],
)
def test_a_refusal_takes_what_it_names_or_else_the_probabilities_first(text: str, left: Json) -> None:
    optional = OptionalFields(set(), form=FORM, logprobs=True)
    assert optional.fields == FORM | LOGPROBS
    assert optional.refused(refusal(400, text))
    assert optional.fields == left


def test_other_failures_take_nothing_and_each_wish_is_dropped_once() -> None:
    optional = OptionalFields(set(), form=FORM, logprobs=True)
    for status in (None, 401, 404, 429, 500):
        assert optional.refused(refusal(status, "logprobs")) is None
    assert [bool(optional.refused(refusal(422))) for _ in range(3)] == [True, True, False]
    forbidden = OptionalFields(set(), form={}, logprobs=True)
    assert forbidden.refused(refusal(403, "check the key")) is None
    assert forbidden.refused(refusal(403, "You are not allowed to request logprobs from this model"))
    progress = OptionalFields(set(), form={}, logprobs=False, progress={"return_progress": True})
    assert progress.refused(refusal(400, "the prompt is too long")) is None, "only a refusal that names it"
    assert progress.refused(refusal(400, "unknown field return_progress")) and progress.fields == {}


def test_only_what_has_helped_is_remembered() -> None:
    learned: set[str] = set()
    first = OptionalFields(learned, form=FORM, logprobs=True)
    first.refused(refusal(400, "logprobs"))
    assert OptionalFields(learned, form=FORM, logprobs=True).fields == FORM | LOGPROBS
    first.accepted()
    second = OptionalFields(learned, form=FORM, logprobs=True)
    assert (second.fields, len(second.notes)) == (FORM, 1)


CLOSED: Json = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (CLOSED | {"required": []}, False),
        ({**CLOSED, "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
    ],
)
def test_openai_is_asked_strictly_where_its_rules_for_that_are_kept(schema: Json, strict: bool) -> None:
    described = response_format(schema)["response_format"]["json_schema"]
    assert (described["schema"], described["strict"]) == (schema, strict)

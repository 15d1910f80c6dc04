"""Our agents' messages in OpenAI's form."""

from __future__ import annotations

from typing import Any

import pytest

from local.models.chat import Json
from local.models.openai import LLAMA_SERVER, OPENAI, UNKNOWN, VLLM, to_openai

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

"""What is known of a model, and what it is therefore asked."""

from __future__ import annotations

from typing import Any

import pytest

from local.models.chat import Degraded, Json, ModelInfo
from local.models.openai import (
    GOOGLE,
    LLAMA_SERVER,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    UNKNOWN,
    VLLM,
    Dialect,
    Known,
    chat_request,
    find,
    known,
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

"""The `openai` package holds a conversation with the real system."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

SECONDS = 90.0


@pytest.fixture
def ai(live: Any) -> Iterator[openai.OpenAI]:
    with client_of(live.system.api_url) as ai:
        yield ai


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """With a memory."""
    folder = tmp_path_factory.mktemp("remembering")
    config = write_settings(folder, {"system": {"participants": ["arbiter", "generator", "memory", "search_memory"]}})
    with (
        WarmSystem(folder / "data", config_dir=config, flags=["--backend", "stand_in"]) as system,
        client_of(system.api_url) as ai,
    ):
        yield ai


def client_of(url: str) -> openai.OpenAI:
    transport = httpx.Client(trust_env=False, timeout=SECONDS)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", http_client=transport, max_retries=0)


def whole(ai: openai.OpenAI, messages: list[Any]) -> str:
    return ai.chat.completions.create(model="local2", messages=messages).choices[0].message.content or ""


def streamed(ai: openai.OpenAI, messages: list[Any]) -> str:
    chunks = ai.chat.completions.create(model="local2", messages=messages, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@pytest.mark.parametrize("asked", [whole, streamed])
def test_each_question_is_answered_in_the_light_of_those_before_and_tools_are_used(ai: openai.OpenAI, asked) -> None:
    messages: list[Any] = []
    for question in ("What is the Python GIL?", "Why was it introduced?", "Roll a dice with 6 sides!"):
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": asked(ai, messages)})
    assert "reference counting" in messages[3]["content"]
    assert "the dice with 6 sides shows 6" in messages[5]["content"]


def test_a_prompt_that_cannot_fit_is_refused_with_the_numbers(ai: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="too large for the context of") as refused:
        whole(ai, [{"role": "user", "content": "gull " * 60_000}])
    assert (refused.value.status_code, refused.value.code) == (413, "context_overflow")


WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "city_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def test_the_model_calls_the_clients_function_and_goes_on_with_its_result(ai: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
    first = ai.chat.completions.create(model="local2", messages=messages, tools=[WEATHER])
    [call] = first.choices[0].message.tool_calls or []
    assert (call.function.name, first.choices[0].finish_reason) == ("city_weather", "tool_calls")
    messages += [
        first.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "It snows, -3 degrees."},
    ]
    second = ai.chat.completions.create(model="local2", messages=messages, tools=[WEATHER])
    assert "-3 degrees" in (second.choices[0].message.content or "")


def test_an_answer_has_the_form_and_the_length_that_are_wanted(ai: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    messages: list[Any] = [{"role": "user", "content": "How many?"}]
    formed = ai.chat.completions.create(model="local2", messages=messages, response_format=form)
    assert isinstance(json.loads(formed.choices[0].message.content or "")["n"], int)
    short = ai.chat.completions.create(model="local2", messages=messages, max_tokens=1)
    assert short.choices[0].finish_reason == "length"


def test_what_was_said_to_the_model_that_remembers_is_recalled_elsewhere(remembering: openai.OpenAI) -> None:
    def say(model: str, text: str) -> str:
        said: list[Any] = [{"role": "user", "content": text}]
        return remembering.chat.completions.create(model=model, messages=said).choices[0].message.content or ""

    say("local2:remember", "My lucky number is 7318.")
    say("local2", "My lucky colour is ultramarine.")
    with httpx.Client(
        base_url=str(remembering.base_url).removesuffix("/v1/"), trust_env=False, timeout=SECONDS
    ) as client:
        until = time.monotonic() + SECONDS
        while "7318" not in client.get("/memory?query=lucky+number").text and time.monotonic() < until:
            pass  # it is remembered beside the answer
        found = client.get("/memory?query=lucky").text
        assert "7318" in found and "ultramarine" not in found
        assert client.get("/sessions?query=lucky").json()["sessions"] == []
    assert "7318" in say("local2:remember", "What is my lucky number?")


def test_texts_that_mean_the_same_have_vectors_that_are_close(remembering: openai.OpenAI) -> None:
    texts = ["I like my coffee black.", "Coffee without milk, please.", "The train to Oslo is late."]
    first, second, third = (each.embedding for each in remembering.embeddings.create(model="local2", input=texts).data)
    plain = remembering.embeddings.create(model="local2", input=texts[0], encoding_format="float").data[0].embedding
    assert plain == pytest.approx(first, abs=1e-6)

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert cosine(first, first) == pytest.approx(1.0, abs=1e-3)
    assert cosine(first, second) > cosine(first, third)

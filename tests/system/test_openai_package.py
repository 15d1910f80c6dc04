"""The `openai` package holds a conversation with the real system."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

SECONDS = 30.0


@pytest.fixture
def ai(live: Any) -> Iterator[openai.OpenAI]:
    transport = httpx.Client(trust_env=False, timeout=SECONDS)
    url = f"{live.system.api_url}/v1"
    with openai.OpenAI(base_url=url, api_key="any", http_client=transport, max_retries=0) as ai:
        yield ai


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

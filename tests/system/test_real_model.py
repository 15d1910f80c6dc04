"""A question on its way to an answer of a real model: a whole system, llama.cpp and SmolLM2-135M."""

from __future__ import annotations

from typing import Any


def test_an_answer_of_a_real_model_is_streamed_as_it_is_generated(llama_live: Any) -> None:
    query = {"query": "What is the capital of France?"}
    with llama_live.stream("POST", "/query", json=query) as events:
        told = list(events)
    tokens = [data["text"] for name, data in told if name == "token"]
    answer = told[-1][1]
    assert len(tokens) > 1 and "".join(tokens).strip() == answer["answer"].strip()
    assert answer["model"].startswith("SmolLM2-135M")
    assert 1 < answer["usage"]["completion_tokens"] <= 64 < answer["usage"]["prompt_tokens"]

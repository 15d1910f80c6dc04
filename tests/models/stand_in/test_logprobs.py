"""Probabilities of tokens, as Ollama and OpenAI tell them."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import ollama
import openai
import pytest

GEMMA = "gemma4:12b"
ASKED = [{"role": "user", "content": "What is 17 * 23?"}]


async def test_ollamas_chunks_carry_their_tokens_and_the_digits_are_tokens_of_their_own(
    http: httpx.AsyncClient,
) -> None:
    body = {"model": GEMMA, "messages": ASKED, "think": False, "logprobs": True, "top_logprobs": 2}
    chunks = [json.loads(line) for line in (await http.post("/api/chat", json=body)).text.splitlines()]
    for chunk in chunks:
        assert "".join(entry["token"] for entry in chunk.get("logprobs", ())) == chunk["message"]["content"]
    entries = [entry for chunk in chunks for entry in chunk.get("logprobs", ())]
    assert [entry["token"] for entry in entries if entry["token"].isdigit()] == list("1723391")
    assert entries[0] == {
        "token": "1", "logprob": 0.0, "bytes": [49], "top_logprobs": [{"token": "1", "logprob": 0.0, "bytes": [49]}],
    }  # fmt: skip


async def test_none_come_unless_they_are_asked_for(http: httpx.AsyncClient) -> None:
    for others in ({}, {"logprobs": False, "top_logprobs": 5}):
        body = {"model": GEMMA, "messages": ASKED, "stream": False, **others}
        assert "logprobs" not in (await http.post("/api/chat", json=body)).json()


@pytest.mark.parametrize("number", [-1, 21])
async def test_too_many_alternatives_are_refused_in_ollamas_words(http: httpx.AsyncClient, number: int) -> None:
    body = {"model": GEMMA, "messages": ASKED, "logprobs": True, "top_logprobs": number}
    refused = await http.post("/api/chat", json=body)
    assert (refused.status_code, refused.json()["error"]) == (400, "top_logprobs must be between 0 and 20")


async def test_the_ollama_package_reads_them(url: str) -> None:
    async with ollama.AsyncClient(url, trust_env=False) as client:
        answer = await client.chat(GEMMA, ASKED, think=False, logprobs=True, top_logprobs=1)
    assert answer.logprobs is not None
    assert "".join(entry.token for entry in answer.logprobs) == answer.message.content


@pytest.mark.parametrize("stream", [False, True])
async def test_the_openai_package_reads_them(url: str, stream: bool) -> None:
    asked: Any = {"model": GEMMA, "messages": ASKED, "logprobs": True, "top_logprobs": 1, "reasoning_effort": "none"}
    transport = httpx.AsyncClient(trust_env=False, timeout=30)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", http_client=transport) as client:
        answer: Any = await client.chat.completions.create(stream=stream, **asked)
        choices = [chunk.choices[0] async for chunk in answer if chunk.choices] if stream else answer.choices
    entries = [entry for choice in choices if choice.logprobs for entry in choice.logprobs.content]
    said = "".join((choice.delta if stream else choice.message).content for choice in choices)
    assert "".join(entry.token for entry in entries) == said
    assert all(math.exp(entry.top_logprobs[0].logprob) == 1 for entry in entries)

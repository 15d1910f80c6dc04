"""The real `ollama` client talks to the stand-in as to the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import ollama
import pytest

from local.stand_in.server import StandInSettings

Json = dict[str, Any]
MakeTool = Callable[..., Json]

GEMMA = "gemma4:12b"
PARIS = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture
async def client(url: str) -> AsyncIterator[ollama.AsyncClient]:
    async with ollama.AsyncClient(url, trust_env=False) as client:
        yield client


async def refused(asked: Any) -> tuple[int, str]:
    with pytest.raises(ollama.ResponseError) as error:
        await asked
    return error.value.status_code, error.value.error


async def test_a_streamed_chat_thinks_then_speaks_and_ends_with_its_counts(client: ollama.AsyncClient) -> None:
    parts = [part async for part in await client.chat(GEMMA, PARIS, stream=True)]
    assert "".join(part.message.content or "" for part in parts) == "The capital of France is Paris."
    thought = [bool(part.message.thinking) for part in parts]
    assert thought == sorted(thought, reverse=True)
    assert thought[0]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    last = parts[-1]
    assert (last.done_reason, last.model) == ("stop", GEMMA)
    assert last.prompt_eval_count and last.eval_count
    assert None not in (last.total_duration, last.load_duration, last.prompt_eval_duration, last.eval_duration)
    assert all(part.created_at and part.created_at.endswith("Z") for part in parts)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_second_question_is_understood_from_the_first(client: ollama.AsyncClient, streamed: bool) -> None:
    messages: list[Json] = []
    for question in ("What is the Python GIL?", "Why was it introduced?"):
        messages.append({"role": "user", "content": question})
        if streamed:
            parts = [part async for part in await client.chat(GEMMA, messages, stream=True)]
            answer = "".join(part.message.content or "" for part in parts)
        else:
            answer = (await client.chat(GEMMA, messages)).message.content or ""
        messages.append({"role": "assistant", "content": answer})
    assert "reference counting" in messages[-1]["content"]


async def test_a_tool_is_called_and_its_result_quoted(client: ollama.AsyncClient, tool: MakeTool) -> None:
    def web_search(query: str) -> str:
        """Search the web.

        Args:
            query: What to look for
        """
        return "[1] Title: A title\n    Snippet: A snippet.\n    URL: https://a.example"

    messages: list[Any] = [{"role": "user", "content": "What is the latest news?"}]
    asked = await client.chat(GEMMA, messages, tools=[web_search])
    assert asked.message.tool_calls
    (call,) = asked.message.tool_calls
    assert call.function.name == "web_search"
    found = web_search(**call.function.arguments)
    messages += [asked.message, {"role": "tool", "tool_name": call.function.name, "content": found}]
    answer = await client.chat(GEMMA, messages, tools=[web_search])
    assert not answer.message.tool_calls
    assert "A snippet. [1]" in (answer.message.content or "")


async def test_num_predict_cuts_the_answer(client: ollama.AsyncClient) -> None:
    answer = await client.chat(GEMMA, PARIS, think=False, options={"num_predict": 2})
    assert (answer.message.content, answer.done_reason, answer.eval_count) == ("The capi", "length", 2)


async def test_list_show_ps_and_version_describe_the_models(
    client: ollama.AsyncClient, http: httpx.AsyncClient
) -> None:
    models = {entry.model: entry for entry in (await client.list()).models}
    assert {f"gemma4:{tag}" for tag in ("e2b", "e4b", "12b", "26b", "31b")} < set(models)
    assert models[GEMMA].details and models[GEMMA].details.family == "gemma4"
    shown = await client.show(GEMMA)
    assert {"completion", "tools", "thinking", "vision"} == set(shown.capabilities or ())
    assert shown.modelinfo and shown.modelinfo["gemma4.context_length"] == 262_144
    assert (await client.show("tinyllama")).capabilities == ["completion"]
    await client.chat(GEMMA, PARIS)
    assert GEMMA in [entry.model for entry in (await client.ps()).models]
    assert (await http.get("/api/version")).json()["version"].count(".") == 2
    assert (await http.get("/")).text == "Ollama is running"
    assert (await http.head("/")).status_code == 200


async def test_errors_have_the_status_and_words_of_ollama(client: ollama.AsyncClient, tool: MakeTool) -> None:
    assert await refused(client.chat("llama9", PARIS)) == (404, "model 'llama9' not found")
    assert await refused(client.show("llama9")) == (404, "model 'llama9' not found")
    assert await refused(client.chat("tinyllama", PARIS, think=True)) == (400, '"tinyllama" does not support thinking')
    status, text = await refused(client.chat("tinyllama", PARIS, tools=[tool("web_search")]))
    assert (status, text.partition(" ")[2]) == (400, "does not support tools")
    assert await refused(client.chat("nomic-embed-text", PARIS)) == (400, '"nomic-embed-text" does not support chat')
    assert (await refused(client.embed(GEMMA, "x")))[0] == 501


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b"[" * 100_000,
        b'{"model":"gemma4:12b","messages":{}}',
        b'{"model":"gemma4:12b","messages":["x"]}',
        b'{"model":"gemma4:12b","messages":[{"role":"user","content":5}]}',
        b'{"model":"gemma4:12b","messages":[{"role":"user"}],"tools":[{"function":{}}]}',
        b'{"model":"gemma4:12b","messages":[{"role":"user","tool_calls":[7]}]}',
        b'{"model":"gemma4:12b","messages":[{"role":"user"}],"options":{"num_ctx":"big"}}',
        b'{"model":"gemma4:12b","messages":[{"role":"user"}],"options":{"num_ctx":1e400}}',
        b'{"model":"gemma4:12b","messages":[{"role":"user"}],"think":"loudly"}',
        b'{"model":"gemma4:12b","messages":[{"role":"user"}],"format":7}',
        b'{"model":"gemma4:12b","messages":[{"role":"user"}],"temperature":NaN}',
        b'{"model":5}',
    ],
)
async def test_a_malformed_request_is_a_400_with_a_reason(http: httpx.AsyncClient, body: bytes) -> None:
    answer = await http.post("/api/chat", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_a_long_conversation_is_cut_silently_unless_that_is_forbidden(
    client: ollama.AsyncClient, http: httpx.AsyncClient
) -> None:
    messages = [{"role": "user", "content": "Tell me about the Python GIL. " + "word " * 4000}]
    messages += [{"role": "assistant", "content": "A lock."}, {"role": "user", "content": "Why was it introduced?"}]
    whole = await client.chat(GEMMA, messages, options={"num_ctx": 10_000})
    assert "reference counting" in (whole.message.content or "")
    cut = await client.chat(GEMMA, messages, options={"num_ctx": 1000})
    assert "do not know what “it” refers to" in (cut.message.content or "")
    assert cut.prompt_eval_count and cut.prompt_eval_count <= 1000
    asked = {"model": GEMMA, "messages": messages, "truncate": False, "options": {"num_ctx": 1000}}
    refused_answer = await http.post("/api/chat", json=asked)
    assert refused_answer.status_code == 400
    assert refused_answer.json() == {"error": "the input length exceeds the context length"}


async def test_generate_answers_a_prompt(client: ollama.AsyncClient) -> None:
    whole = await client.generate(GEMMA, "What is the capital of France?", system="Be short.")
    assert whole.response == "The capital of France is Paris."
    parts = [part async for part in await client.generate(GEMMA, "What is the capital of France?", stream=True)]
    assert "".join(part.response for part in parts) == whole.response
    assert parts[-1].done


async def test_a_model_can_be_deleted_and_pulled_again(serving: Any) -> None:
    settings = StandInSettings(models=("gemma4:12b",))
    async with serving(settings) as url, ollama.AsyncClient(url, trust_env=False) as client:
        assert [entry.model for entry in (await client.list()).models] == [GEMMA]
        assert (await client.delete(GEMMA)).status == "success"
        assert (await refused(client.chat(GEMMA, PARIS)))[0] == 404
        progress = [step async for step in await client.pull(GEMMA, stream=True)]
        assert progress[-1].status == "success"
        assert any(step.total and step.completed for step in progress)
        assert (await client.chat(GEMMA, PARIS)).done
        with pytest.raises(ollama.ResponseError, match="file does not exist"):
            await client.pull("gemma4:27b")

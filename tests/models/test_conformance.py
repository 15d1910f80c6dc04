"""One suite for every model client: each speaks its own API to the same stand-in and must tell the same."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from local.core.errors import ModelBusy, ModelError
from local.models.chat import (
    ChatModel,
    ContentDelta,
    Degraded,
    Delta,
    Done,
    ErrorClass,
    Json,
    ThinkingDelta,
    TokenScores,
    ToolCall,
    classify,
)
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from local.models.router import FallbackPolicy, Router, Target
from tests.stand_in.server import StandInSettings, serve

GEMMA = "gemma4:12b"
ANSWER = "The capital of France is Paris."
CANCEL_SECONDS = 10.0  # on a very busy machine, where a fault lasts 30; `bench.py model` measures it

PARIS: list[Json] = [{"role": "user", "content": "What is the capital of France?"}]
NEWS: list[Json] = [{"role": "user", "content": "What is the latest news?"}]

# Makes a client of the stand-in at `url` with the limits for the first token and between two.
Backend = Callable[[str, float, float], ChatModel]


def _limits(first: float, between: float) -> dict[str, float]:
    return {"first_token_seconds": first, "between_tokens_seconds": between, "timeout_seconds": 10.0}


def _router(url: str, first: float, between: float) -> ChatModel:
    """A chain of one, which must not be noticed."""
    server = OllamaModel(url, **_limits(first, between))
    return Router(lambda name: [Target(name, name, server)], server.close, policy=FallbackPolicy(max_retries=0))


BACKENDS: dict[str, Backend] = {
    "ollama": lambda url, first, between: OllamaModel(url, **_limits(first, between)),
    "openai": lambda url, first, between: OpenAIModel(f"{url}/v1", **_limits(first, between)),
    "router": _router,
}


@pytest.fixture(scope="module")
def _stand_in() -> Iterator[str]:
    sock = socket.create_server(("127.0.0.1", 0))
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(StandInSettings(), sock, stop)))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    thread.start()
    yield url
    loop.call_soon_threadsafe(stop.set)
    thread.join(timeout=10)
    loop.close()


class Control:
    """Scripts, faults and the log of the stand-in."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def reset(self) -> None:
        for what in ("script", "fault", "log"):
            (await self._client.delete(f"/stand_in/{what}")).raise_for_status()

    async def script(self, *replies: Json) -> None:
        story = {"story": "x", "turns": [{"user": ".", "replies": list(replies)}]}
        (await self._client.post("/stand_in/script", json=story)).raise_for_status()

    async def fault(self, kind: str, **fields: Any) -> None:
        (await self._client.post("/stand_in/fault", json={"kind": kind, **fields})).raise_for_status()

    async def requests(self, **query: int) -> list[Json]:
        answer = await self._client.get("/stand_in/log", params=query)
        requests: list[Json] = answer.json()["requests"]
        return requests


@pytest.fixture
async def control(_stand_in: str) -> AsyncIterator[Control]:
    async with httpx.AsyncClient(base_url=_stand_in, trust_env=False, verify=False) as client:
        control = Control(client)
        await control.reset()
        yield control


@pytest.fixture(params=BACKENDS)
async def clients(request: pytest.FixtureRequest, _stand_in: str) -> AsyncIterator[Callable[..., ChatModel]]:
    """Makes clients of one backend and closes them."""
    made: list[ChatModel] = []

    def make(first: float = 10.0, between: float = 10.0) -> ChatModel:
        made.append(BACKENDS[request.param](_stand_in, first, between))
        return made[-1]

    yield make
    for model in made:
        await model.close()


@pytest.fixture
def model(clients: Callable[..., ChatModel], control: Control) -> ChatModel:
    return clients()


def tool(name: str) -> Json:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


async def chat(model: ChatModel, messages: list[Json] = PARIS, **how: Any) -> list[Delta]:
    return [delta async for delta in model.chat(GEMMA, messages, **how)]


def content(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))


def calls(deltas: list[Delta]) -> list[ToolCall]:
    return [delta for delta in deltas if isinstance(delta, ToolCall)]


async def test_it_says_an_answer_in_pieces_and_what_it_cost(model: ChatModel) -> None:
    deltas = await chat(model)
    assert content(deltas) == ANSWER
    assert sum(isinstance(delta, ContentDelta) for delta in deltas) > 1
    done = deltas[-1]
    assert isinstance(done, Done)
    assert (done.reason, done.model) == ("stop", GEMMA)
    assert done.usage.prompt_tokens > 0 and done.usage.completion_tokens > 0


@pytest.mark.parametrize("think", [True, False])
async def test_it_thinks_before_the_answer_if_and_only_if_asked_to(model: ChatModel, think: bool) -> None:
    kinds = [type(delta) for delta in await chat(model, think=think)]
    assert (kinds[0] is ThinkingDelta) is (ThinkingDelta in kinds) is think


async def test_thoughts_that_leak_into_the_content_are_told_apart(model: ChatModel, control: Control) -> None:
    await control.fault("think_tags")
    deltas = await chat(model, think=True)
    assert content(deltas) == ANSWER
    assert isinstance(deltas[0], ThinkingDelta)


async def test_it_calls_a_tool_and_answers_from_the_result(model: ChatModel) -> None:
    (call,) = calls(await chat(model, NEWS, tools=[tool("web_search")]))
    assert (call.name, call.arguments) == ("web_search", {"query": "What is the latest news"})
    function = {"name": call.name, "arguments": call.arguments}
    asked = {
        "role": "assistant",
        "content": "",
        "thinking": "hm",
        "tool_calls": [{"id": "q:0:0", "function": function}],
    }
    result = {"role": "tool", "tool_name": call.name, "tool_call_id": "q:0:0", "content": "Peace was made in Utopia."}
    deltas = await chat(model, [*NEWS, asked, result], tools=[tool("web_search")])
    assert content(deltas) == "web_search says: Peace was made in Utopia."
    assert not calls(deltas)


async def test_several_calls_in_one_message_and_their_results_keep_their_order(
    model: ChatModel, control: Control
) -> None:
    wanted = [{"name": name, "arguments": {"query": name}} for name in ("first", "second")]
    await control.script({"tool_calls": wanted}, {"content": "{result:1}|{result:2}"})
    tools = [tool("first"), tool("second")]
    made = calls(await chat(model, NEWS, tools=tools))
    assert [(call.name, call.arguments) for call in made] == [
        ("first", {"query": "first"}),
        ("second", {"query": "second"}),
    ]
    functions = [{"function": {"name": call.name, "arguments": call.arguments}, "id": "same"} for call in made]
    asked = {"role": "assistant", "content": "", "tool_calls": functions}
    results = [
        {"role": "tool", "tool_name": call.name, "tool_call_id": "same", "content": f"of {call.name}"} for call in made
    ]
    assert content(await chat(model, [*NEWS, asked, *results], tools=tools)) == "of first|of second"


async def test_the_conversation_arrives_as_it_was_sent(model: ChatModel, control: Control) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *NEWS, {"role": "assistant", "content": "None."}, *PARIS]
    await chat(model, messages, options={"temperature": 0.5, "num_predict": 100, "seed": 7})
    (request,) = await control.requests()
    assert [(m["role"], m["content"]) for m in request["messages"]] == [(m["role"], m["content"]) for m in messages]
    options = request["options"]
    assert (options["temperature"], options["num_predict"], options["seed"]) == (0.5, 100, 7)


async def test_an_empty_message_is_nothing_but_done(model: ChatModel, control: Control) -> None:
    await control.fault("empty")
    assert [type(delta) for delta in await chat(model)] == [Done]


async def test_a_flood_of_tokens_arrives_whole(model: ChatModel, control: Control) -> None:
    await control.fault("flood", tokens=3000)
    assert content(await chat(model)) == "word" * 3000


async def test_a_token_limit_is_told_as_the_reason_to_stop(model: ChatModel) -> None:
    done = (await chat(model, options={"num_predict": 1}))[-1]
    assert isinstance(done, Done)
    assert done.reason == "length"


@pytest.mark.parametrize(
    ("phase", "fault"),
    [("before the first token", "first_token_delay"), ("thinking", "chunk_delay"), ("answering", "chunk_delay")],
)
async def test_cancelling_closes_the_connection_so_that_the_server_sees_it_at_once(
    model: ChatModel, control: Control, phase: str, fault: str
) -> None:
    await control.script({"thinking": ["a"] * (phase == "thinking") + ["b"] * 9, "content": ["c"] * 9})
    await control.fault(fault, seconds=0.01 if phase == "answering" else 30)
    awaited = {"thinking": ThinkingDelta, "answering": ContentDelta}.get(phase)
    heard = asyncio.Event()

    async def listen() -> None:
        async with aclosing(model.chat(GEMMA, PARIS, think=True)) as deltas:
            async for delta in deltas:
                if awaited and isinstance(delta, awaited):
                    heard.set()

    async with asyncio.timeout(20):
        task = asyncio.create_task(listen())
        await (heard.wait() if awaited else control.requests(begun=1))
        cancelled_at = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (request,) = await control.requests(idle=1)
    # The stand-in runs in this process and has the same clock.
    assert request["disconnected_at"] - cancelled_at < CANCEL_SECONDS


async def test_leaving_a_stream_closes_the_connection_without_any_cancelling(
    model: ChatModel, control: Control
) -> None:
    await control.script({"content": ["a"] * 9})
    await control.fault("chunk_delay", seconds=30)
    async with asyncio.timeout(20):
        async with aclosing(model.chat(GEMMA, PARIS)) as deltas:
            assert await anext(deltas) == ContentDelta("a")
        left_at = time.monotonic()
        (request,) = await control.requests(idle=1)
    assert request["disconnected_at"] - left_at < CANCEL_SECONDS


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("eof", "stream_cut"),
        ("disconnect", "stream_cut"),
        ("half_line", "bad_stream"),
        ("garbage", "bad_stream"),
        ("error_line", "server_error"),
    ],
)
async def test_a_stream_that_breaks_gives_what_was_said_and_a_typed_error(
    model: ChatModel, control: Control, fault: str, kind: str
) -> None:
    await control.fault(fault, after=1)
    said: list[Delta] = []
    with pytest.raises(ModelError) as caught:
        async for delta in model.chat(GEMMA, PARIS):
            said.append(delta)
    assert caught.value.kind == kind
    assert classify(caught.value) is ErrorClass.TRANSIENT
    assert content(said) == ANSWER[:16]
    assert content(await chat(model)) == ANSWER


@pytest.mark.parametrize(
    ("status", "text", "kinds"),
    [
        (400, "the input length exceeds the context length", {"context_overflow"}),
        (401, "unauthorized", {"unauthorised"}),
        (404, "model 'gemma4:12b' not found", {"model_missing"}),
        (429, "slow down", {"overloaded", "rate_limit"}),
        (500, "model runner has unexpectedly stopped", {"server_error"}),
        (503, "server busy, please try again", {"overloaded"}),
    ],
)
async def test_an_error_status_has_its_kind_and_the_next_question_is_answered(
    model: ChatModel, control: Control, status: int, text: str, kinds: set[str]
) -> None:
    await control.fault("status", status=status, body={"error": text})
    with pytest.raises(ModelError) as caught:
        await chat(model)
    assert caught.value.kind in kinds
    assert caught.value.status == status
    assert isinstance(caught.value, ModelBusy) is (status in (429, 503))
    assert content(await chat(model)) == ANSWER


@pytest.mark.parametrize("fault", ["first_token_delay", "chunk_delay"])
async def test_silence_is_a_timeout_that_names_the_limit(
    clients: Callable[..., ChatModel], control: Control, fault: str
) -> None:
    await control.fault(fault, seconds=30)
    impatient = clients(first=0.15, between=0.16)
    async with asyncio.timeout(20):
        with pytest.raises(ModelError, match=r"for 0\.1[56] s") as caught:
            await chat(impatient)
    assert caught.value.kind == "timeout"
    await control.requests(idle=1)


async def test_twenty_conversations_side_by_side_are_not_mixed_up(model: ChatModel) -> None:
    questions = [f"What is {n} + {n}?" for n in range(20)]
    answers = await asyncio.gather(*(chat(model, [{"role": "user", "content": q}]) for q in questions))
    assert all(str(2 * n) in content(deltas) for n, deltas in enumerate(answers))


async def test_each_text_gets_its_vector(model: ChatModel) -> None:
    tea, coffee = await model.embed("nomic-embed-text", ["green tea", "coffee"])
    assert len(tea) == len(coffee) == 768
    assert tea != coffee
    assert await model.embed("nomic-embed-text", ["green tea"]) == [tea]
    assert await model.embed("nomic-embed-text", []) == []


async def test_a_model_that_is_there_is_shown(model: ChatModel) -> None:
    info = await model.show(GEMMA)
    assert info.name == GEMMA
    # OpenAI's API says neither; what is said is never a guess.
    assert info.capabilities in (frozenset(), frozenset({"completion", "vision", "tools", "thinking"}))
    assert info.context_length in (None, 262_144)


@pytest.mark.parametrize("ask", ["show", "chat", "embed"])
async def test_a_model_that_is_not_there_is_told_as_missing_whoever_asks(model: ChatModel, ask: str) -> None:
    with pytest.raises(ModelError, match="llama9") as caught:
        match ask:
            case "show":
                await model.show("llama9")
            case "chat":
                _ = [delta async for delta in model.chat("llama9", PARIS)]
            case _:
                await model.embed("llama9", ["a"])
    assert caught.value.kind == "model_missing"
    assert classify(caught.value) is ErrorClass.PERMANENT


SCHEMA: Json = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [3]}},
    "required": ["score"],
    "additionalProperties": False,
}


async def test_a_reply_follows_the_schema_it_was_asked_for_in(model: ChatModel, control: Control) -> None:
    assert json.loads(content(await chat(model, format=SCHEMA))) == {"score": 3}
    (request,) = await control.requests()
    assert request["format"] == SCHEMA


@pytest.mark.parametrize(
    ("text", "left_out", "form"),
    [("logprobs is not supported", "token probabilities", SCHEMA), ("response_format is unknown", "a form", None)],
)
async def test_what_a_server_refuses_is_asked_without_told_and_remembered(
    model: ChatModel, control: Control, text: str, left_out: str, form: Json | None
) -> None:
    await control.fault("status", status=400, body={"error": text})
    for _ in range(2):
        deltas = await chat(model, format=SCHEMA, logprobs=True)
        assert isinstance(deltas[0], Degraded) and left_out in deltas[0].note
        assert sum(isinstance(delta, Degraded) for delta in deltas) == 1
        assert isinstance(deltas[-1], Done)
    answered = [request for request in await control.requests() if request["status"] == 200]
    assert [request["format"] for request in answered] == [form, form]


async def test_a_refusal_that_asking_for_less_does_not_mend_is_the_outcome_and_not_remembered(
    model: ChatModel, control: Control
) -> None:
    for _ in range(3):
        await control.fault("status", status=400, body={"error": "no"})
    with pytest.raises(ModelError) as caught:
        await chat(model, format=SCHEMA, logprobs=True)
    assert caught.value.kind == "bad_request"
    assert json.loads(content(await chat(model, format=SCHEMA))) == {"score": 3}


async def test_nothing_is_left_out_of_a_call_that_wished_for_nothing(model: ChatModel, control: Control) -> None:
    await control.fault("status", status=400, body={"error": "logprobs is not supported"})
    with pytest.raises(ModelError):
        await chat(model)
    assert content(await chat(model)) == ANSWER


async def test_the_probabilities_of_a_reply_are_told_token_by_token_if_and_only_if_asked_for(model: ChatModel) -> None:
    scores = [delta for delta in await chat(model, logprobs=True) if isinstance(delta, TokenScores)]
    told = [token for score in scores for token in score.tokens]
    assert "".join(token.text for token in told) == ANSWER
    assert all(max(token.alternatives, key=token.alternatives.__getitem__) == token.text for token in told)
    assert not any(isinstance(delta, TokenScores) for delta in await chat(model))

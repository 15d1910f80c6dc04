"""A real llama.cpp, out of the package `xllamacpp`, spoken to by our own client: its manners, not our stand-in's."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import ModelError
from local.core.routing import Endpoint, Routing
from local.models.chat import ContentDelta, Degraded, Delta, Done, ProgressDelta, RestartDelta, ToolCall, whole_reply
from local.models.openai import OpenAIModel
from local.models.router import connect
from local.models.servers import ModelServerFailed, ServerSpec, serve
from tests.models.llama_cpp.real_llama import served, spec_of
from tests.models.llama_cpp.tiny_gguf import FOR_EVER, SENTENCE, write_tiny_gguf

SECONDS = 90.0
CONTEXT = 4096
MODEL = "tiny"
CLOCK = {
    "type": "function",
    "function": {
        "name": "clock",
        "description": "Tells the time.",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"type": "string"}, "hours": {"type": "integer"}},
            "required": ["zone", "hours"],
        },
    },
}
GRADE = {
    "type": "object",
    "properties": {"score": {"enum": [1, 2, 3, 4, 5]}, "why": {"enum": ["right", "wrong"]}},
    "required": ["score", "why"],
    "additionalProperties": False,
}
Until = Callable[[Callable[[], object]], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("llama")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerSpec]:
    """One server with two slots for all, run by our own `serve`."""
    spec = spec_of(
        write_tiny_gguf(folder / f"{MODEL}.gguf"),
        *("--ctx-size", str(CONTEXT), "--parallel", "2", "--threads", "1", "--embeddings", "--pooling", "mean"),
    )
    with served(spec, folder):
        yield spec


@pytest.fixture
async def model(server: ServerSpec) -> AsyncIterator[OpenAIModel]:
    limits = {"first_token_seconds": SECONDS, "between_tokens_seconds": SECONDS, "timeout_seconds": SECONDS}
    model = OpenAIModel(f"{server.url}/v1", **limits)
    yield model
    await model.close()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def told(model: OpenAIModel, *messages: dict[str, Any], **how: Any) -> list[Delta]:
    async with asyncio.timeout(SECONDS), aclosing(model.chat(MODEL, list(messages), **how)) as deltas:
        return [delta async for delta in deltas]


async def answering(deltas: AsyncGenerator[Delta, None]) -> Delta:
    """The first delta after the prompt was read."""
    return await anext(delta async for delta in deltas if not isinstance(delta, ProgressDelta))


async def test_it_tells_what_its_model_can_do(model: OpenAIModel) -> None:
    info = await model.show(MODEL)
    assert info.capabilities == {"completion", "tools"}
    assert info.context_length == CONTEXT


async def test_an_answer_comes_in_pieces_and_ends_with_what_it_has_cost(model: OpenAIModel) -> None:
    *pieces, done = await told(model, user("Who are you?"), options={"temperature": 0})
    texts = [piece.text for piece in pieces if isinstance(piece, ContentDelta)]
    assert "".join(texts) == SENTENCE and len(texts) > 3
    assert isinstance(done, Done) and done.reason == "stop"
    assert done.usage.completion_tokens == 7 and done.usage.prompt_tokens > 5


async def test_tools_are_called_as_their_schema_has_it_and_the_result_is_read(model: OpenAIModel) -> None:
    first = await told(model, user("What time is it?"), tools=[CLOCK], options={"temperature": 0})
    [call] = [delta for delta in first if isinstance(delta, ToolCall)]
    assert call.name == "clock" and call.arguments.keys() == {"zone", "hours"}
    assert isinstance(call.arguments["zone"], str) and isinstance(call.arguments["hours"], int)
    assert not [delta for delta in first if isinstance(delta, ContentDelta)]
    calls = [{"id": call.id, "function": {"name": "clock", "arguments": call.arguments}}]
    asked = {"role": "assistant", "content": "", "tool_calls": calls}
    result = {"role": "tool", "tool_name": "clock", "tool_call_id": call.id, "content": "noon"}
    second = await told(model, user("What time is it?"), asked, result, tools=[CLOCK], options={"temperature": 0})
    assert "".join(delta.text for delta in second if isinstance(delta, ContentDelta)) == SENTENCE


async def test_a_reply_in_json_follows_its_schema(model: OpenAIModel) -> None:
    for seed in range(3):
        said, _ = await whole_reply(
            model.chat(MODEL, [user(f"Grade {seed}")], format=GRADE, options={"temperature": 1, "seed": seed})
        )
        grade = json.loads(said)
        assert grade["score"] in (1, 2, 3, 4, 5) and grade["why"] in ("right", "wrong")


async def test_log_probabilities_come_with_the_tokens(model: OpenAIModel) -> None:
    deltas = await told(model, user("Who are you?"), logprobs=True, options={"temperature": 0})
    assert [note.note for note in deltas if isinstance(note, Degraded)] == []
    scored = [token for delta in deltas for token in getattr(delta, "tokens", ())]
    assert "".join(token.text for token in scored).strip() == SENTENCE


async def test_what_does_not_fit_into_the_context_is_known_as_that(model: OpenAIModel) -> None:
    with pytest.raises(ModelError) as caught:
        await told(model, user("x" * 2 * CONTEXT))
    assert caught.value.kind == "context_overflow"
    assert "".join(d.text for d in await told(model, user("Hi")) if isinstance(d, ContentDelta)) == SENTENCE


async def test_how_far_a_long_prompt_is_read_is_told_before_the_answer(model: OpenAIModel) -> None:
    deltas = await told(model, user("x" * 2000), think=True, options={"num_predict": 3})
    kinds = [type(delta) for delta in deltas]
    read = [delta for delta in deltas if isinstance(delta, ProgressDelta)]
    assert len(read) > 3 and ProgressDelta not in kinds[kinds.index(ContentDelta) :]
    assert [each.done for each in read] == sorted({each.done for each in read})
    done = deltas[-1]
    assert isinstance(done, Done) and done.reason == "length" and done.usage.completion_tokens == 3
    assert {each.total for each in read} == {done.usage.prompt_tokens}
    assert [delta.note for delta in deltas if isinstance(delta, Degraded)] == [
        f"{MODEL} cannot think aloud; it answers without"
    ]


@pytest.mark.thorough  # two starts of a server; test_router.py has one that dies in the middle of an answer
async def test_an_answer_whose_server_is_restarted_begins_again_and_ends(tmp_path: Path) -> None:
    spec = spec_of(write_tiny_gguf(tmp_path / f"{MODEL}.gguf"), "--ctx-size", "512", "--threads", "1")
    router = connect(Routing.to_one("llama", Endpoint(kind="openai", url=f"{spec.url}/v1")), timeout_seconds=SECONDS)
    deltas: list[Delta] = []
    with ExitStack() as running:
        await asyncio.to_thread(running.enter_context, served(spec, tmp_path))
        options = {"temperature": 0, "num_predict": 300}
        async with asyncio.timeout(SECONDS), aclosing(router.chat(MODEL, [user(FOR_EVER)], options=options)) as stream:
            async for delta in stream:
                if isinstance(delta, ContentDelta) and not any(isinstance(each, ContentDelta) for each in deltas):
                    await asyncio.to_thread(running.close)
                    await asyncio.to_thread(running.enter_context, served(spec, tmp_path))
                deltas.append(delta)
    await router.close()
    kinds = [type(delta) for delta in deltas]
    assert kinds.count(RestartDelta) == 1 and kinds[-1] is Done
    assert ContentDelta in kinds[kinds.index(RestartDelta) :]


async def test_two_are_served_at_once(model: OpenAIModel, server: ServerSpec, folder: Path, until: Until) -> None:
    log = folder / f"{server.name}.log"
    begin = len(log.read_text())

    def steps() -> list[str]:
        """What was done for the two: the test before may still have one that ends."""
        found = re.findall(r" (launch_slot_|release): id +\d+ \| task (\d+)", log.read_text()[begin:])
        ours = [task for step, task in found if step == "launch_slot_"]
        return [step for step, task in found if task in ours]

    one, two = model.chat(MODEL, [user(FOR_EVER)]), model.chat(MODEL, [user(FOR_EVER)])
    async with aclosing(one), aclosing(two):
        assert all([isinstance(await answering(each), ContentDelta) for each in (one, two)])
    await until(lambda: len(steps()) == 4)
    assert steps() == ["launch_slot_", "launch_slot_", "release", "release"]


async def test_what_nobody_listens_to_any_more_is_stopped(
    model: OpenAIModel, server: ServerSpec, folder: Path, until: Until
) -> None:
    log = folder / f"{server.name}.log"
    before = log.read_text().count("cancel task")
    async with aclosing(model.chat(MODEL, [user(FOR_EVER)])) as deltas:
        assert isinstance(await answering(deltas), ContentDelta)
    await until(lambda: log.read_text().count("cancel task") > before)


async def test_texts_become_vectors(model: OpenAIModel) -> None:
    one, same, other = await model.embed(MODEL, ["a cat", "a cat", "xyz"])
    assert len(one) == 512 and math.isclose(sum(number * number for number in one), 1, rel_tol=1e-3)
    assert one == pytest.approx(same, abs=1e-5) and one != pytest.approx(other, abs=1e-2)


async def test_nobody_reads_what_others_have_asked_and_no_page_may_call_it(server: ServerSpec) -> None:
    import httpx

    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        assert (await client.get("/slots")).status_code == 501
        allowed = (await client.get("/v1/models", headers={"Origin": "http://elsewhere.example"})).headers
    assert allowed["access-control-allow-origin"] == server.url


@pytest.mark.parametrize(
    ("args", "says"), [((), "cannot load .*broken.gguf: is it a whole GGUF"), (("--frob",), "No such option: --frob")]
)
async def test_why_it_cannot_serve_is_told(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and nothing else")
    with pytest.raises(ModelServerFailed, match=says):
        await serve(spec_of(broken, *args), tmp_path, asyncio.Event(), lambda: None)

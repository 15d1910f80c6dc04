"""A chain of models as the agents see it: one `ChatModel`."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from local.core.errors import ModelBusy, ModelError
from local.models.chat import (
    AwayDelta,
    ChatModel,
    ContentDelta,
    Degraded,
    Delta,
    Done,
    Json,
    ModelInfo,
    RestartDelta,
    ThinkingDelta,
    Usage,
)
from local.models.router import Attempt, Attempts, FallbackPolicy, NoModelLeft, Pauses, Router, Target

HELLO: list[Json] = [{"role": "user", "content": "Hello"}]
PICTURE: list[Json] = [{"role": "user", "content": "What is this?", "images": ["iVBOR"]}]
MISSING = ModelError("it is not pulled", kind="model_missing")
DOWN = ModelError("it is down", kind="unreachable")
CUT = ModelError("it was cut off", kind="stream_cut")


class Scripted:
    """A server whose answers are given: deltas to say, errors to raise."""

    def __init__(self, *capabilities: str) -> None:
        self.answers: deque[list[Delta | ModelError]] = deque()
        self.capabilities = frozenset(capabilities)
        self.asked: list[tuple[str, list[str]]] = []
        self.shown = 0
        self.embeds: deque[list[list[float]] | ModelError] = deque()
        self.is_closed = self.was_left = False
        self.problem: ModelError | None = None

    def will(self, *items: Delta | ModelError) -> Scripted:
        self.answers.append(list(items))
        return self

    def will_say(self, text: str) -> Scripted:
        return self.will(ContentDelta(text), Done(Usage()))

    async def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        self.asked.append((model, [tool["function"]["name"] for tool in tools]))
        try:
            for item in self.answers.popleft():
                if isinstance(item, ModelError):
                    raise item
                yield item
        except GeneratorExit:
            self.was_left = True
            raise

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append((model, []))
        outcome = self.embeds.popleft()
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def show(self, model: str) -> ModelInfo:
        self.shown += 1
        if self.problem:
            raise self.problem
        return ModelInfo(model, self.capabilities)

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        if self.problem:
            raise self.problem
        self.asked.append((model, [f"load {dict(options)}"]))

    async def close(self) -> None:
        self.is_closed = True


class Stage:
    """A router over `small` at home and `large` in the cloud; waiting takes no time."""

    def __init__(self) -> None:
        self.home, self.cloud = Scripted("completion", "tools"), Scripted()
        self.targets = [Target("ollama/small:4b", "small:4b", self.home), Target("cloud/large", "large", self.cloud)]
        self.waits: list[float] = []
        self.now = 0.0

    def router(self, **policy: Any) -> Router:
        return Router(
            lambda _: self.targets,
            self._close,
            policy=FallbackPolicy(**policy),
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def _close(self) -> None:
        await self.home.close()


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def ask(router: ChatModel, messages: list[Json] = HELLO, **how: Any) -> list[Delta]:
    return [delta async for delta in router.chat("small", messages, **how)]


def said(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))


def notes(deltas: list[Delta]) -> list[str]:
    return [delta.note for delta in deltas if isinstance(delta, Degraded)]


def tool(name: str) -> Json:
    return {"type": "function", "function": {"name": name, "description": "", "parameters": {}}}


async def test_the_first_model_answers_and_nobody_hears_of_the_others(stage: Stage) -> None:
    stage.home.will_say("Hi")
    deltas = await ask(stage.router())
    assert (said(deltas), notes(deltas), stage.cloud.asked) == ("Hi", [], [])


async def test_when_it_cannot_the_next_one_answers_and_the_user_is_told(stage: Stage) -> None:
    stage.home.will(MISSING)
    stage.cloud.will_say("Hi")
    deltas = await ask(stage.router())
    assert said(deltas) == "Hi"
    assert notes(deltas) == ["ollama/small:4b could not answer (it is not pulled), so cloud/large was asked"]
    assert stage.cloud.asked[0][0] == "large"


async def test_a_passing_failure_is_waited_out_in_silence(stage: Stage) -> None:
    stage.home.will(DOWN).will(DOWN).will_say("Hi")
    deltas = await ask(stage.router())
    assert (said(deltas), notes(deltas), stage.waits) == ("Hi", [], [0.5, 1.0])


async def test_a_model_that_is_away_is_waited_for_and_that_is_told_at_once_and_once(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    for _ in range(5):
        stage.home.will(DOWN)
    stage.home.will_say("Hi")
    async with aclosing(stage.router().chat("small", HELLO)) as stream:
        first = await anext(stream)
        assert isinstance(first, AwayDelta) and stage.waits == [0.5, 1.0]
        rest = [delta async for delta in stream]
    assert first.note == "the model is away and is waited for, at most 30 s: it is down"
    assert (said(rest), notes(rest), stage.waits) == ("Hi", [], [0.5, 1.0, 2.0, 4.0, 5.0])


async def test_a_model_that_stays_away_is_the_outcome_when_the_time_is_over(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    for _ in range(20):
        stage.home.will(DOWN)
    with pytest.raises(ModelError, match="it is down"):
        await ask(stage.router())
    assert 20 < stage.now <= 30


async def test_nobody_waits_for_vectors(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    stage.home.embeds.extend([DOWN] * 20)
    with pytest.raises(ModelError, match="it is down"):
        await stage.router().embed("small", ["text"])
    assert stage.now == 1.5


async def test_a_server_that_says_when_is_asked_then(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    stage.home.will(ModelBusy("slow down", kind="rate_limit", status=429, retry_after=9)).will_say("Hi")
    assert said(await ask(stage.router())) == "Hi"
    assert stage.waits == [9]


@pytest.mark.parametrize("first", [ContentDelta("Par"), ThinkingDelta("hm")])
@pytest.mark.parametrize("kind", ["stream_cut", "unreachable", "server_error"])
async def test_an_answer_whose_server_dies_is_begun_again_and_that_is_said_first(
    stage: Stage, first: Delta, kind: str
) -> None:
    stage.targets = stage.targets[:1]
    stage.home.will(first, ModelError("it died", kind=kind)).will(ContentDelta("Paris"), Done(Usage()))
    heard = await ask(stage.router())
    note = "ollama/small:4b stopped in the middle of an answer, which was begun again: it died"
    assert heard == [first, RestartDelta(note), ContentDelta("Paris"), Done(Usage())]
    assert stage.waits == [0.5]


async def test_an_answer_that_is_cut_off_again_and_again_fails_in_time(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    for _ in range(20):
        stage.home.will(ContentDelta("Par"), CUT)
    heard = []
    with pytest.raises(ModelError) as caught:
        async for delta in stage.router().chat("small", HELLO):
            heard.append(delta)
    assert caught.value is CUT
    assert 20 < stage.now <= 30
    assert sum(isinstance(delta, RestartDelta) for delta in heard) == len(stage.home.asked) - 1


async def test_an_answer_that_is_cut_off_when_no_more_may_be_waited_is_not_begun_again(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    tries = Attempts(["a"], FallbackPolicy(max_wait_seconds=30), Pauses(), 0.0)
    assert tries.after_a_beginning(CUT, 100.0) == Attempt("a", 0.5)
    assert tries.after_a_beginning(CUT, 130.5) is None


@pytest.mark.parametrize("first", [ContentDelta("Par"), ThinkingDelta("hm")])
@pytest.mark.parametrize("kind", ["filtered", "timeout", "bad_stream"])
async def test_any_other_failure_of_an_answer_that_has_begun_is_the_outcome(
    stage: Stage, first: Delta, kind: str
) -> None:
    stage.home.will(first, ModelError("it is down", kind=kind))
    heard = []
    with pytest.raises(ModelError, match="it is down"):
        async for delta in stage.router().chat("small", HELLO):
            heard.append(delta)
    assert heard == [first]
    assert stage.cloud.asked == []


async def test_what_was_left_out_of_a_request_is_no_answer_yet(stage: Stage) -> None:
    stage.home.will(Degraded("it cannot think"), DOWN).will_say("Hi")
    assert said(await ask(stage.router())) == "Hi"


async def test_one_model_that_fails_fails_in_its_own_words(stage: Stage) -> None:
    stage.targets = stage.targets[:1]
    stage.home.will(MISSING)
    with pytest.raises(ModelError) as caught:
        await ask(stage.router())
    assert caught.value is MISSING


async def test_when_all_fail_each_reason_is_told(stage: Stage) -> None:
    stage.home.will(MISSING)
    stage.cloud.will(ModelError("no credit", kind="quota"))
    with pytest.raises(NoModelLeft) as caught:
        await ask(stage.router())
    expected = "none of the models could answer: ollama/small:4b: it is not pulled; cloud/large: no credit"
    assert (str(caught.value), caught.value.kind) == (expected, "quota")


async def test_an_overflow_reaches_the_agent_as_such(stage: Stage) -> None:
    stage.home.will(ModelError("too long", kind="context_overflow"))
    with pytest.raises(ModelError) as caught:
        await ask(stage.router())
    assert caught.value.kind == "context_overflow"


async def test_a_model_that_failed_is_passed_over_by_the_next_calls(stage: Stage) -> None:
    router = stage.router(max_retries=0)
    stage.home.will(DOWN)
    stage.cloud.will_say("one").will_say("two")
    await ask(router)
    deltas = await ask(router)
    assert (said(deltas), len(stage.home.asked)) == ("two", 1)
    stage.now += 60
    stage.home.will_say("back")
    assert said(await ask(router)) == "back"


async def test_closing_the_stream_closes_the_models(stage: Stage) -> None:
    stage.home.will_say("Hi")
    async with aclosing(stage.router().chat("small", HELLO)) as stream:
        await anext(stream)
    assert stage.home.was_left


async def test_a_picture_goes_to_a_model_that_can_see(stage: Stage) -> None:
    stage.cloud.will_say("A cat")
    deltas = await ask(stage.router(), PICTURE)
    assert (said(deltas), stage.home.asked) == ("A cat", [])
    assert "cannot look at pictures" in notes(deltas)[0]
    stage.home.capabilities |= {"vision"}
    stage.home.will_say("A dog")
    assert said(await ask(stage.router(), PICTURE)) == "A dog"


async def test_what_a_model_can_do_is_asked_once_and_again_after_a_failure(stage: Stage) -> None:
    router = stage.router()
    for _ in range(2):
        assert (await router.show("small")).name == "small:4b"
    assert stage.home.shown == 1
    stage.home.will(MISSING)
    stage.cloud.will_say("Hi")
    await ask(router)
    await router.show("small")
    assert stage.home.shown == 2


async def test_who_is_not_there_is_passed_over_when_asked_what_it_can_do(stage: Stage) -> None:
    stage.home.problem = MISSING
    assert (await stage.router().show("small")).name == "large"
    stage.cloud.problem = DOWN
    with pytest.raises(NoModelLeft, match="it is not pulled; cloud/large: it is down"):
        await stage.router().show("small")


async def test_vectors_come_from_one_model_only_though_from_any_server_of_it(stage: Stage) -> None:
    stage.home.embeds.append(MISSING)
    with pytest.raises(ModelError, match="not pulled"):
        await stage.router().embed("small", ["text"])
    assert stage.cloud.asked == []
    stage.targets.append(Target("box/small:4b", "small:4b", stage.cloud))
    stage.home.embeds.append(MISSING)
    stage.cloud.embeds.append([[1.0]])
    assert await stage.router().embed("small", ["text"]) == [[1.0]]


async def test_closing_it_closes_its_clients(stage: Stage) -> None:
    await stage.router().close()
    assert stage.home.is_closed

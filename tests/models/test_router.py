"""A chain of models as the agents see it: one `ChatModel`. Whom it asks, when it waits, and what it tells."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from local.core.errors import ConfigError, ModelBusy, ModelError
from local.core.routing import Endpoint, ModelsConfig, Routing
from local.models import settings as model_settings
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
from local.models.client import FirstTokenLimit
from local.models.router import Attempt, Attempts, FallbackPolicy, NoModelLeft, Pauses, Router, Target, connect
from local.models.settings import cannot_see
from tests.models.wires import OLLAMA, OPENAI, ScriptedServer

A, B, C = "ollama/a", "cloud/b", "box/c"


def fault(kind: str) -> ModelError:
    return ModelError(kind, kind=kind)


def busy(kind: str, retry_after: float | None = None) -> ModelBusy:
    return ModelBusy(kind, kind=kind, status=429, retry_after=retry_after)


def attempts(*targets: str, pauses: Pauses | None = None, now: float = 0.0, **policy: object) -> Attempts:
    return Attempts(targets, FallbackPolicy(**policy), pauses or Pauses(), now)


def course(tries: Attempts, error: ModelError) -> list[tuple[str, float]]:
    """What happens when every attempt fails alike."""
    attempt: Attempt | None = tries.first(0.0)
    seen = []
    while attempt is not None:
        seen.append((attempt.target, attempt.wait))
        attempt = tries.after(error, 0.0)
    return seen


@pytest.mark.parametrize("kind", ["bad_stream", "server_error", "never heard of"])
def test_a_failure_that_may_pass_is_tried_again_later_and_later_and_then_elsewhere(kind: str) -> None:
    assert course(attempts(A, B), fault(kind)) == [(A, 0), (A, 0.5), (A, 1), (B, 0), (B, 0.5), (B, 1)]


@pytest.mark.parametrize("kind", ["model_missing", "unauthorised", "out_of_memory", "bad_request", "timeout"])
def test_a_failure_that_stays_or_takes_long_leads_elsewhere_at_once(kind: str) -> None:
    assert course(attempts(A, B), fault(kind)) == [(A, 0), (B, 0)]


def test_what_does_not_fit_the_context_is_left_to_the_caller_who_can_shorten_it() -> None:
    assert course(attempts(A, B), fault("context_overflow")) == [(A, 0)]


def test_a_rate_limit_leads_to_the_next_model_at_once() -> None:
    assert course(attempts(A, B, max_retries=0), busy("rate_limit", 20)) == [(A, 0), (B, 0)]


def test_the_last_model_that_limits_is_waited_for_as_long_as_it_asks() -> None:
    assert course(attempts(A, max_retries=1), busy("rate_limit", 7)) == [(A, 0), (A, 7)]
    assert course(attempts(A, max_retries=2), busy("rate_limit")) == [(A, 0), (A, 0.5), (A, 1)]


def test_nobody_waits_longer_than_allowed_in_all() -> None:
    assert course(attempts(A, max_wait_seconds=30), busy("rate_limit", 31)) == [(A, 0)]
    assert course(attempts(A, max_retries=9, max_wait_seconds=20), busy("rate_limit", 7)) == [(A, 0), (A, 7), (A, 7)]
    assert course(attempts(A, B, max_wait_seconds=20), busy("overloaded", 60)) == [(A, 0), (B, 0)]


def test_a_busy_server_is_tried_again_when_it_wishes_and_then_elsewhere() -> None:
    tries = attempts(A, B, max_retries=1, max_wait_seconds=8)
    assert course(tries, busy("overloaded", 3)) == [(A, 0), (A, 3), (B, 0), (B, 3)]


@pytest.mark.parametrize("kind", ["unreachable", "stream_cut", "overloaded"])
def test_those_that_are_away_are_asked_again_in_turn_for_as_long_as_is_allowed(kind: str) -> None:
    seen = course(attempts(A, B, max_wait_seconds=20), fault(kind))
    assert seen[:6] == [(A, 0), (A, 0.5), (A, 1), (B, 0), (B, 0.5), (B, 1)]
    assert seen[6:] == [(A, 2), (B, 4), (A, 5), (B, 5)]


def test_the_time_that_a_server_takes_to_be_away_counts_too() -> None:
    tries = attempts(A, max_retries=1)
    assert tries.after(fault("unreachable"), 100.0) == Attempt(A, 0.5)
    assert tries.after(fault("unreachable"), 110.0) == Attempt(A, 1.0, is_return=True)
    assert tries.after(fault("unreachable"), 129.0) is None


def test_only_who_is_away_is_waited_for() -> None:
    tries = attempts(A, B, max_retries=1)
    assert tries.after(fault("unreachable"), 0.0) == Attempt(A, 0.5)
    assert tries.after(fault("unreachable"), 1.0) == Attempt(B)
    assert tries.after(fault("model_missing"), 1.0) == Attempt(A, 1.0, is_return=True)
    assert tries.after(fault("model_missing"), 2.0) is None


@pytest.mark.parametrize("policy", [{"max_retries": 0}, {"waits_for_return": False}])
def test_who_is_away_is_not_waited_for_against_the_settings(policy: dict[str, object]) -> None:
    seen = course(attempts(A, **policy), fault("unreachable"))
    assert sum(wait for _, wait in seen) <= 1.5


def test_fallbacks_can_be_turned_off_each_for_itself() -> None:
    assert course(attempts(A, B, fallback_on_error=False), fault("model_missing")) == [(A, 0)]
    limited = attempts(A, B, fallback_on_rate_limit=False, max_retries=1)
    assert course(limited, busy("rate_limit", 5)) == [(A, 0), (A, 5)]
    assert course(attempts(A, B, fallback_on_error=False), busy("rate_limit", 99)) == [(A, 0), (B, 0)]


@pytest.mark.parametrize(("kind", "seconds"), [("server_error", 15.0), ("model_missing", 60.0)])
def test_a_model_that_failed_is_asked_last_for_a_while(kind: str, seconds: float) -> None:
    pauses = Pauses()
    attempts(A, B, pauses=pauses, max_retries=0).after(fault(kind), 0.0)
    assert attempts(A, C, pauses=pauses, now=seconds - 1).first(seconds - 1) == Attempt(C)
    assert attempts(A, C, pauses=pauses, now=seconds).first(seconds) == Attempt(A)


@pytest.mark.parametrize("kind", ["unsupported", "filtered", "bad_request"])
def test_a_failure_that_lies_in_what_was_asked_is_not_held_against_the_model(kind: str) -> None:
    pauses = Pauses()
    assert attempts(A, B, pauses=pauses).after(fault(kind), 0.0) == Attempt(B)
    assert attempts(A, B, pauses=pauses, now=1.0).first(1.0) == Attempt(A)


def test_a_later_call_respects_what_the_server_asked_of_an_earlier_one() -> None:
    pauses = Pauses()
    attempts(A, pauses=pauses).after(busy("rate_limit", 20), 100.0)
    assert attempts(A, pauses=pauses, now=105.0).first(105.0) == Attempt(A, 15.0)
    assert attempts(A, B, pauses=pauses, now=105.0).first(105.0) == Attempt(B)
    assert attempts(A, pauses=pauses, now=105.0, max_wait_seconds=2).first(105.0) == Attempt(A, 2)


def test_a_model_that_cannot_be_waited_for_is_passed_over() -> None:
    pauses = Pauses()
    tries = attempts(A, B, C, pauses=pauses)
    pauses.hold(B, 100.0)
    assert tries.after(fault("model_missing"), 0.0) == Attempt(C)


def test_an_answer_that_is_cut_off_when_no_more_may_be_waited_is_not_begun_again() -> None:
    tries = attempts(A)
    assert tries.after_a_beginning(fault("stream_cut"), 100.0) == Attempt(A, 0.5)
    assert tries.after_a_beginning(fault("stream_cut"), 130.5) is None


# One call through the chain

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
        in_words: bool = False,
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


async def test_what_was_left_out_of_a_request_is_no_answer_yet(stage: Stage) -> None:
    stage.home.will(Degraded("it cannot think"), DOWN).will_say("Hi")
    assert said(await ask(stage.router())) == "Hi"


async def test_when_all_fail_each_reason_is_told(stage: Stage) -> None:
    stage.home.will(MISSING)
    stage.cloud.will(ModelError("no credit", kind="quota"))
    with pytest.raises(NoModelLeft) as caught:
        await ask(stage.router())
    expected = "none of the models could answer: ollama/small:4b: it is not pulled; cloud/large: no credit"
    assert (str(caught.value), caught.value.kind) == (expected, "quota")


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


@pytest.mark.parametrize("kind", ["stream_cut", "unreachable", "server_error"])
async def test_an_answer_whose_server_dies_is_begun_again_and_that_is_said_first(stage: Stage, kind: str) -> None:
    stage.targets = stage.targets[:1]
    for first in (ContentDelta("Par"), ThinkingDelta("hm")):
        stage.home.will(first, ModelError("it died", kind=kind)).will(ContentDelta("Paris"), Done(Usage()))
        heard = await ask(stage.router())
        note = "ollama/small:4b stopped in the middle of an answer, which was begun again: it died"
        assert heard == [first, RestartDelta(note), ContentDelta("Paris"), Done(Usage())]


@pytest.mark.parametrize("kind", ["filtered", "timeout", "bad_stream"])
async def test_any_other_failure_of_an_answer_that_has_begun_is_the_outcome(stage: Stage, kind: str) -> None:
    stage.home.will(ContentDelta("Par"), ModelError("it is down", kind=kind))
    heard = []
    with pytest.raises(ModelError, match="it is down"):
        async for delta in stage.router().chat("small", HELLO):
            heard.append(delta)
    assert (heard, stage.cloud.asked) == ([ContentDelta("Par")], [])


# From the settings to models that answer

DOWN_URL = "http://127.0.0.1:1"
NOBODY = Endpoint(kind="ollama", url=DOWN_URL)


def routing(box: Endpoint, *chat: str, **settings: Any) -> Routing:
    """Nobody answers at the default server."""
    providers = {"ollama": {"kind": "ollama"}, "box": {"kind": "openai"}}
    given = {"providers": providers, "max_retries": 0, "roles": {"chat": chat}, **settings}
    return Routing(config=ModelsConfig(**given), endpoints={"ollama": NOBODY, "box": box}, default="ollama")


async def test_every_kind_of_server_answers_under_its_name_and_a_chain_goes_on(server: ScriptedServer) -> None:
    for wire, kind, path in ((OLLAMA, "ollama", ""), (OPENAI, "openai", "/v1")):
        server.says(wire, wire.stop(content="Hi"))
        box = Endpoint.model_validate({"kind": kind, "url": server.url + path})
        router = connect(routing(box, "ollama/gemma", "box/m"), timeout_seconds=20)
        assert said([delta async for delta in router.chat("box/m", HELLO)]) == "Hi"
        chained = [delta async for delta in router.chat("gemma", HELLO)]
        assert said(chained) == "Hi" and notes(chained)[0].endswith("so box/m was asked")
        with pytest.raises(ModelError, match="no Ollama server answers"):  # it is in no chain
            _ = [delta async for delta in router.chat("gemma4:31b", HELLO)]
        await router.close()


def test_a_chain_whose_key_is_missing_is_refused_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(os.environ, "BOX_KEY", raising=False)
    box = Endpoint(kind="openai", url="http://box/v1", api_key_variable="BOX_KEY")
    with pytest.raises(ConfigError, match="BOX_KEY is not set"):
        connect(routing(box, "box/x"), timeout_seconds=1)


async def test_a_model_is_loaded_by_the_first_server_that_can_with_its_window_and_kept(server: ScriptedServer) -> None:
    server.answers("/api/chat", {"done": True, "done_reason": "load"})
    providers = {"ollama": {"kind": "ollama"}, "box": {"kind": "ollama", "url": server.url}}
    for keep_alive in ("30m", -1):
        settings = {"providers": providers, "keep_alive": keep_alive}
        box = Endpoint(kind="ollama", url=server.url)
        router = connect(routing(box, "ollama/gemma", "box/small", **settings), timeout_seconds=20)
        await router.load("gemma", {"num_ctx": 2048})
        assert server.bodies("/api/chat")[-1] == {
            "model": "small", "messages": [], "options": {"num_ctx": 2048}, "stream": False, "keep_alive": keep_alive,
        }  # fmt: skip
        with pytest.raises(ModelError, match=r"127\.0\.0\.1:1"):
            await router.load("other", {})
        await router.close()
    in_memory = connect(Routing.to_one("box", Endpoint(kind="openai", url=f"{DOWN_URL}/v1")), timeout_seconds=20)
    await in_memory.load("tiny", {})  # such a server is not asked
    await in_memory.close()


# Pictures


async def test_the_error_for_pictures_names_models_that_can_see_or_one_to_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none() -> Sequence[str]:
        return []

    async def two() -> Sequence[str]:
        return ["ollama/llava:7b", "box/qwen-vl"]

    async def silent() -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(model_settings, "_LOOK_SECONDS", 0.01)
    assert "ollama/llava:7b, box/qwen-vl can" in str(await cannot_see("m", two))
    for others in (None, none, silent):
        error = await cannot_see("m", others)
        assert error.kind == "unsupported" and "model pull gemma4:12b" in str(error)
    router = connect(Routing.to_one("ollama", NOBODY), timeout_seconds=5)
    assert router.seeing is not None and await router.seeing() == []
    await router.close()


# How long a model may be silent before its first word


def used(**durations: float) -> Usage:
    return Usage(1000, 10, durations)


def test_the_limit_is_several_times_what_loading_and_reading_took_before_even_with_a_cached_prompt() -> None:
    limit = FirstTokenLimit()
    assert limit.seconds(1_000_000) == 0, "nothing is known yet"
    limit.learn(4_000, used(load=50.0, prompt_eval=40.0))
    assert (limit.seconds(0), limit.seconds(8_000)) == (4 * 50, 4 * (50 + 80))
    limit.learn(4_000, used(load=0.0, prompt_eval=0.1))  # out of the server's cache
    assert limit.seconds(4_000) > 4 * 85


def test_a_wait_in_vain_doubles_the_limit_until_a_call_succeeds() -> None:
    limit = FirstTokenLimit()
    limit.in_vain(120.0)
    assert limit.seconds(10) == 240
    limit.in_vain(3_000.0)
    assert limit.seconds(10) == 3_600, "never more than an hour"
    limit.learn(10, used())
    assert limit.seconds(10) == 0

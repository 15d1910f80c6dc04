"""Background calls in line for a model, users' turns ahead of them; with an arbiter, without one, with a new one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from agent_stage.served import Wire

from local.bus.bus import Bus
from local.bus.messages import ModelUsed
from local.core.errors import ModelError
from local.core.routing import Endpoint, ModelsConfig, Provider, Routing
from local.models import arbiter, leases
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ContentDelta, Delta, Done, Usage, whole_reply
from local.models.lease_messages import LeaseClaim, LeaseState
from local.models.leases import Leases
from tests.models.wires import ScriptedServer

SECONDS = 90.0


class Calls:
    """Background calls of one model, held up until told."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.cancelled: list[str] = []
        self.running = self.most = 0
        self.may_end = asyncio.Event()
        self.news = asyncio.Event()

    def named(self, name: str) -> Callable[[], Any]:
        async def call() -> str:
            self.began.append(name)
            self.running += 1
            self.most = max(self.most, self.running)
            self.news.set()
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            finally:
                self.running -= 1
                self.news.set()
            return f"{name} is done"

        return call

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not is_so():
                self.news.clear()
                await self.news.wait()


class Process:
    """A process that wants leases and can be killed."""

    def __init__(self, stage: Any, name: str) -> None:
        self.leases = Leases()
        self._wire = Wire(stage.hub)
        self._bus = Bus(name, self._wire)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[str]] = []

    async def start(self) -> Process:
        await self._stack.enter_async_context(self._bus)
        await self._bus.ready()
        await self._stack.enter_async_context(self.leases.are_open(self._bus))
        return self

    def call(self, calls: Calls, name: str) -> asyncio.Task[str]:
        self._tasks.append(asyncio.create_task(self.leases.in_background("gemma", name, calls.named(name))))
        return self._tasks[-1]

    def is_cut(self, is_cut: bool) -> None:
        self._wire.is_cut = is_cut

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()


Start = Callable[[str], Awaitable[Process]]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def start(stage: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(arbiter, "BEAT_SECONDS", 0.02)
    async with AsyncExitStack() as stack:

        async def start(name: str) -> Process:
            process = Process(stage, name)
            stack.push_async_callback(process.end)
            return await process.start()

        yield start


async def serve_arbiter(stage: Any, **settings: Any) -> Any:
    return await stage.serve(Arbiter(ArbiterConfig(**settings)))


@pytest.mark.parametrize("slots", [1, 2])
async def test_a_server_is_called_as_often_at_a_time_as_it_can_bear(
    stage: Any, start: Start, calls: Calls, slots: int
) -> None:
    await serve_arbiter(stage, slots_of={"default": slots})
    critic, memory = await start("critic"), await start("memory")
    tasks = [process.call(calls, f"call{number}") for number in range(2) for process in (critic, memory)]
    await calls.until(lambda: calls.running == slots)
    await stage.frontend.until(lambda: any(len(state.waiting) == 4 - slots for state in stage.frontend.of(LeaseState)))
    calls.may_end.set()
    await asyncio.gather(*tasks)
    assert calls.most == slots


async def test_a_users_turn_cancels_what_runs_and_it_is_called_again_after(
    stage: Any, start: Start, calls: Calls
) -> None:
    await serve_arbiter(stage)
    critic, generator = await start("critic"), await start("generator")
    graded, waiting = critic.call(calls, "grade"), critic.call(calls, "classify")
    await calls.until(lambda: calls.running == 1)
    with generator.leases.users_turn("gemma"):
        await calls.until(lambda: calls.cancelled == ["grade"])
        await stage.frontend.until(lambda: any(len(state.waiting) == 2 for state in stage.frontend.of(LeaseState)))
        assert calls.running == 0
    calls.may_end.set()
    assert await graded == "grade is done"
    assert await waiting == "classify is done"
    assert calls.began == ["grade", "grade", "classify"]


async def test_what_fails_or_is_given_up_leaves_its_place_to_the_next(stage: Any, start: Start, calls: Calls) -> None:
    async def fail() -> str:
        raise ModelError("no")

    await serve_arbiter(stage)
    critic = await start("critic")
    with pytest.raises(ModelError, match="no"):
        await critic.leases.in_background("gemma", "grade", fail)
    given_up = critic.call(calls, "grade")
    await calls.until(lambda: calls.running == 1)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    calls.may_end.set()
    assert await critic.call(calls, "next") == "next is done"


async def test_without_an_arbiter_users_go_on_at_once_and_background_calls_a_little_later(
    start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "ALONE_SECONDS", 0.05)
    critic = await start("critic")
    calls.may_end.set()
    with critic.leases.users_turn("gemma"):
        assert await critic.call(calls, "grade") == "grade is done"


async def test_when_the_arbiter_dies_who_waits_goes_on_and_a_new_one_takes_over(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "ALONE_SECONDS", 0.2)
    served = await serve_arbiter(stage)
    critic = await start("critic")
    tasks = [critic.call(calls, name) for name in ("grade", "classify")]
    await calls.until(lambda: calls.running == 1)
    await served.kill()
    await calls.until(lambda: calls.running == 2)
    await serve_arbiter(stage)
    await calls.until(lambda: calls.running == 1)
    calls.may_end.set()
    assert await asyncio.gather(*tasks) == ["grade is done", "classify is done"]


async def test_a_lease_ends_with_its_holders_process(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arbiter, "SILENT_SECONDS", 0.2)
    await serve_arbiter(stage)
    doomed, critic = await start("doomed"), await start("critic")
    doomed.call(calls, "lost")
    await calls.until(lambda: calls.began == ["lost"])
    critic.call(calls, "grade")
    with doomed.leases.users_turn("gemma"):
        doomed.is_cut(True)
        await calls.until(lambda: calls.began == ["lost", "grade"])


async def test_lost_messages_delay_a_lease_and_lose_none(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arbiter, "SILENT_SECONDS", 0.2)
    await serve_arbiter(stage)
    critic, generator = await start("critic"), await start("generator")
    generator.is_cut(True)
    with generator.leases.users_turn("gemma"):
        generator.is_cut(False)
        await stage.frontend.hears(LeaseClaim, turns=1)
        generator.is_cut(True)
    generator.is_cut(False)
    calls.may_end.set()
    async with asyncio.timeout(SECONDS):
        assert await critic.call(calls, "grade") == "grade is done"


async def test_a_turn_that_nobody_was_told_of_goes_before_who_comes_in_line(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "GRACE_SECONDS", 5.0)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 5.0)
    await serve_arbiter(stage)
    generator, critic = await start("generator"), await start("critic")
    with generator.leases.users_turn("gemma"):
        graded = critic.call(calls, "grade")
        await stage.frontend.until(
            lambda: any(state.turns and state.waiting for state in stage.frontend.of(LeaseState))
        )
        assert calls.began == []
    calls.may_end.set()
    assert await graded == "grade is done"


async def test_calls_of_one_purpose_hand_their_lease_on_without_a_word(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 5.0)
    await serve_arbiter(stage)
    critic = await start("critic")
    calls.may_end.set()
    await asyncio.gather(*(critic.call(calls, "grade") for _ in range(5)))
    assert await critic.call(calls, "grade") == "grade is done"
    await stage.frontend.until(lambda: any(not claim.leases for claim in stage.frontend.of(LeaseClaim)))
    assert calls.most == 1
    assert len(stage.frontend.of(LeaseClaim)) == 2


async def test_a_lease_is_not_handed_on_for_ever_while_others_wait(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "TENURE_SECONDS", 0.0)
    await serve_arbiter(stage)
    critic, memory = await start("critic"), await start("memory")
    grades = [critic.call(calls, "grade")]
    await calls.until(lambda: calls.running == 1)
    classified = memory.call(calls, "classify")
    await stage.frontend.until(lambda: any(state.waiting for state in stage.frontend.of(LeaseState)))
    grades += [critic.call(calls, "grade") for _ in range(3)]
    calls.may_end.set()
    await asyncio.gather(*grades, classified)
    assert calls.began[1] == "classify"


LLAMA = Routing(
    config=ModelsConfig(
        providers={"llama": Provider(kind="llama_server", args=("--parallel", "1", "--cache-ram", "0"))}
    ),
    endpoints={"llama": Endpoint(kind="openai", url="http://127.0.0.1:1/v1", only_model="gemma")},
    default="llama",
)


async def test_where_a_call_would_evict_the_prefix_leases_wait_for_quiet_unless_a_user_has_ordered_them(
    stage: Any, start: Start, calls: Calls
) -> None:
    await stage.serve(Arbiter(ArbiterConfig(quiet_seconds=60), LLAMA))
    generator, critic = await start("generator"), await start("critic")
    for process in (generator, critic):
        process.leases._locate = LLAMA.locate
    calls.may_end.set()
    for turn in range(3):
        with generator.leases.users_turn("gemma"):
            await asyncio.sleep(0)
        critic.call(calls, "grade")
        await critic.call(calls, "schedule")
        assert calls.began == ["schedule"] * (turn + 1)


async def test_of_calls_for_one_purpose_the_newest_goes_first_and_ordered_ones_in_order(
    stage: Any, start: Start, calls: Calls
) -> None:
    await serve_arbiter(stage)
    critic, generator = await start("critic"), await start("generator")
    done: list[str] = []

    def asked(purpose: str, name: str) -> asyncio.Task[None]:
        async def call() -> None:
            done.append(name)

        task = asyncio.create_task(critic.leases.in_background("gemma", purpose, call))
        critic._tasks.append(task)  # type: ignore[arg-type]
        return task

    with generator.leases.users_turn("gemma"):
        tasks = [asked("grade", f"grade {number}") for number in range(3)]
        await stage.frontend.until(lambda: any(len(state.waiting) == 3 for state in stage.frontend.of(LeaseState)))
    await asyncio.gather(*tasks)
    assert done == ["grade 2", "grade 1", "grade 0"]
    done.clear()
    with generator.leases.users_turn("gemma"):
        tasks = [asked("schedule", f"job {number}") for number in range(3)]
        await stage.frontend.until(
            lambda: any("schedule" in str(state.waiting) for state in stage.frontend.of(LeaseState))
        )
    await asyncio.gather(*tasks)
    assert done == ["job 0", "job 1", "job 2"]


KEEPING = LLAMA.model_copy(update={"config": ModelsConfig(providers={"llama": Provider(kind="llama_server")})})


async def test_ten_minutes_with_a_server_that_has_no_arguments_of_the_owner(
    stage: Any, start: Start, calls: Calls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(arbiter, "ASK_AGAIN_SECONDS", 0.0)  # each claim is as one that comes a minute later
    monkeypatch.setattr(arbiter, "KEPT_SECONDS", 0.0)
    await stage.serve(Arbiter(ArbiterConfig(quiet_seconds=600), KEEPING))
    critic = await start("critic")
    critic.leases._locate = KEEPING.locate
    calls.may_end.set()
    for _ in range(10):
        assert await critic.call(calls, "grade") == "grade is done"
    gc.collect()  # a task that has failed is reported when nobody holds it any more
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


class OneInMemory:
    """A server with memory for one model, as Ollama on a small machine; `loads` are the models that it has loaded."""

    def __init__(self, server: ScriptedServer) -> None:
        self.loaded, self.loads, self._server = "", list[str](), server

    def call(self, model: str) -> Callable[[int], AsyncGenerator[Delta, None]]:
        async def ask(most: int) -> AsyncGenerator[Delta, None]:
            if model != self.loaded:
                self.loaded = model
                self.loads.append(model)
                self._server.answers("/api/ps", {"models": [{"model": f"{model}:latest"}]})
            yield ContentDelta("Yes.")
            yield Done(Usage(5, most), model=model)

        return ask


async def test_after_background_work_of_another_model_no_question_waits_for_its_model_to_be_loaded(
    stage: Any, start: Start, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = OneInMemory(server)
    routing = Routing.to_one("ollama", Endpoint(kind="ollama", url=server.url))
    monkeypatch.setattr(arbiter, "SETTLE_SECONDS", 0.0)
    await stage.serve(Arbiter(ArbiterConfig(quiet_seconds=0.2), routing))
    generator, critic = await start("generator"), await start("critic")
    for process in (generator, critic):
        process.leases._locate = routing.locate
    for turn in range(2):
        with generator.leases.users_turn("gemma"):
            await whole_reply(memory.call("gemma")(100))
        assert memory.loads == ["gemma", "judge"] * turn + ["gemma"]  # it was there, but for the first question
        generator.leases.asked("gemma", memory.call("gemma"))
        await critic.leases.in_background("judge", "critic", lambda: whole_reply(memory.call("judge")(100)))
        await stage.frontend.hears(ModelUsed, turn + 1, purpose="restore", completion_tokens=1)
        assert memory.loaded == "gemma"

"""The supervisor with real processes: what they do is in targets/supervised.py."""

import asyncio
import os
import re
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from local.core.errors import ConfigError, StartFailed, StartInterrupted, UnknownParticipant
from local.runtime import supervisor as child_monitor
from local.runtime import supervisor as restart_policy
from local.runtime import template
from local.runtime.child import ChildSpec
from local.runtime.supervisor import ChildPhase, ChildState, CpuStarvation, ProcessorStatus, Supervisor

pytestmark = pytest.mark.usefixtures("targets_on_the_path")
PATIENCE = 90.0


def spec(name: str, function: str = "serve", *args: object, required: bool = True, ready: float = 20.0) -> ChildSpec:
    return ChildSpec(name, "tool", f"supervised:{function}", args, ready, required)


@asynccontextmanager
async def running(*stages: ChildSpec | tuple[ChildSpec, ...], **options: float) -> AsyncIterator[Supervisor]:
    """A supervisor whose watchdog is too patient for a busy machine to wake it, unless the test wants it."""
    async with Supervisor(stages, **({"hang_seconds": PATIENCE} | options)) as supervisor:  # type: ignore[arg-type]
        yield supervisor


def child(supervisor: Supervisor, name: str) -> ChildState:
    return next(child for child in supervisor.children if child.name == name)


def process(supervisor: Supervisor, name: str) -> psutil.Process:
    pid = child(supervisor, name).pid
    assert pid is not None
    return psutil.Process(pid)


async def come_back(supervisor: Supervisor, name: str, restarts: int = 1) -> ChildState:
    """Wait until the child is ready again after so many restarts."""
    async with asyncio.timeout(PATIENCE):
        await supervisor.wait_until(
            lambda _: child(supervisor, name).restarts >= restarts and child(supervisor, name).state is ChildPhase.READY
        )
    return child(supervisor, name)


async def test_each_stage_is_ready_before_the_next_starts_and_all_stop_in_reverse() -> None:
    told: list[tuple[str, ChildPhase]] = []
    stages: list[ChildSpec | list[ChildSpec]] = [
        spec("proxy"),
        [replace(spec("journal"), outlives=True), spec("memory"), spec("critic")],
    ]
    async with Supervisor(stages, on_change=lambda child: told.append((child.name, child.state))) as supervisor:
        processes = [process(supervisor, name) for name in ("proxy", "journal", "memory", "critic")]
    assert told.index(("proxy", ChildPhase.READY)) < told.index(("memory", ChildPhase.STARTING))
    ends = [told.index(("journal", state)) for state in (ChildPhase.STOPPING, ChildPhase.STOPPED)]
    assert all(told.index((name, ChildPhase.STOPPED)) < ends[0] for name in ("memory", "critic"))
    assert ends[1] < told.index(("proxy", ChildPhase.STOPPING))
    assert psutil.wait_procs(processes, PATIENCE)[1] == []  # a template that told of an end too late was killed itself


async def test_a_signal_that_children_get_too_changes_nothing_about_the_order_of_their_end(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """And a child that is stopped may be silent for longer than one that serves."""
    told: list[tuple[str, ChildPhase]] = []
    stages = [[replace(spec("journal"), outlives=True), spec("memory", "slow_goodbye", pair[1])]]
    async with Supervisor(
        stages, hang_seconds=0.3, on_change=lambda child: told.append((child.name, child.state))
    ) as supervisor:
        for name in ("journal", "memory"):
            process(supervisor, name).send_signal(signal.SIGTERM)
        supervisor.wind_down()
    assert told[-2:] == [("journal", ChildPhase.STOPPING), ("journal", ChildPhase.STOPPED)]
    assert pair[0].recv(16) == b"goodbye"


async def test_a_child_that_is_killed_again_and_again_is_given_up_and_the_rest_keeps_running() -> None:
    async with running(spec("proxy"), spec("critic")) as supervisor:
        for deaths in range(4):
            process(supervisor, "critic").send_signal(signal.SIGABRT)
            await come_back(supervisor, "critic", deaths + 1)
        process(supervisor, "critic").send_signal(signal.SIGABRT)
        given_up = supervisor.wait_until(lambda _: child(supervisor, "critic").state is ChildPhase.FAILED)
        await asyncio.wait_for(given_up, PATIENCE)
        failed = child(supervisor, "critic")

        assert (failed.name, failed.state, failed.pid) == ("critic", ChildPhase.FAILED, None)
        assert failed.detail == "killed by SIGABRT"
        assert failed.retry_at is not None
        assert child(supervisor, "proxy").state is ChildPhase.READY

        await supervisor.start("critic")
        assert (child(supervisor, "critic").state, child(supervisor, "critic").restarts) == (ChildPhase.READY, 0)


async def test_the_start_fails_without_a_required_child_and_leaves_nothing_running() -> None:
    told: list[ChildState] = []
    with pytest.raises(StartFailed, match="critic could not be started: exit status 7"):
        async with Supervisor([spec("proxy"), spec("critic", "exit_at_once")], on_change=told.append):
            pytest.fail("must not be entered")

    assert told[-1].name == "proxy"
    assert told[-1].state is ChildPhase.STOPPED


async def test_the_start_goes_on_without_a_child_that_is_not_required_once_it_has_died(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    pair[0].send(b"!")
    async with running(spec("critic", "die_once", pair[1], required=False), spec("memory")) as supervisor:
        assert child(supervisor, "critic").state is ChildPhase.STARTING
        assert child(supervisor, "memory").state is ChildPhase.READY


async def test_a_child_that_was_given_up_is_tried_again_until_its_trouble_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restart_policy, "FIRST_RETRY", 0.2)
    told: list[ChildState] = []
    trouble = tmp_path / "trouble"
    trouble.touch()
    async with Supervisor(
        [spec("critic", "fail_while_there_is", str(trouble), required=False)], on_change=told.append
    ) as supervisor:
        async with asyncio.timeout(PATIENCE):
            await supervisor.wait_until(lambda children: children[0].restarts == 6)
        trouble.unlink()
        healed = await come_back(supervisor, "critic", 6)

    states = [state.state for state in told]
    given_up, ready = states.index(ChildPhase.FAILED), states.index(ChildPhase.READY)
    assert set(states[given_up:ready]) == {ChildPhase.FAILED}, "nobody is to wait for it while it is tried"
    assert healed.detail == "exit status 1: there is trouble"
    assert "critic failed too often (exit status 1) and is tried again in 0.4 s" in caplog.text


async def test_a_child_that_is_killed_before_it_is_ready_has_said_what_it_waits_for() -> None:
    with pytest.raises(StartFailed, match=r"not ready after [\d.]+ s: waiting for room"):
        async with running(spec("critic", "wait_for_room", ready=0.5), hang_seconds=0.5):
            pytest.fail("must not be entered")


async def test_a_child_that_is_started_again_may_wait_for_as_long_as_it_says_for_what(tmp_path: Path) -> None:
    told: list[str] = []
    waits = spec("critic", "wait_for_room_once_more", str(tmp_path / "marker"), ready=0.2, required=False)
    async with Supervisor([waits], on_change=lambda child: told.append(child.detail)) as supervisor:
        healed = await come_back(supervisor, "critic")
    assert (healed.restarts, healed.detail) == (1, "exit status 7")
    assert "waiting for room" in told


@pytest.mark.parametrize("target", ["supervised:misconfigured", "supervised:newer_store", "nowhere:main"])
async def test_what_starting_again_cannot_mend_is_given_up_at_once(target: str) -> None:
    async with running(ChildSpec("critic", "agent", target, required=False)) as supervisor:
        async with asyncio.timeout(PATIENCE):
            await supervisor.wait_until(lambda _: child(supervisor, "critic").state is ChildPhase.FAILED)

        critic = child(supervisor, "critic")
        assert (critic.restarts, critic.detail[:15]) == (0, "exit status 2: ")


async def test_arguments_that_cannot_be_sent_to_a_child_are_reported_as_its_death() -> None:
    with pytest.raises(StartFailed, match=r"cannot start a process: .*lambda"):
        async with running(spec("critic", "serve", lambda: None)):
            pytest.fail("must not be entered")


def seconds_silent(child: ChildState) -> float:
    """For how long a child was silent that was killed for it."""
    told = re.fullmatch(r"silent for (\d+\.\d) s", child.detail)
    assert told is not None, child.detail
    return float(told[1])


async def test_a_stopped_child_is_killed_for_its_silence_and_comes_back() -> None:
    async with running(spec("critic"), hang_seconds=0.5) as supervisor:
        process(supervisor, "critic").suspend()

        assert seconds_silent(await come_back(supervisor, "critic")) >= 0.5


async def test_a_child_that_others_keep_from_the_processors_is_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    is_starved, excused = True, asyncio.Queue[bool]()

    class Told(CpuStarvation):
        def __init__(self) -> None:
            super().__init__(lambda pid: ProcessorStatus(0.0, time.monotonic() if is_starved else 0.0))

        def excuses(self, now: float) -> bool:
            excused.put_nowait(super().excuses(now))
            return is_starved

    monkeypatch.setattr(child_monitor, "CpuStarvation", Told)
    async with running(spec("critic"), hang_seconds=0.5) as supervisor:
        critic, before = process(supervisor, "critic"), supervisor.children
        critic.suspend()
        assert [await excused.get() for _ in range(3)] == [True] * 3
        assert supervisor.children == before
        is_starved = False
        assert seconds_silent(await come_back(supervisor, "critic")) >= 1.2  # 0.5 s, and half of that for each excuse


async def test_the_death_of_a_child_is_seen_although_its_own_child_lives_on(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    async with running(spec("fetch", "leave_a_grandchild", pair[1])) as supervisor:
        grandchildren = [int(pair[0].recv(16))]
        process(supervisor, "fetch").kill()
        await come_back(supervisor, "fetch")
        grandchildren.append(int(pair[0].recv(16)))
        for pid in grandchildren:
            os.kill(pid, signal.SIGKILL)


async def test_a_child_that_is_stopped_while_it_is_forked_stops_too(caplog: pytest.LogCaptureFixture) -> None:
    async with running(spec("critic"), stop_seconds=5.0) as supervisor:
        await supervisor.stop("critic")
        starting = asyncio.create_task(supervisor.start("critic"))
        await supervisor.wait_until(lambda children: children[0].state is ChildPhase.STARTING)
        await supervisor.stop("critic")
        await starting

        assert supervisor.children[0].state is ChildPhase.STOPPED
        assert caplog.text == ""


async def test_a_child_that_does_not_stop_is_killed() -> None:
    async with running(spec("critic", "refuse_to_stop"), stop_seconds=0.2) as supervisor:
        stubborn = process(supervisor, "critic")
        await supervisor.restart("critic")

        assert not stubborn.is_running()
        assert child(supervisor, "critic").state is ChildPhase.READY


async def test_killing_the_template_harms_no_child_and_the_next_start_makes_a_new_one() -> None:
    async with running(spec("proxy"), spec("critic")) as supervisor:
        before = supervisor.children
        old_template = process(supervisor, "critic").parent()
        assert old_template is not None
        assert old_template.cmdline()[0] == "local2 template"
        old_template.kill()
        process(supervisor, "critic").kill()
        await come_back(supervisor, "critic")

        assert child(supervisor, "proxy") == before[0]
        assert process(supervisor, "proxy").is_running()
        new_template = process(supervisor, "critic").parent()
        assert new_template is not None
        assert new_template != old_template

        process(supervisor, "proxy").kill()
        assert (await come_back(supervisor, "proxy")).detail == "exit status unknown"


async def test_a_template_that_starts_nothing_is_killed_and_made_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(template, "START_SECONDS", 0.5)
    async with running(spec("proxy"), spec("critic")) as supervisor:
        frozen = process(supervisor, "critic").parent()
        assert frozen is not None
        await supervisor.stop("critic")
        frozen.suspend()
        await supervisor.start("critic")

        assert child(supervisor, "critic").state is ChildPhase.READY
        assert process(supervisor, "critic").parent() != frozen
        assert process(supervisor, "proxy").is_running()


async def test_a_template_that_does_not_see_a_child_end_is_killed_and_the_child_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(template, "REAP_SECONDS", 0.1)
    monkeypatch.setattr(template, "KILLED_SECONDS", 0.1)
    async with running(spec("critic")) as supervisor:
        frozen, critic = process(supervisor, "critic").parent(), process(supervisor, "critic")
        assert frozen is not None
        frozen.suspend()
        critic.kill()
        assert (await come_back(supervisor, "critic")).detail == "exit status unknown"

        assert process(supervisor, "critic").parent() != frozen


async def test_stopping_and_starting_again_by_name() -> None:
    async with running(spec("critic")) as supervisor:
        first = child(supervisor, "critic").pid
        await supervisor.stop("critic")
        await supervisor.stop("critic")
        assert (child(supervisor, "critic").state, child(supervisor, "critic").pid) == (ChildPhase.STOPPED, None)
        await supervisor.start("critic")
        assert child(supervisor, "critic").state is ChildPhase.READY
        assert child(supervisor, "critic").pid != first

        with pytest.raises(UnknownParticipant, match="there is no participant critik; there are critic"):
            await supervisor.stop("critik")


async def test_a_child_that_is_added_is_kept_alive_as_the_others_and_ends_with_those_that_started_last(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    told: list[tuple[str, ChildPhase]] = []
    stages: list[ChildSpec | tuple[ChildSpec, ...]] = [
        spec("proxy"),
        (replace(spec("journal"), outlives=True), spec("critic")),
    ]
    async with Supervisor(
        stages, hang_seconds=PATIENCE, on_change=lambda child: told.append((child.name, child.state))
    ) as supervisor:
        supervisor.add(spec("memory"))
        assert child(supervisor, "memory").state is ChildPhase.STOPPED
        await supervisor.start("memory")
        process(supervisor, "memory").kill()
        await come_back(supervisor, "memory")
        supervisor.add(spec("memory", "tell", pair[1]))  # for its next life
        await supervisor.restart("memory")
        assert pair[0].recv(1) == b"!"
    await supervisor.start("memory")  # too late
    assert [each.state for each in supervisor.children] == [ChildPhase.STOPPED] * 4
    ends = [told.index((name, ChildPhase.STOPPED)) for name in ("memory", "journal", "proxy")]
    assert ends == sorted(ends)


async def test_a_child_that_is_removed_is_known_no_longer_and_the_others_end_as_ever() -> None:
    told: list[tuple[str, int]] = []
    async with Supervisor(
        [spec("proxy"), (spec("memory"), spec("critic"))],
        hang_seconds=PATIENCE,
        on_change=lambda child: told.append((child.name, len(supervisor.children))),
    ) as supervisor:
        process_of_memory = process(supervisor, "memory")
        await supervisor.remove("memory")
        assert not process_of_memory.is_running()
        assert [each.name for each in supervisor.children] == ["proxy", "critic"]
        assert told[-1] == ("memory", 2)  # whoever listens looks again
        with pytest.raises(UnknownParticipant, match="there is no participant memory"):
            await supervisor.remove("memory")
        supervisor.add(spec("memory"))
        await supervisor.start("memory")
        assert child(supervisor, "memory").state is ChildPhase.READY
    assert {each.state for each in supervisor.children} == {ChildPhase.STOPPED}


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_start_that_is_cut_short_leaves_nothing_running(is_cancelled: bool) -> None:
    supervisor = Supervisor([spec("proxy"), spec("critic", "never_ready"), spec("memory")])
    starting = asyncio.create_task(supervisor.__aenter__())
    async with asyncio.timeout(PATIENCE):
        await supervisor.wait_until(lambda children: any(child.name == "critic" and child.pid for child in children))
    family = [process(supervisor, "proxy"), process(supervisor, "critic")]
    if is_cancelled:
        starting.cancel()
    else:
        supervisor.wind_down()
    with pytest.raises(asyncio.CancelledError if is_cancelled else StartInterrupted):
        await starting

    assert [child.state for child in supervisor.children] == [ChildPhase.STOPPED] * 3
    assert not any(process.is_running() for process in family)


async def test_a_child_that_a_signal_to_everybody_has_killed_is_not_called_dead(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(child_monitor, "GROUP_SIGNAL_SECONDS", PATIENCE)
    async with running(spec("critic", "ready_then_mute")) as supervisor:
        killed = process(supervisor, "critic")
        killed.terminate()
        await asyncio.to_thread(killed.wait, PATIENCE)
        supervisor.wind_down()  # the same signal, a moment later
    assert caplog.text == ""


def test_two_children_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two participants are called critic"):
        Supervisor([spec("critic"), (spec("proxy"), spec("critic"))])

"""Children that begin in one process, with real processes: what they do is in targets/supervised.py."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from local.runtime.child import ChildSpec
from local.runtime.supervisor import ChildPhase, ChildState, Supervisor

pytestmark = pytest.mark.usefixtures("targets_on_the_path")
PATIENCE = 90.0


def spec(name: str, function: str = "share", *args: object) -> ChildSpec:
    return ChildSpec(name, "tool", f"supervised:{function}", args, required=False, shared_process="both")


@asynccontextmanager
async def running(*specs: ChildSpec, hang_seconds: float = PATIENCE) -> AsyncIterator[Supervisor]:
    async with Supervisor([specs], hang_seconds=hang_seconds) as supervisor:
        yield supervisor


def child(supervisor: Supervisor, name: str) -> ChildState:
    return next(child for child in supervisor.children if child.name == name)


def pid(supervisor: Supervisor, name: str) -> int:
    found = child(supervisor, name).pid
    assert found is not None
    return found


async def ready_again(supervisor: Supervisor, *names: str) -> None:
    async with asyncio.timeout(PATIENCE):
        for name in names:
            await supervisor.wait_until(
                lambda _, name=name: (  # type: ignore[misc]
                    child(supervisor, name).restarts == 1 and child(supervisor, name).state is ChildPhase.READY
                )
            )


async def test_children_begin_in_one_process_and_are_stopped_one_by_one() -> None:
    async with running(spec("cron"), spec("swarm"), ChildSpec("memory", "tool", "supervised:serve")) as supervisor:
        shared = psutil.Process(pid(supervisor, "cron"))
        assert shared.pid == pid(supervisor, "swarm") != pid(supervisor, "memory")
        assert "".join(shared.cmdline()).strip() == "local2 cron+swarm"
        await supervisor.stop("cron")
        assert child(supervisor, "cron").state is ChildPhase.STOPPED
        assert (child(supervisor, "swarm").state, shared.is_running()) == (ChildPhase.READY, True)
        await supervisor.stop("swarm")
        assert not shared.is_running()
    assert [child.restarts for child in supervisor.children] == [0, 0, 0]


async def test_children_whose_process_is_killed_come_back_each_in_its_own() -> None:
    async with running(spec("cron"), spec("swarm")) as supervisor:
        psutil.Process(pid(supervisor, "cron")).kill()
        await ready_again(supervisor, "cron", "swarm")
        assert pid(supervisor, "cron") != pid(supervisor, "swarm")
        assert [child.detail for child in supervisor.children] == ["killed by SIGKILL"] * 2


async def test_one_that_fails_is_started_again_and_the_others_notice_nothing(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    async with running(spec("cron", "share_until_told", pair[1]), spec("swarm")) as supervisor:
        shared = pid(supervisor, "swarm")
        pair[0].send(b"!")
        await ready_again(supervisor, "cron")
        assert child(supervisor, "cron").detail == "exit status 1: the well is dry"
        assert (pid(supervisor, "swarm"), child(supervisor, "swarm").restarts) == (shared, 0)
        assert pid(supervisor, "cron") != shared


async def test_one_that_is_asked_to_stop_before_it_serves_ends_at_once() -> None:
    begun = asyncio.Event()
    specs = [spec("cron", "share_without_a_word"), spec("swarm")]
    supervisor = Supervisor([specs], on_change=lambda child: begun.set() if child.pid else None)
    starting = asyncio.create_task(supervisor.__aenter__())
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        await supervisor.wait_until(lambda _: child(supervisor, "swarm").state is ChildPhase.READY)
        await supervisor.stop("cron")
        await starting
        assert child(supervisor, "swarm").state is ChildPhase.READY
        await supervisor.__aexit__(None, None, None)
    assert [child.state for child in supervisor.children] == [ChildPhase.STOPPED] * 2


async def test_a_sigterm_from_elsewhere_ends_the_process_in_order_and_all_come_back() -> None:
    async with running(spec("cron"), spec("swarm")) as supervisor:
        psutil.Process(pid(supervisor, "cron")).send_signal(signal.SIGTERM)
        await ready_again(supervisor, "cron", "swarm")
        assert [child.detail for child in supervisor.children] == ["exit status 0"] * 2


async def test_a_log_line_names_the_child_that_it_is_of(tmp_path: Path) -> None:
    file = tmp_path / "log"
    async with running(replace(spec("cron"), log_file=file), spec("swarm", "share_and_warn")):
        pass
    [line] = file.read_text().splitlines()
    assert line.split()[2:] == ["warning", "swarm", "-", "the", "well", "is", "low"]

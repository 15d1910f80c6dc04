"""The system's own life: it ends when told to, leaves nobody behind, and remembers."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from local.cli.temporary_system import SystemDidNotStart, TemporarySystem
from local.core.data_dir import RunDirectory
from local.core.open_files import ENOUGH
from tests.system.pseudo_terminal import PseudoTerminal
from tests.warm.warm_system import WarmSystem

FEW_FILES = 300
SLOW_ABOUT_ITALY = {"kind": "first_token_delay", "seconds": 300, "match": r"Italy\?\""}
RUN = ("local.cli.entry", "run", "--headless", "--api", "--api-port", "0")


@pytest.fixture
def start_anew(config_dir: Path) -> Callable[[Path], TemporarySystem]:
    """As `start`, with an interpreter that has nothing imported yet, as all users start it."""
    return lambda data_dir: TemporarySystem(data_dir, config_dir=config_dir, flags=["--backend", "stand_in"])


def _ask(system, query: str) -> str:
    response = httpx.post(
        f"{system.api_url}/query", json={"query": query, "session_id": "kept"}, timeout=90, trust_env=False
    )
    return response.json()["answer"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_told_to_stop_it_ends_with_status_0_and_leaves_no_process(
    start_anew, processes, survivors, tmp_path: Path, number
) -> None:
    with start_anew(tmp_path) as system:
        everybody = processes(system.process.pid)
        assert len(everybody) > 6
        if number is signal.SIGINT:
            os.killpg(system.process.pid, number)  # a terminal sends it to everybody
            assert system.process.wait(90) == 0
        else:
            assert system.end(number) == 0
        assert survivors([*everybody, *processes(system.process.pid)]) == []
        assert not [line for line in system.log if "Traceback" in line or " error " in line]
    file = tmp_path / "logs" / "local2.log"
    first, *_, last = file.read_text().splitlines()
    assert (first.split(" ", 2)[2].startswith("info supervisor - starts"), file.stat().st_mode & 0o777) == (True, 0o600)
    assert last.endswith("info supervisor - stopped")


TERMINATED = pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)  # of the whole group as SIGHUP, of one as above


@pytest.mark.parametrize("number", [TERMINATED, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_to_the_whole_group_is_an_orderly_end(
    start, files_with: Callable[..., list[str]], tmp_path: Path, number: signal.Signals
) -> None:
    with start(tmp_path) as system:
        secret = {"query": "My secret is quokkaberry.", "incognito": True}
        httpx.post(f"{system.api_url}/query", json=secret, timeout=90, trust_env=False).raise_for_status()
        assert files_with(tmp_path, "quokkaberry")
        os.killpg(system.process.pid, number)  # as systemd, timeout(1) and a terminal that is closed send it
        assert system.process.wait(90) == 0
        assert not [line for line in system.log if "started again" in line or " error " in line]
    assert files_with(tmp_path, "quokkaberry") == []  # for which the generator needs the journal at its end


def _moments() -> Iterator[object]:
    """Each moment by one signal; by the other one it is near to that."""
    signals = (signal.SIGTERM, signal.SIGINT)
    for place, seconds in enumerate((0.0, 0.2, 0.5, 1.2)):
        for number in signals:
            marks = [] if number is signals[place % 2] else [pytest.mark.thorough]
            yield pytest.param(number, seconds, marks=marks, id=f"{number.name}-{seconds}")


@pytest.mark.parametrize(("number", "seconds"), [*_moments()])
def test_a_signal_to_everybody_at_any_moment_of_a_start_is_an_end_with_one_line(
    command, processes, survivors, tmp_path: Path, number: signal.Signals, seconds: float
) -> None:
    process = command(*RUN, "--backend", "stand_in", "--data-dir", tmp_path)
    _wait_until_it_looks_after_itself(process.pid)
    time.sleep(seconds)  # whatever it is doing then
    everybody = processes(process.pid)
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=90)
    assert process.returncode in (0, 128 + number)
    assert len(said.splitlines()) == 1, said
    assert "LoCAL2 was stopped before it was ready" in said or "LoCAL2 is ready" in said
    assert survivors([*everybody, *processes(process.pid)]) == []


def _wait_until_it_looks_after_itself(pid: int) -> None:
    """Until SIGTERM is caught; before that the interpreter itself starts, which is not our business."""
    end = time.monotonic() + 30
    while not int(_status_of(pid)["SigCgt"], 16) & 1 << (signal.SIGTERM - 1):
        assert time.monotonic() < end
        time.sleep(0.005)


def _status_of(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        pytest.skip("there is no /proc to look into")
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def test_when_the_supervisor_is_killed_nobody_outlives_it_and_the_next_start_answers_what_was_accepted(
    start, start_anew, processes, survivors, tmp_path: Path
) -> None:
    body = {"query": "What is the capital of Italy?", "query_id": "accepted", "wait": False}
    with start(tmp_path) as system:
        assert "Global Interpreter Lock" in _ask(system, "Tell me about the Python GIL.")
        httpx.post(f"{system.facts.model_url}/stand_in/fault", json=SLOW_ABOUT_ITALY).raise_for_status()
        assert httpx.post(f"{system.api_url}/query", json=body, timeout=90).status_code == 202
        everybody = processes(system.process.pid)
        assert system.end(signal.SIGKILL) == -signal.SIGKILL
        assert survivors(everybody) == []
    with _few_open_files(), start_anew(tmp_path) as again:  # and the data can be used again
        limits = {each.rlimit(resource.RLIMIT_NOFILE) for each in processes(again.process.pid)}
        with httpx.stream("GET", f"{again.api_url}/query/accepted/events", timeout=90) as response:
            assert response.read().decode().count("event: response") == 1
        assert "Rome" in httpx.get(f"{again.api_url}/query/accepted").json()["answer"]
        assert "reference count" in _ask(again, "Why was it introduced?")  # the conversation goes on
        turns = httpx.get(f"{again.api_url}/sessions/kept", trust_env=False).json()["turns"]
    assert {soft for soft, _ in limits} == {min(hard, ENOUGH) for _, hard in limits}  # for everybody
    assert [turn["query"] for turn in turns] == ["Tell me about the Python GIL.", "Why was it introduced?"]


@contextmanager
def _few_open_files() -> Iterator[None]:
    """What is started meanwhile may have few."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_system_that_was_started_for_a_chat_ends_when_that_is_killed(processes, survivors, tmp_path: Path) -> None:
    with PseudoTerminal("chat", "--data-dir", tmp_path) as chat:
        chat.wait_for("›")
        everybody = processes(RunDirectory(tmp_path).read().pid)
        assert len(everybody) > 6
        chat.process.kill()
        assert survivors(everybody) == []
    log_file = (tmp_path / "logs" / "local2.log").read_text()
    assert log_file.splitlines()[-1].endswith("info supervisor - stopped")
    assert "Traceback" not in log_file


def test_a_system_that_does_not_start_is_reported_with_what_it_said(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemDidNotStart, match="No such option: --bogus"),
        WarmSystem(tmp_path, flags=["--bogus"]),
    ):
        pytest.fail("it started")


def test_a_warm_system_is_in_our_folder_and_environment_and_in_a_session_of_its_own(
    processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with WarmSystem(tmp_path / "data", flags=["--backend", "stand_in"]) as system:
        supervisor = psutil.Process(system.process.pid)
        assert supervisor.cwd() == str(tmp_path)
        assert supervisor.cmdline()[1:4] == ["-m", "local.cli.entry", "run"]
        assert supervisor in processes(system.process.pid)
        assert psutil.Process() not in processes(system.process.pid)
        system.process.kill()
        assert (system.process.wait(90), system.process.poll()) == (-signal.SIGKILL, -signal.SIGKILL)
    monkeypatch.setenv("LOCAL2_FAILPOINTS", "nowhere=kill@/")
    with pytest.raises(SystemDidNotStart, match="nowhere"), WarmSystem(tmp_path / "data"):
        pass

"""What cannot be started is refused with one line and exit status 2, and leaves nothing running."""

from __future__ import annotations

import os
import re
import socket
import stat
from pathlib import Path

import pytest

from local.cli.command_table import run_command
from local.cli.main import Flags
from local.cli.temporary_system import write_settings
from local.core.data_dir import owner_token
from local.core.errors import LocalError
from local.run import run as run_module
from local.run.run import SystemPlan, run
from tests.warm.warm_system import WarmSystem

RUN = ("run", "--headless", "--api", "--api-port", "0", "--backend", "stand_in")


@pytest.fixture
def refused(processes, survivors, tmp_path: Path):
    """Gives `local2` words that it must refuse; gives the one line it says."""

    def refuse(*words: object) -> str:
        starter, ours = os.pipe()
        process = WarmSystem(tmp_path).begin([str(word) for word in words], starter)
        os.close(starter)
        with os.fdopen(ours), process.stderr:
            said = process.stderr.read()
        assert process.wait(90) == 2, said
        assert said.count("\n") == 1, said
        assert survivors(processes(process.pid)) == []
        return said

    return refuse


def refused_here(folder: Path, complaint: str, *, api: bool = False, **system: object) -> None:
    """A start that is refused before it has started any process, within this one: the error is what a user is told."""
    flags = Flags(api=api, headless=True, config_dir=folder, data_dir=folder / "data", system=system)
    with pytest.raises(LocalError, match=re.escape(complaint)):
        run(flags)


def test_the_port_is_free_again_as_soon_as_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[SystemPlan] = []

    async def supervise(plan: SystemPlan, *_: object) -> int:
        plans.append(plan)
        if plan.backend.listener is not None:
            plan.backend.listener.close()
        return 0

    monkeypatch.setattr(run_module, "_supervise", supervise)
    system = {"api_port": 0, "backend": "stand_in"}
    assert run(Flags(api=True, headless=True, config_dir=tmp_path, data_dir=tmp_path / "data", system=system)) == 0
    assert plans[0].listener is not None and plans[0].listener.fileno() == -1


def test_a_second_system_on_the_same_data(live, refused) -> None:
    said = refused(*RUN, "--data-dir", live.system.data_dir)
    assert f"already runs on {live.system.data_dir} (process {live.system.process.pid})" in said


def test_what_a_system_keeps_is_for_the_eyes_of_its_owner_alone(live) -> None:
    """Beside the test above, on the system that runs for all of them."""
    data_dir = live.system.data_dir
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (data_dir, *data_dir.rglob("*"))}
    assert modes[data_dir / "api_token"] == 0o600
    assert [path for path, mode in modes.items() if mode & 0o077] == []
    token = owner_token(data_dir)
    assert token and not any(token in line for line in live.system.log)
    assert any(line.startswith(f"LoCAL2 is ready: {live.system.api_url} ") for line in live.system.log)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused_here(tmp_path, f"cannot listen on 127.0.0.1:{port}", api=True, backend="stand_in", api_port=port)


def test_a_bus_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        write_settings(tmp_path, {"system": {"bus_pub_address": "tcp://127.0.0.1:1", "bus_sub_address": address}})
        refused_here(tmp_path, f"the bus cannot listen on {address}: the port is taken", backend="stand_in")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--bogus"], "No such option: --bogus"),
        (["--temperature-b", "-1"], "Invalid value for '--temperature-b': -1.0 is not in the range x>=0.0"),
    ],
)
def test_a_bad_flag(capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: list[str], complaint: str) -> None:
    assert run_command([*RUN, "--data-dir", str(tmp_path), *flags]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_a_backend_that_does_not_exist(tmp_path: Path) -> None:
    complaint = "backend: expected 'auto', 'ollama', 'openai', 'google_genai', 'llama_server' or 'stand_in', found"
    refused_here(tmp_path, complaint, backend="nope")


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("system", "backends: auto\n", "system.yaml:1: backends: unknown key; did you mean backend?"),
        ("generator", "think: true\nmodell: x\n", "generator.yaml:2: modell: unknown key; did you mean model?"),
    ],
)
def test_a_bad_key_in_a_file(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(text)
    refused_here(tmp_path, complaint, backend="stand_in")


def test_a_bad_value_of_a_participant(refused, tmp_path: Path) -> None:
    participants = {"participants": ["generator", {"web_search": {"provider": "nobody"}}]}
    config_dir = write_settings(tmp_path / "config", {"system": participants})
    said = refused(*RUN, "--data-dir", tmp_path / "data", "--config-dir", config_dir)
    assert "provider: there is no search provider 'nobody'" in said


def test_a_story_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["stories", "S99"]) == 2
    assert "there is no story S99" in capsys.readouterr().err


def test_a_bus_that_cannot_be_had_ends_the_start_without_a_traceback(command, tmp_path: Path) -> None:
    elsewhere = "tcp://192.0.2.1:5555"  # an address that no machine has
    write_settings(tmp_path, {"system": {"bus_pub_address": elsewhere, "bus_sub_address": elsewhere}})
    process = command("local.cli.entry", *RUN, "--data-dir", tmp_path / "data", "--config-dir", tmp_path)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 2
    assert f"cannot bind the bus to {elsewhere}" in said
    errors = [line for line in said.splitlines() if " error " in line]
    assert said.splitlines()[: len(errors)] == errors  # warnings come after them
    assert f"proxy could not be started: exit status 1: cannot bind the bus to {elsewhere}" in errors[-1]
    assert errors[-1].endswith("; its own log lines above say why")
    assert "Traceback" not in said

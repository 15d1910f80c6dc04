"""The doctor: its checks of the machine and the settings, and the whole."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from local.core.data_dir import RunDirectory, RunInfo
from local.core.environment import Environment
from local.generator.config import GeneratorConfig
from local.run import doctor as machine
from local.run import doctor as participants
from local.run.doctor import DoctorFinding, FindingStatus, as_line, check_up, run
from local.run.doctor import examine_installation as examine
from local.run.doctor import findings_as_json as as_json

OK, WARN, FAIL = FindingStatus
ROOT = Path(__file__).parents[2]


def to_nobody(findings: Sequence[DoctorFinding]) -> None:
    """The tests look at what is returned."""


def statuses(findings: list[DoctorFinding]) -> dict[str, FindingStatus]:
    return {finding.name: finding.status for finding in findings}


def test_python_is_new_enough_or_the_fix_says_which() -> None:
    assert machine.check_python().status is OK
    old = machine.check_python((3, 10, 9))
    assert (old.status, old.text.startswith("Python 3.10.9")) == (FAIL, True)
    assert "3.11" in old.fix


def test_every_package_of_the_project_file_is_checked() -> None:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    needed = {re.split(r"[<>=!~ \[]", line)[0].lower().replace("_", "-") for line in lines}
    provided = importlib.metadata.packages_distributions()
    checked = {
        name.lower().replace("_", "-") for package in machine.PACKAGES for name in provided[package.partition(".")[0]]
    }
    assert needed <= checked


def test_a_package_that_is_missing_or_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package.py").write_text("raise RuntimeError('its library is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    assert machine.check_packages(["json"]).status is OK
    found = machine.check_packages(["json", "no_such_package", "broken_package"])
    assert found.status is FAIL
    assert "no_such_package (No module named" in found.text
    assert "broken_package (its library is missing)" in found.text


def test_a_data_directory_is_fine_if_it_can_be_written_or_made(tmp_path: Path) -> None:
    assert machine.check_data_dir(tmp_path).status is OK
    assert "will be made" in machine.check_data_dir(tmp_path / "a" / "b").text
    assert not (tmp_path / "a").exists()


def test_a_data_directory_that_cannot_be_used_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert machine.check_data_dir(tmp_path / "file" / "data").status is FAIL
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert machine.check_data_dir(tmp_path / "new").status is FAIL

    def refuse(**_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert machine.check_data_dir(tmp_path).text.endswith("Permission denied")


def test_little_space_is_a_warning_and_almost_none_a_failure(tmp_path: Path) -> None:
    giga, mega = 1024**3, 1024**2
    assert [machine.check_disk(tmp_path, free).status for free in (3 * giga, giga, 100 * mega)] == [OK, WARN, FAIL]
    assert "GB free" in machine.check_disk(tmp_path / "not there yet").text


def test_a_run_directory_must_be_private_and_its_path_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert machine.check_run_directory(tmp_path / "data").status is OK
    RunDirectory(tmp_path / "data").path.chmod(0o755)
    assert "not private" in machine.check_run_directory(tmp_path / "data").text
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    assert "at most 107 are possible" in machine.check_run_directory(tmp_path / "data").text
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing" / "x"))
    (tmp_path / "missing").write_text("a file")
    assert machine.check_run_directory(tmp_path / "data").status is FAIL


def test_packaged_settings_are_read_as_the_participants_read_them(tmp_path: Path) -> None:
    installation, findings = examine(tmp_path, tmp_path, Environment(brave_api_key="secret"))
    assert [finding.status for finding in findings] == [OK]
    assert installation.generator.num_ctx == 32_000
    assert installation.web_search is not None and installation.web_search.brave_api_key == SecretStr("secret")


def test_each_bad_file_is_a_finding_that_names_file_line_and_key(tmp_path: Path) -> None:
    (tmp_path / "generator.yaml").write_text("modle: x\n")
    (tmp_path / "web_search.yaml").write_text("max_results: many\n")
    installation, findings = examine(tmp_path, tmp_path, Environment())
    assert [finding.status for finding in findings] == [FAIL, FAIL]
    assert "generator.yaml:1: " in findings[0].text and "modle" in findings[0].text
    assert "web_search.yaml:1: " in findings[1].text and "max_results" in findings[1].text
    assert installation.generator == GeneratorConfig()
    assert installation.web_search is None


@pytest.mark.parametrize("text", ["api_port: x\n", "participants: [no_such.module:Tool]\n", "participants: [typo]\n"])
def test_a_bad_system_file_leaves_the_other_checks_something_to_work_with(text: str, tmp_path: Path) -> None:
    (tmp_path / "system.yaml").write_text(text)
    installation, findings = examine(tmp_path, tmp_path, Environment())
    assert FAIL in {finding.status for finding in findings}
    assert installation.system.api_port == 8765


def test_the_facts_of_a_system_that_was_killed_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    directory = RunDirectory(tmp_path)
    alive = RunInfo(os.getpid(), "", "", False, "", "", None)
    directory.write(alive)
    assert examine(None, tmp_path, Environment())[0].running == alive
    directory.write(replace(alive, pid=2**22 + 1))  # above the highest process id of Linux
    assert examine(None, tmp_path, Environment())[0].running is None


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    """Settings with which everything is fine on any machine."""
    folder = tmp_path / "config"
    folder.mkdir()
    participants = "participants: [generator, web_search, web_fetch]\n"
    (folder / "system.yaml").write_text(f"backend: stand_in\napi_port: 0\n{participants}")
    (folder / "web_search.yaml").write_text("provider: brave\n")
    return folder


def test_all_checks_are_reported_one_on_a_line_and_the_status_is_0_if_nothing_fails(
    config_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "key")
    assert run(config_dir=config_dir, data_dir=tmp_path / "data") == 0
    *lines, total = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "warn"}
    names = [
        "settings",
        "python",
        "packages",
        "data",
        "disk",
        "damage",
        "run",
        "api",
        "running",
        "model",
        "secrets",
        "memory",
    ]
    found = [line.split()[1] for line in lines]
    assert (found[0], sorted(found)) == ("settings", sorted([*names, "search"]))
    assert re.fullmatch(r"\d+ ok, \d warn, 0 fail", total)


def test_a_failure_is_status_1_and_json_has_the_same_findings(
    config_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    assert run(config_dir=config_dir, data_dir=tmp_path / "data", as_json=True) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "fail"
    [failed] = [finding for finding in report["findings"] if finding["status"] == "fail"]
    assert failed["name"] == "search" and failed["fix"]


async def test_a_check_that_breaks_is_a_finding_and_the_others_go_on(
    config_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Path) -> DoctorFinding:
        raise ZeroDivisionError("unexpected")

    monkeypatch.setattr(machine, "check_disk", broken)
    findings = await check_up(config_dir, tmp_path, to_nobody)
    [disk] = [finding for finding in findings if finding.name == "disk"]
    assert (disk.status, disk.text) == (FAIL, "the check failed: ZeroDivisionError: unexpected")
    assert len(findings) == 13


def test_what_is_known_is_printed_while_another_check_still_waits(
    config_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def waits_for_others(*_: object) -> DoctorFinding:
        seen = ""
        async with asyncio.timeout(90):
            while "secrets" not in seen:
                seen += capsys.readouterr().out
                await asyncio.sleep(0.01)
        return DoctorFinding("running system", OK, f"after {seen.split()[1]}")

    monkeypatch.setattr(participants, "check_health", waits_for_others)
    run(config_dir=config_dir, data_dir=tmp_path / "data")
    assert "ok    running system  after settings" in capsys.readouterr().out.splitlines()


_STUCK = """
import sys, time
from pathlib import Path
from local.run import doctor as checkup
checkup.check_packages = lambda: time.sleep(600)
checkup.run(config_dir=Path(sys.argv[1]), data_dir=Path(sys.argv[2]))
"""


@pytest.mark.thorough
def test_ctrl_c_ends_it_at_once_with_what_is_known(config_dir: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STUCK, str(config_dir), str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as doctor:
        assert doctor.stdout is not None and doctor.stderr is not None
        try:
            assert any("secrets" in line for line in doctor.stdout)
            doctor.send_signal(signal.SIGINT)
            assert (doctor.wait(90), doctor.stderr.read()) == (130, "")
        finally:
            doctor.kill()


async def test_checks_that_wait_wait_side_by_side(
    config_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = asyncio.Barrier(2)

    def meets(outcome: DoctorFinding) -> Callable[..., Awaitable[DoctorFinding]]:
        async def check(*_: object) -> DoctorFinding:
            async with asyncio.timeout(90):
                await meeting.wait()
            return outcome

        return check

    monkeypatch.setattr(participants, "check_health", meets(DoctorFinding("running system", OK, "")))
    monkeypatch.setattr(participants, "check_search", meets(DoctorFinding("search", OK, "")))
    assert FAIL not in statuses(await check_up(config_dir, tmp_path, to_nobody)).values()


def test_a_finding_is_one_line_even_if_what_it_quotes_is_not() -> None:
    findings = [DoctorFinding("x", FAIL, "two\nlines\x1b", "do this"), DoctorFinding("y", OK, "fine")]
    assert as_line(findings[0]) == "fail  x               two lines\\x1b; to fix it: do this"
    assert json.loads(as_json(findings))["status"] == "fail"


def test_commands_without_a_sandbox_are_a_warning_with_its_fix_where_they_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert participants.check_commands(False) == []
    found = participants.check_commands(True)
    assert isinstance(found, DoctorFinding)
    assert (found.status, "apt install bubblewrap" in found.fix) == (WARN, True)

"""`local2 trust`, and what `local2 ask` makes of a folder that is trusted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.cli import temporary_system
from local.cli.client import AnsweringSystem
from local.cli.command_table import run_command
from local.cli.conversation import trusted_current_folder
from local.core.data_dir import NotRunning, RunDirectory
from local.core.trust import TrustRegistry


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with settings and data that lie elsewhere."""
    for name in ("settings", "project/.local2"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("LOCAL2_CONFIG_DIR", str(tmp_path / "settings"))
    monkeypatch.setenv("LOCAL2_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def registry(project: Path) -> TrustRegistry:
    return TrustRegistry(project.parent / "settings")


def test_a_folder_is_trusted_listed_and_distrusted(
    project: Path, registry: TrustRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["trust"]) == 0
    assert registry.trusted(project)
    assert run_command(["trust", "--list"]) == 0
    assert f"{project}  since 20" in capsys.readouterr().out
    assert run_command(["trust", str(project), "--remove"]) == 0
    assert not registry.trusted(project)


def test_instructions_are_shown_and_count_only_with_a_yes(
    project: Path, registry: TrustRegistry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".local2" / "LOCAL2.md").write_text("Use tabs.\x1b[2J\n")
    monkeypatch.setattr("typer.confirm", lambda question: False)
    assert run_command(["trust"]) == 1
    assert "    Use tabs.\\x1b[2J\n" in capsys.readouterr().out
    assert not registry.trusted(project)
    monkeypatch.setattr("typer.confirm", lambda question: True)
    assert run_command(["trust"]) == 0
    assert registry.instructions(project).text.startswith("Use tabs.")
    (project / ".local2" / "LOCAL2.md").write_text("Use spaces.\n")
    run_command(["trust", "--list"])
    assert "has other instructions than when it was trusted" in capsys.readouterr().out
    assert run_command(["trust", "--yes"]) == 0
    assert registry.instructions(project).text == "Use spaces.\n"


def test_a_folder_that_no_system_may_work_in_is_not_trusted(
    project: Path, registry: TrustRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["trust", str(project.parent)]) == 2
    assert "which holds" in capsys.readouterr().err
    assert not registry.trusted(project.parent)


def test_the_current_folder_is_the_workspace_where_it_is_trusted(project: Path, registry: TrustRegistry) -> None:
    said: list[str] = []
    assert trusted_current_folder(said.append) is None
    assert said == [f"{project} is not trusted, so LoCAL2 does not work in it and .local2 is not read; see "
                    "`local2 trust`"]  # fmt: skip
    registry.trust(project)
    assert trusted_current_folder(said.append) == project
    assert len(said) == 1


def test_a_folder_without_instructions_that_nobody_trusts_is_nothing_to_speak_of(
    project: Path, registry: TrustRegistry
) -> None:
    (project / ".local2").rmdir()
    said: list[str] = []
    assert trusted_current_folder(said.append) is None
    assert said == []


def test_a_system_that_is_started_works_in_the_trusted_folder_and_one_that_runs_elsewhere_is_told_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    facts: Any = SimpleNamespace(api_url="http://127.0.0.1:1", workspace="")

    class Started:
        def __init__(self, data_dir: Path, *, flags: list[str]) -> None:
            started.append(flags)

        def __enter__(self) -> None:
            facts.workspace = started[0][-1]

        def __exit__(self, *error: object) -> None: ...

    def told(directory: RunDirectory) -> Any:
        if not facts.workspace:
            raise NotRunning("none")
        return facts

    monkeypatch.setattr(temporary_system, "TemporarySystem", Started)
    monkeypatch.setattr(RunDirectory, "read", told)
    with AnsweringSystem(None, None, may_start=True, flags=["--model", "m"], workspace=project) as system:
        system.find()
        assert started == [["--model", "m", "--workspace", str(project)]]
        assert "works in" not in capsys.readouterr().err
    facts.workspace = "/elsewhere"
    running = AnsweringSystem(None, None, may_start=True, workspace=project)
    running.find()
    running.find()
    assert len(started) == 1
    line = "the running system works in /elsewhere, not here; restart it with `local2 run --workspace .`\n"
    assert capsys.readouterr().err == line


def test_profiles_are_shown_and_count_only_as_they_were_seen(
    project: Path, registry: TrustRegistry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = project / ".local2" / "agents"
    agents.mkdir()
    (agents / "reviewer.md").write_text("Be strict.\x1b[2J")
    monkeypatch.setattr("typer.confirm", lambda question: False)
    assert run_command(["trust"]) == 1
    shown = capsys.readouterr().out
    assert "agents/reviewer.md instructs:\n    Be strict.\\x1b[2J\n" in shown and not registry.profiles(project).files
    assert run_command(["trust", "--yes"]) == 0
    assert registry.profiles(project).files == (("reviewer.md", "Be strict.\x1b[2J"),)
    (agents / "another.md").write_text("Be kind.")
    run_command(["trust", "--list"])
    assert "has other profiles than when it was trusted" in capsys.readouterr().out

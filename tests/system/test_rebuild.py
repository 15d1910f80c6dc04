"""A record or a memory that is missing is rebuilt from the journal, and that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.cli.entry import main
from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem


@pytest.fixture
def start(config_dir: Path, tmp_path: Path) -> Callable[[Path], WarmSystem]:
    settings = write_settings(tmp_path / "settings", {"system": {"participants": ["generator", "memory"]}})
    return lambda data_dir: WarmSystem(data_dir, config_dir=settings, flags=["--backend", "stand_in"])


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _memories(http: Any) -> list[str]:
    return [each["query"] for each in http.get("/memory").json()["engrams"]]


def test_what_is_missing_is_made_anew_without_what_was_deleted_and_a_store_by_hand_while_no_system_runs(
    start: Callable[[Path], WarmSystem], watching: Any, config_dir: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def rebuild(what: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["rebuild", what, "--data-dir", str(data)])
        return int(ended.value.code or 0)

    data = tmp_path / "data"
    with start(data) as system:
        live = watching(system, config_dir)
        with live.http as http:
            live.ask("What is 2+2?", session_id="kept")
            live.ask("What is 3+3?", session_id="kept")
            live.ask("What is 4+4?", session_id="deleted")
            live.wait_until(lambda: len(_memories(http)) == 3)
            assert http.delete("/sessions/deleted").status_code == 200
            live.wait_until(lambda: len(_memories(http)) == 2)
            sessions = http.get("/sessions/kept").json()
            assert rebuild("all") == 2
            assert "a system already runs on" in capsys.readouterr().err
    assert rebuild("everything") == 2
    assert "is not one of conversation, engrams, conversation_b, ratings, all" in capsys.readouterr().err
    assert rebuild("all") == 0
    assert "conversation has 2 exchanges" in capsys.readouterr().out
    assert (data / "conversation.db.before-rebuild-1").exists()
    for file in ("conversation.db", "engrams/engrams.db"):
        _remove(data / file)
        (data / file).touch()
    with start(data) as system:
        live = watching(system, config_dir)
        with live.http as http:
            live.wait_until(lambda: live.health()["status"] == "ok")
            assert "conversation was missing and was rebuilt from the journal, with 2" in live.health()["notice"]
            assert "engrams was missing and was rebuilt from the journal, with 2" in live.health()["notice"]
            again = http.get("/sessions/kept").json()
            assert [turn["query"] for turn in again["turns"]] == [turn["query"] for turn in sessions["turns"]]
            assert [turn["answer"] for turn in again["turns"]] == [turn["answer"] for turn in sessions["turns"]]
            assert http.get("/sessions/deleted").status_code == 404
            assert sorted(_memories(http)) == ["What is 2+2?", "What is 3+3?"]
            assert live.ask("What is 2+2?", query_id=again["turns"][0]["query_id"], session_id="kept")["answer"]
    assert any("it is rebuilt" in line for line in system.log)

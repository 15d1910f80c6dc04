"""The process that changes files is killed at each of its points: the file is the old or the new one, the call was made
once at most, and the terminal knows what can be undone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.warm.warm_system import WarmSystem

HAPPENS = {"files.changed", "tool.after_run", "tool.recorded"}
# In two systems: a process that dies five times in a row is given up for a while.
EARLY, LATE = ("tool.before_run", "files.kept", "files.begun", "files.written"), tuple(sorted(HAPPENS))
FLAGS = ("--backend", "stand_in")


def undo(system: WarmSystem, *words: str) -> str:
    """What `local2 undo` says."""
    command = [sys.executable, "-m", "local.cli.entry", "undo", *words, "--data-dir", str(system.data_dir)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def trust(api_url: str, token: dict[str, str], folder: Path) -> None:
    """Trust a folder's files, as they are now."""
    with httpx.Client(base_url=api_url, headers=token) as http:
        shown = http.get("/trust/contents", params={"folder": str(folder)}).raise_for_status().json()
        http.post("/trust", json={"folder": str(folder), "digest": shown["digest"]}).raise_for_status()


def edited(point: str) -> dict[str, Any]:
    """What the model says when it is asked for that point."""
    arguments = {"path": "a.txt", "old": "end", "new": f"{point} end"}
    call = {"tool_calls": [{"name": "edit_file", "arguments": arguments}]}
    return {"user": f"^{point}$", "replies": [call, {"content": "So be it."}]}


@pytest.mark.thorough
@pytest.mark.parametrize("points", [EARLY, LATE])
def test_a_killed_call_has_its_effect_once_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: tuple[str, ...]
) -> None:
    armed = [f"{point}=kill@{tmp_path / point}" for point in points]
    monkeypatch.setenv("LOCAL2_FAILPOINTS", ",".join(armed))
    calls = [edited(point) for point in points]
    with WarmSystem(tmp_path / "data", flags=FLAGS) as system:
        script = yaml.safe_dump({"story": "kills", "turns": calls})
        httpx.post(f"{system.facts.model_url}/stand_in/script", content=script.encode()).raise_for_status()
        file = tmp_path / "data" / "workspace" / "a.txt"
        file.write_text("begin end")
        token = {"Authorization": f"Bearer {(system.data_dir / 'api_token').read_text().strip()}"}
        trust(system.facts.api_url, token, file.parent)  # otherwise a person would be asked
        expected = "begin end"
        for point in points:
            (tmp_path / point).touch()
            body = {"query": point, "session_id": point, "query_id": point.replace(".", "-"), "mode": "acceptEdits"}
            answer = httpx.post(f"{system.facts.api_url}/query", json=body, headers=token, timeout=120).json()
            (call,) = answer["tool_calls"]
            assert not (tmp_path / point).exists(), f"{point} was not reached"
            expected = expected.replace("end", f"{point} end") if point in HAPPENS else expected
            assert file.read_text() == expected, point
            kind = (call["error"] or {}).get("kind")
            assert kind == (None if point == "tool.recorded" else "outcome_unknown"), point
        changes = json.loads(undo(system, "list", "--json"))["changes"]
        made = [point.replace(".", "-") for point in points if point in HAPPENS]
        assert [change["query_id"] for change in reversed(changes)] == made
        assert [path.name for path in file.parent.iterdir()] == ["a.txt"]
        for query_id in reversed(made):
            assert "a.txt is as it was" in undo(system, "turn", query_id)
        assert file.read_text() == "begin end"

"""Goals and thoughts with a real system: what was found outlives kill -9, and is shown until it is seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.cli.temporary_system import write_settings
from tests.system.pseudo_terminal import PseudoTerminal
from tests.warm.warm_system import WarmSystem

PARTICIPANTS = ["arbiter", "generator", "memory", "reflection"]
WORDS = "You wanted to swim"
Live = Any  # of conftest.py


@pytest.fixture
def live(tmp_path: Path, watching: type[Live]) -> Iterator[Live]:
    settings = {"system": {"participants": PARTICIPANTS}, "memory": {"classify": False}}
    config_dir = write_settings(tmp_path / "settings", settings)
    with WarmSystem(tmp_path / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        with live.http:
            yield live


def test_what_is_said_of_a_goal_outlives_a_death_and_is_shown_in_chat_until_it_is_seen(live: Live) -> None:
    live.ask("I like swimming", session_id="s")
    live.wait_until(lambda: live.http.get("/memory").json()["engrams"])
    goal = live.http.post("/goals", json={"text": "Remind me to swim"})
    assert (goal.status_code, goal.json()["schedule"], goal.json()["created_by"]) == (201, "every 1d", "api")
    with live.stream("GET", "/events", params={"subject": ["goal.said", "monologue.thought"]}) as events:
        live.http.post("/goals/now").raise_for_status()
        assert WORDS in str(next(events))
        live.http.post("/monologue/now").raise_for_status()
        assert "The user said: I like swimming" in str(next(events))
    live.kill("reflection")
    live.wait_until(lambda: live.participant("reflection").get("counters", {}).get("goals_unseen") == 1)
    found = live.http.get("/goals").json()
    assert [(each["words"], each["is_seen"], each["checks"]) for each in found["goals"]] == [(WORDS, False, 1)]
    [thought] = live.http.get("/monologue").json()["thoughts"]
    assert (thought["text"], thought["left_out"]) == ("The user said: I like swimming", 0)
    used = {row["agent"]: row["calls"] for row in live.http.get("/usage?by=agent").json()["rows"]}
    assert (used["heartbeat"], used["monologue"]) == (1, 1)
    with PseudoTerminal("chat", "--data-dir", live.system.data_dir) as terminal:
        terminal.wait_for(f"Remind me to swim: {WORDS}")
        terminal.wait_for("›")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert live.http.get("/goals").json()["goals"][0]["is_seen"]

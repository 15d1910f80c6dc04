"""The merged statuses of the supervisor and the participants; the clock is the test's."""

from __future__ import annotations

from typing import Any

import pytest

from local.api.participants import BY_HAND_SECONDS, ParticipantTable
from local.bus.messages import ChildStatus, ParticipantStatus
from local.queries.asker import Unavailable
from local.runtime.runner import SILENT_SECONDS, STORE_PROBLEM


def beat(name: str, pid: int, state: Any = "ready", **more: Any) -> ParticipantStatus:
    return ParticipantStatus(
        **{"name": name, "kind": "tool", "pid": pid, "instance": f"i{pid}", "state": state, **more}
    )


def own_beat(name: str, pid: int, **more: Any) -> ParticipantStatus:
    """Of a child of the supervisor."""
    return beat(name, pid, child=name, **more)


def supervisor(*children: ChildStatus, state: Any = "ready") -> ParticipantStatus:
    return beat("supervisor", 1, state, children=children)


def child(name: str, pid: int | None, state: str = "ready", restarts: int = 0) -> ChildStatus:
    return ChildStatus(name=name, kind="tool", state=state, pid=pid, restarts=restarts, detail="")


@pytest.fixture
def table() -> ParticipantTable:
    return ParticipantTable()


def names(table: ParticipantTable, now: float = 0) -> list[str]:
    return [row["name"] for row in table.listing(now)]


def test_a_child_is_listed_with_what_it_says_of_itself(table: ParticipantTable) -> None:
    table.update(supervisor(child("proxy", 10), child("generator", 11, restarts=2)), 0)
    table.update(own_beat("generator", 11, inflight=3, counters={"handled": 7}, details={"model": "gemma4:12b"}), 0)
    proxy, generator = table.listing(0)
    assert (proxy["name"], proxy["state"], proxy["counters"]) == ("proxy", "ready", {})
    assert (generator["pid"], generator["restarts"], generator["inflight"]) == (11, 2, 3)
    assert (generator["counters"], generator["details"]) == ({"handled": 7}, {"model": "gemma4:12b"})
    assert table.model == "gemma4:12b"


def test_what_a_dead_process_said_is_not_its_successors(table: ParticipantTable) -> None:
    table.update(supervisor(child("dice", 10)), 0)
    table.update(own_beat("dice", 10, inflight=3), 0)
    table.update(supervisor(child("dice", 12, "starting", 1)), 1)
    [row] = table.listing(1)
    assert (row["pid"], row["inflight"]) == (12, 0)


def test_a_participant_that_was_started_by_hand_is_listed_until_it_is_silent_for_too_long(
    table: ParticipantTable,
) -> None:
    table.update(supervisor(child("generator", 11)), 0)
    table.update(beat("dice", 99), 0)
    assert names(table, SILENT_SECONDS) == ["generator", "dice"]
    assert names(table, SILENT_SECONDS + 0.1) == ["generator"]


def test_a_participant_that_says_goodbye_is_gone_at_once(table: ParticipantTable) -> None:
    table.update(beat("dice", 99), 0)
    table.update(beat("dice", 99, "stopping"), 1)
    assert names(table, 1) == []


def test_children_of_one_process_are_each_listed_with_what_they_say(table: ParticipantTable) -> None:
    table.update(supervisor(child("cron", 10), child("swarm", 10)), 0)
    for name, inflight in (("cron", 1), ("swarm", 2)):
        table.update(own_beat(name, 10, inflight=inflight, instance=name), 0)
    assert [(row["name"], row["pid"], row["inflight"]) for row in table.listing(0)] == [
        ("cron", 10, 1),
        ("swarm", 10, 2),
    ]


@pytest.mark.parametrize("beat_first", [True, False])
def test_a_dead_child_is_never_taken_for_somebody_started_by_hand(table: ParticipantTable, beat_first: bool) -> None:
    said = [own_beat("dice", 10), supervisor(child("dice", 10))]
    for status in said if beat_first else reversed(said):
        table.update(status, 0)
    table.update(own_beat("dice", 10), 1)
    table.update(supervisor(child("dice", None, "restarting")), 1)
    table.update(own_beat("dice", 10), 1)  # its last word was still on its way
    assert names(table, 1) == ["dice"]


def test_it_lives_while_it_beats(table: ParticipantTable) -> None:
    assert not table.lives("critic", 0)
    table.update(beat("critic", 50), 0)
    assert table.lives("critic", SILENT_SECONDS) and not table.lives("critic", SILENT_SECONDS + 1)
    table.update(beat("critic", 50, "starting"), 12)
    assert not table.lives("critic", 12)


@pytest.mark.parametrize(
    ("children", "health"),
    [
        ([], "starting"),
        ([child("a", 1), child("b", 2)], "ok"),
        ([child("a", 1), child("b", None, "starting")], "starting"),
        ([child("a", 1), child("b", None, "starting", restarts=1)], "degraded"),
        ([child("a", 1), child("b", None, "restarting")], "degraded"),
        ([child("a", None, "starting"), child("b", None, "failed")], "degraded"),
        ([child("a", 1), child("b", None, "stopped")], "degraded"),
    ],
)
def test_health_is_ok_when_every_child_is_ready(
    table: ParticipantTable, children: list[ChildStatus], health: str
) -> None:
    table.update(supervisor(*children), 0)
    assert table.health(0) == health


def test_health_is_ok_only_when_every_participant_has_said_what_it_is(table: ParticipantTable) -> None:
    unnamed = child("dice", 10).model_copy(update={"kind": "participant"})
    table.update(supervisor(child("proxy", 9), unnamed), 0)
    assert table.health(0) == "starting"
    table.update(own_beat("dice", 10), 0)
    assert (table.health(0), table.listing(0)[1]["kind"]) == ("ok", "tool")


def test_health_needs_a_supervisor_that_speaks(table: ParticipantTable) -> None:
    assert table.health(0) == "starting"
    table.update(supervisor(child("a", 1)), 0)
    assert (table.health(SILENT_SECONDS), table.health(SILENT_SECONDS + 1)) == ("ok", "degraded")


@pytest.mark.parametrize("name", ["problem", "index_problem"])
def test_health_is_degraded_while_somebody_tells_of_a_problem(table: ParticipantTable, name: str) -> None:
    table.update(supervisor(child("journal", 11)), 0)
    table.update(beat("journal", 11, details={name: "messages 3 to 5 are in doubt"}), 0)
    assert (table.health(0), table.problem(0)) == ("degraded", "journal: messages 3 to 5 are in doubt")
    table.update(beat("journal", 11), 1)
    assert (table.health(1), table.problem(1)) == ("ok", "")


def test_health_does_not_wait_for_a_dead_process_to_be_forgotten(table: ParticipantTable) -> None:
    table.update(supervisor(child("generator", 11)), 0)
    table.update(own_beat("generator", 11, details={"problem": "no model answers"}), 0)
    table.update(supervisor(child("generator", None, "restarting", 1)), 1)
    assert (table.health(1), table.problem(1)) == ("degraded", "generator is restarting")
    table.update(supervisor(child("generator", 12, restarts=1)), 1)
    table.update(own_beat("generator", 12), 1)
    assert (table.health(1), table.problem(1)) == ("ok", "")


def test_the_model_is_remembered_while_the_generator_restarts(table: ParticipantTable) -> None:
    table.update(beat("generator", 11, details={"model": "gemma4:12b"}), 0)
    table.update(beat("dice", 12, details={"model": "none"}), 60)
    assert table.model == "gemma4:12b"


def test_a_child_that_calls_itself_otherwise_is_listed_once_by_that_name(table: ParticipantTable) -> None:
    table.update(supervisor(child("DiceTool", 7)), 0)
    table.update(beat("dice", 7, child="DiceTool"), 0)
    assert names(table) == ["dice"]
    table.update(supervisor(child("DiceTool", None, "restarting")), 1)
    assert names(table) == ["dice"]


def test_whoever_the_supervisor_starts_is_expected_and_whoever_has_left_is_not(table: ParticipantTable) -> None:
    assert not table.is_expected("critic", 0)
    states = {"starting": True, "ready": True, "restarting": True, "stopping": False, "failed": False, "stopped": False}
    for state, is_expected in states.items():
        table.update(supervisor(child("critic", None, state)), 0)
        assert table.is_expected("critic", 0) is is_expected
    table.update(beat("critic", 12, details={"judges": "critique"}), 0)
    assert table.is_expected("critic", SILENT_SECONDS) and table.details("critic", SILENT_SECONDS) == {
        "judges": "critique"
    }
    late = SILENT_SECONDS + 0.1
    assert not table.is_expected("critic", late) and table.details("critic", late) == {}


@pytest.mark.parametrize("state", ["starting", "ready", "restarting", "stopping", "stopped"])
def test_nobody_is_missing_while_the_supervisor_cares_for_them(table: ParticipantTable, state: str) -> None:
    table.update(supervisor(child("journal", 10), child("generator", None, state, restarts=2)), 0)
    assert table.absence(60) is None


def test_a_generator_that_cannot_store_a_query_is_missing_until_it_can(table: ParticipantTable) -> None:
    table.update(supervisor(child("journal", 10), child("generator", 11)), 0)
    table.update(own_beat("generator", 11, details={STORE_PROBLEM: "conversation.db: the disk is full"}), 0)
    absence = table.absence(0)
    assert absence is not None and absence.reason == "conversation.db: the disk is full"
    table.update(own_beat("generator", 11), 1)
    assert table.absence(1) is None


def test_whoever_has_failed_is_missing_unless_somebody_started_it_by_hand(table: ParticipantTable) -> None:
    table.update(supervisor(child("journal", 10), child("generator", 11)), 0)
    table.update(own_beat("generator", 11), 0)
    failed = ChildStatus(name="generator", kind="agent", state="failed", pid=None, detail="exit status 1")
    table.update(supervisor(child("journal", 10), failed), 1)
    table.update(own_beat("generator", 11), 1)  # its last word was still on its way
    assert table.absence(1) == Unavailable("generator", "the generator has failed (exit status 1)")
    table.update(beat("generator", 99), 2)
    assert table.absence(2) is None


def test_whoever_is_not_configured_is_missing_when_there_was_time_to_hear_of_one_by_hand(
    table: ParticipantTable,
) -> None:
    assert table.absence(0) is None  # no status has arrived
    table.update(supervisor(child("journal", 10)), 0)
    assert table.absence(BY_HAND_SECONDS - 0.1) is None
    table.update(supervisor(child("journal", 10)), BY_HAND_SECONDS)
    absence = table.absence(BY_HAND_SECONDS)
    assert absence is not None and (absence.participant, "system.yaml" in absence.reason) == ("generator", True)
    table.update(beat("generator", 99), BY_HAND_SECONDS)
    assert table.absence(BY_HAND_SECONDS) is None

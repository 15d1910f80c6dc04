"""When one more query is refused, and when never."""

from __future__ import annotations

import math
import random
import re
from contextlib import suppress
from dataclasses import dataclass

import pytest

from local.bus.envelope import Envelope
from local.bus.messages import AgentTransition
from local.queries.asker import PRUDENCE, AdmissionControl, LineSample, LiveQueries, LiveQuery, TurnFigures
from local.queries.errors import QueryRefused, TooManyQueries
from local.queries.view import QueryView

FREE = TurnFigures("first", running=3, at_most=128, with_model=3, load=10)
TAKEN_BY_THE_MODEL = TurnFigures("first", running=128, at_most=128, with_model=100, load=10)
TAKEN_BY_ITS_OWN_WORK = TurnFigures("first", running=128, at_most=128, with_model=100, load=90)
TAKEN_BY_TOOLS = TurnFigures("first", running=128, at_most=128, with_model=5, load=10)


@dataclass
class Line:
    """A line that gets `per_second` longer, and of which so many begin."""

    asked_per_second: float
    begun_per_second: float
    waiting: int = 0
    begun: int = 0
    since: float = math.inf

    def line(self) -> LineSample:
        return LineSample(self.waiting, self.begun, self.since)


class Door:
    """Asks ten times a second, by its own clock."""

    def __init__(self, line: Line, turns: TurnFigures | None, max_wait_seconds: float | None = 5.0) -> None:
        self.now, self._line = 0.0, line
        self.control = AdmissionControl(max_wait_seconds, lambda: self.now)
        self.control.update(turns)

    def first_refused(self, seconds: float) -> float | None:
        """After how long, if at all, a query is refused."""
        for tenth in range(1, round(seconds * 10) + 1):
            self.now = tenth / 10
            self._line.begun = int(self._line.begun_per_second * self.now)
            self._line.waiting = int(self._line.asked_per_second * self.now) - self._line.begun
            try:
                self.control.require_room(self._line)
            except TooManyQueries:
                return self.now
        return None


def test_a_line_that_grows_is_cut_where_the_wait_would_pass_the_limit() -> None:
    door = Door(Line(asked_per_second=120, begun_per_second=60), FREE)
    at = door.first_refused(60)
    assert at == pytest.approx(5 * PRUDENCE, abs=0.3)  # so many times 60 wait then, of which 60 begin each second


def test_a_line_that_moves_as_fast_as_it_grows_is_never_cut() -> None:
    assert Door(Line(asked_per_second=60, begun_per_second=60), FREE).first_refused(60) is None


def test_a_line_that_becomes_slower_is_cut_within_a_second_and_says_how_long_it_takes_now() -> None:
    line = Line(0, 0)
    door = Door(line, FREE)
    refused: list[float] = []
    for tenth in range(1, 121):  # 150 wait, of which 60 begin each second: 2.5 seconds; from 10 s on only 10 do
        door.now = tenth / 10
        line.waiting, line.begun = 150, int(60 * min(door.now, 10) + 10 * max(door.now - 10, 0))
        try:
            door.control.require_room(line)
        except TooManyQueries:
            refused.append(door.now)
    assert 10 < refused[0] <= 11
    with pytest.raises(TooManyQueries) as last:
        door.control.require_room(line)
    assert last.value.retry_seconds >= 9  # it takes fifteen, less where chance could have had a part in it


def test_what_chance_does_to_a_line_s_speed_cuts_nothing() -> None:
    line, chance = Line(0, 0), random.Random(1)
    door = Door(line, FREE)
    for tenth in range(1, 600):
        door.now = tenth / 10
        line.waiting, line.begun = 72, line.begun + sum(chance.random() < 0.1 for _ in range(40))  # 40 a second
        door.control.require_room(line)


def test_whoever_is_refused_hears_how_long_it_takes() -> None:
    door = Door(Line(asked_per_second=120, begun_per_second=60), FREE)
    door.first_refused(60)
    with pytest.raises(TooManyQueries) as refused:
        door.control.require_room(Line(0, 0))
    assert (refused.value.kind, refused.value.retry_seconds) == ("too_many_queries", 4)
    assert "ask again in 4 s" in str(refused.value)
    assert float(re.findall(r"up to ([\d.]+) s", str(refused.value))[0]) > 5  # which is the limit


def test_the_line_for_a_slow_model_is_never_cut() -> None:
    door = Door(Line(asked_per_second=2, begun_per_second=1 / 30, since=0.0), TAKEN_BY_THE_MODEL)
    assert door.first_refused(600) is None


def test_a_line_behind_slow_tools_is_cut() -> None:
    assert Door(Line(asked_per_second=30, begun_per_second=5), TAKEN_BY_TOOLS).first_refused(60)


def test_a_line_behind_a_process_that_is_too_busy_to_hear_the_model_is_cut() -> None:
    assert Door(Line(asked_per_second=30, begun_per_second=5), TAKEN_BY_ITS_OWN_WORK).first_refused(60)


@pytest.mark.parametrize(("turns", "is_cut"), [(FREE, False), (TAKEN_BY_ITS_OWN_WORK, True)])
def test_those_that_run_count_where_their_process_is_what_they_wait_for(turns: TurnFigures, is_cut: bool) -> None:
    line, door = Line(0, 0), Door(Line(0, 0), turns)
    line.line = lambda: LineSample(20, line.begun, 0.0 + door.now, running=120)  # type: ignore[method-assign]
    refused = False
    for tenth in range(1, 41):
        door.now, line.begun = tenth / 10, 4 * tenth  # 140 of which 40 end in a second
        try:
            door.control.require_room(line)
        except TooManyQueries:
            refused = True
    assert refused is is_cut


@pytest.mark.parametrize(("ended_per_second", "told_at"), [(60, 1.0), (30, 0.5), (30, 1.0)])
def test_who_is_admitted_waits_no_longer_than_the_limit(ended_per_second: float, told_at: float) -> None:
    """Also right after the start, when all places are free and many begin at once that wait for a busy process."""
    now, asked, ended = 0.0, 0, 0.0
    control = AdmissionControl(5.0, lambda: now)
    control.update(TurnFigures("first", running=0, at_most=128, with_model=0, load=0))
    line, waits = Line(0, 0), list[float]()
    line.line = lambda: LineSample(asked - begun, begun, now, running=begun - int(ended))  # type: ignore[method-assign]
    for tick in range(1, 20 * 120):
        now = tick / 120
        ended = min(ended + ended_per_second / 120, asked)
        begun = min(asked, int(ended) + 128)
        if now >= told_at:
            control.update(TurnFigures("first", running=begun - int(ended), at_most=128, with_model=128, load=100))
        with suppress(TooManyQueries):
            control.require_room(line)
            waits.append((asked - ended) / ended_per_second)
            asked += 1
    assert max(waits) <= 5.0 * 1.05 and len(waits) > 10 * ended_per_second, (max(waits), len(waits))


def test_nothing_is_refused_on_a_guess() -> None:
    assert Door(Line(asked_per_second=120, begun_per_second=1), None).first_refused(60) is None  # of the turns
    assert Door(Line(asked_per_second=1000, begun_per_second=9), FREE).first_refused(1.0) is None  # of the speed


def test_a_line_that_hardly_moves_is_cut_as_soon_as_that_is_plain() -> None:
    at = Door(Line(asked_per_second=100, begun_per_second=4), FREE).first_refused(60)
    assert at is not None and at < 2  # and not after three seconds, when 300 wait


def test_few_that_wait_are_never_too_many() -> None:
    door = Door(Line(0, 0), FREE)
    door.now = 100.0
    for _ in range(3):
        door.control.require_room(Line(0, 0, waiting=9, begun=0, since=0.0))
        door.now += 1


def test_a_line_that_stands_still_is_cut_when_its_first_has_waited_for_so_long() -> None:
    assert Door(Line(asked_per_second=20, begun_per_second=0, since=0.0), FREE).first_refused(60) == pytest.approx(
        5 * PRUDENCE + 0.1
    )


def test_the_time_before_the_first_begins_does_not_count_as_slowness() -> None:
    door = Door(Line(0, 0), FREE)
    for at, waiting, begun in ((0.0, 50, 0), (2.0, 90, 0), (2.1, 90, 5), (3.2, 90, 60)):
        door.now = at
        door.control.require_room(Line(0, 0, waiting=waiting, begun=begun, since=at))
    # 60 of them began within a second: the next waits for less than two


def test_an_earlier_line_says_nothing_of_the_next() -> None:
    door = Door(Line(0, 0), FREE)
    for at, waiting, begun in ((0.0, 50, 0), (1.0, 20, 30), (9.0, 3, 47), (9.1, 300, 50)):
        door.now = at
        door.control.require_room(Line(0, 0, waiting=waiting, begun=begun, since=at))


def test_what_was_measured_of_a_process_that_died_does_not_count() -> None:
    line = Line(asked_per_second=120, begun_per_second=60)
    door = Door(line, FREE)
    assert door.first_refused(60)
    door.control.update(TurnFigures("second", running=0, at_most=128, with_model=0, load=0))
    door.control.require_room(line)


def test_without_a_limit_nothing_is_refused() -> None:
    assert Door(Line(120, 60, since=0.0), FREE, max_wait_seconds=None).first_refused(60) is None


def test_figures_are_taken_from_a_beat_that_has_all_of_them() -> None:
    told = {"turns_running": 3, "turns_at_most": 128, "turns_with_model": 3, "turns_waiting": 1, "turns_load": 10}
    assert TurnFigures.of("first", told) == FREE
    assert TurnFigures.of("first", {"turns_running": 3}) is None


async def test_those_behind_a_query_of_their_own_session_do_not_wait_for_local2() -> None:
    known, now = LiveQueries(), 0.0
    queries = [LiveQuery(QueryView(f"q{n}", "why?", "s" if n < 3 else f"s{n}"), lambda: now) for n in range(5)]
    for now, query in enumerate(queries, start=7):  # noqa: B007 - the clock
        known.add(query)
    assert known.line() == (3, 0, 0.0, 0)
    begun = AgentTransition(agent="g", query_id="q0", from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING")
    queries[0].receive(begun, Envelope(begun.subject, "e", "g", "i", 1, "q0", begun.encode()))
    assert (known.line()[:2], known.line().running) == ((2, 1), 1)
    queries[0].refuse(QueryRefused("failed", "no"))
    known.put_away(queries[0])
    assert known.line()[:2] == (3, 1)  # the next one of the session is at the front now

"""When one more query is admitted, when it waits for that, and when it is refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from local.queries.asker import FEW, AdmissionControl, TurnFigures
from local.queries.errors import TooManyQueries

LIMIT = 5.0
FREE = TurnFigures("first", running=3, at_most=128, with_model=3, load=10)
TAKEN_BY_THE_MODEL = TurnFigures("first", running=128, at_most=128, with_model=100, load=10)
TAKEN_BY_ITS_OWN_WORK = TurnFigures("first", running=128, at_most=128, with_model=100, load=90)
TAKEN_BY_TOOLS = TurnFigures("first", running=128, at_most=128, with_model=5, load=10)
TICK = 0.02


class Load:
    """Queries that arrive at an even pace, each in a session of its own, and a generator that begins those that are
    admitted in order, `begun_per_second(now)` of them; all by its own clock."""

    def __init__(
        self, asked_per_second: float, begun_per_second: Callable[[float], float], turns: TurnFigures | None = FREE
    ) -> None:
        self.now = 0.0
        self.control = AdmissionControl(LIMIT, lambda: self.now)
        self.control.told(turns)
        self._asked, self._begun = asked_per_second, begun_per_second
        self._asked_at: dict[str, float] = {}
        self._on_record: deque[str] = deque()
        self._room: dict[str, float] = {}
        self.waits: list[float] = []  # of those that have begun
        self.refused_at: list[float] = []
        self.refused_after: list[float] = []
        self.refusal: TooManyQueries | None = None

    def run(self, seconds: float) -> Load:
        """Ask for so long, and wait until all that were admitted have begun."""
        asked, may_begin = 0, 0.0
        while self.now < seconds or self._on_record or self._room:
            self.now += TICK
            while self.now < seconds and asked < self._asked * self.now:
                self._arrive(f"q{asked}")
                asked += 1
            for query in [query for query, at in self._room.items() if self.now - at >= self.control.patience()]:
                self._refused(query, self.control.give_up(query))
            may_begin = min(may_begin + self._begun(self.now) * TICK, len(self._on_record))
            while may_begin >= 1:
                may_begin -= 1
                query = self._on_record.popleft()
                self.waits.append(self.now - self._asked_at[query])
                self._admit([*self.control.begun(query), *self.control.ended(query)])
        return self

    def _arrive(self, query: str) -> None:
        self._asked_at[query] = self._room[query] = self.now
        try:
            if self.control.arrive(query, query):
                self._admit([query])
        except TooManyQueries as refusal:
            self._refused(query, refusal)

    def _admit(self, queries: list[str]) -> None:
        for query in queries:
            del self._room[query]
            self._on_record.append(query)

    def _refused(self, query: str, refusal: TooManyQueries) -> None:
        del self._room[query]
        self.refusal = refusal
        self.refused_at.append(self.now)
        self.refused_after.append(self.now - self._asked_at[query])


def steadily(per_second: float) -> Callable[[float], float]:
    return lambda now: per_second


def falling(now: float) -> float:
    return 60 if now < 10 else 30


def slowing(now: float) -> float:
    return max(10, 90 - 4 * now)


def halting(now: float) -> float:
    return 0 if 10 < now < 11 else 40


@pytest.mark.parametrize("speed", [steadily(5), steadily(10), steadily(30), steadily(100), falling, halting])
def test_what_is_admitted_begins_within_the_limit_however_fast_that_goes(speed: Callable[[float], float]) -> None:
    load = Load(asked_per_second=150, begun_per_second=speed).run(15)
    assert max(load.waits) <= LIMIT, max(load.waits)
    assert len(load.waits) >= 0.95 * sum(speed(second + 0.5) for second in range(15))  # it is never idle
    assert load.refused_at


def test_nothing_is_refused_where_no_more_is_asked_than_begins() -> None:
    load = Load(asked_per_second=60, begun_per_second=steadily(61)).run(15)
    assert not load.refused_at and max(load.waits) < 0.5


def test_many_at_once_wait_as_long_as_they_may() -> None:
    load = Load(asked_per_second=200 / TICK, begun_per_second=steadily(100)).run(1.5 * TICK)
    assert len(load.waits) == 200 and not load.refused_at


def test_what_would_wait_in_vain_is_refused_at_once_and_hears_when_to_ask_again() -> None:
    load = Load(asked_per_second=120, begun_per_second=slowing).run(16)
    late = [after for at, after in zip(load.refused_at, load.refused_after, strict=True) if 4 < at < 15]
    assert sum(after < 0.1 for after in late) > 0.95 * len(late)
    assert load.refusal is not None and load.refusal.kind == "too_many_queries"
    assert 1 <= load.refusal.retry_seconds <= 5
    assert f"ask again in {load.refusal.retry_seconds} s" in str(load.refusal) and "within 5 s" in str(load.refusal)


@pytest.mark.parametrize(
    ("turns", "is_refused"),
    [(TAKEN_BY_THE_MODEL, False), (TAKEN_BY_ITS_OWN_WORK, True), (TAKEN_BY_TOOLS, True), (FREE, True), (None, True)],
)
def test_the_line_for_a_slow_model_is_never_cut_and_every_other_one_is(
    turns: TurnFigures | None, is_refused: bool
) -> None:
    load = Load(asked_per_second=30, begun_per_second=steadily(2), turns=turns).run(10)
    assert bool(load.refused_at) is is_refused


def test_those_that_wait_are_let_in_when_it_turns_out_that_the_model_is_what_all_wait_for() -> None:
    control = AdmissionControl(LIMIT, lambda: 0.0)
    queries = [f"q{number}" for number in range(FEW + 2)]
    assert [control.arrive(query, query) for query in queries] == [True] * FEW + [False] * 2
    assert control.told(TAKEN_BY_THE_MODEL) == queries[FEW:]


def test_few_are_never_too_many() -> None:
    control, now = AdmissionControl(LIMIT, lambda: now), 0.0
    for number in range(2 * FEW):
        now += 10
        control.arrive(f"q{number}", f"q{number}")  # and none begins
    with pytest.raises(TooManyQueries):
        control.arrive("one more", "one more")


def test_those_behind_a_query_of_their_own_session_do_not_wait_for_local2_and_stay_in_order() -> None:
    control = AdmissionControl(LIMIT, lambda: 0.0)
    for number in range(FEW):
        control.arrive(f"q{number}", f"s{number}")
    assert control.arrive("second", "s0")
    assert not control.arrive("other", "new") and not control.arrive("other's second", "new")
    assert control.begun("q0") == ["other", "other's second"]
    assert control.ended("q0") == []  # now "second" is on its way, in its place


def test_what_was_cancelled_while_it_waited_takes_no_place() -> None:
    control = AdmissionControl(LIMIT, lambda: 0.0)
    for number in range(FEW + 2):
        control.arrive(f"q{number}", f"s{number}")
    assert control.ended(f"q{FEW}") == []
    assert control.ended("q0") == [f"q{FEW + 1}"]


def test_what_is_on_record_is_always_admitted() -> None:
    control = AdmissionControl(LIMIT, lambda: 0.0)
    assert all(control.arrive(f"q{number}", f"s{number}", is_on_record=True) for number in range(100))


def test_what_was_measured_of_a_process_that_died_does_not_count() -> None:
    control = AdmissionControl(LIMIT, lambda: 0.0)
    control.told(FREE)
    for number in range(100):
        control.arrive(f"b{number}", f"b{number}")
        control.begun(f"b{number}")
    control.told(TurnFigures("second", running=0, at_most=128, with_model=0, load=0))
    assert [control.arrive(f"q{number}", f"q{number}") for number in range(FEW + 1)] == [True] * FEW + [False]


def test_the_time_before_a_query_was_read_counts_but_for_the_few_that_come_after_a_pause_of_the_process() -> None:
    control = AdmissionControl(LIMIT, lambda: 0.0)
    assert control.patience(waited=1) == control.patience() - 1 > 0
    late = [f"q{number}" for number in range(FEW)]
    assert all(control.arrive(query, query, waited=60) for query in late) and control.patience(waited=60) > 0
    control.begun("q0")
    with pytest.raises(TooManyQueries):
        control.arrive("one more", "one more", waited=60)
    assert isinstance(control.too_late(waited=60), TooManyQueries) and control.too_late(waited=1) is None
    assert control.arrive("in time", "in time") and control.too_late(waited=60) is None
    with pytest.raises(TooManyQueries):
        control.arrive("late again", "late again", waited=60)  # where it would have to wait longer


def test_without_a_limit_nothing_waits() -> None:
    control = AdmissionControl(None, lambda: 0.0)
    assert all(control.arrive(f"q{number}", f"s{number}") for number in range(1000))


def test_figures_are_taken_from_a_beat_that_has_all_of_them() -> None:
    told = {"turns_running": 3, "turns_at_most": 128, "turns_with_model": 3, "turns_waiting": 1, "turns_load": 10}
    assert TurnFigures.of("first", told) == FREE
    assert TurnFigures.of("first", {"turns_running": 3}) is None

"""Journal, frontends, generator, tools, observers under seeded faults: promises hold, and the simulator can tell."""

from itertools import count

import pytest
from simulated.promises import Ends
from simulated.schedule import Schedule

EVERY_END = {
    "query answered", "query cancelled", "query cancelled before it began", "query given up",
    "call found", "call done", "call cancelled", "call outcome_unknown", "call timeout",
}  # fmt: skip


@pytest.mark.timeout(1800)  # 100,000 schedules, when asked for, take some minutes
def test_every_promise_is_kept_in_every_schedule(seeds: range) -> None:
    for seed in seeds:
        assert ends_of(seed) <= EVERY_END


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_every_promise_is_kept_in_a_thousand_schedules_more() -> None:
    for seed in range(1_000_000, 1_001_000):
        assert ends_of(seed) <= EVERY_END


def test_a_seed_always_gives_the_same_schedule() -> None:
    ends = []
    for _ in range(2):
        schedule = Schedule(7)
        schedule.run()
        ends.append((schedule.world.now, schedule.journal.envelopes, schedule.ledger, schedule.memory))
    assert ends[0] == ends[1]


def test_the_schedules_have_queries_that_end_in_every_way_and_calls_that_do() -> None:
    seen: set[str] = set()
    for seed in count():
        seen |= ends_of(seed)
        if seen == EVERY_END:
            return
        assert seed < 300, EVERY_END - seen


def ends_of(seed: int) -> set[str]:
    """How the queries and calls of a schedule end, in which every promise is kept."""
    schedule = Schedule(seed)
    schedule.run()
    ends = Ends(schedule)
    return {f"query {end}" for end in ends.statuses()} | {f"call {end}" for end in ends.call_ends()}

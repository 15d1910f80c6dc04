"""Journal, doors, generator, tools and observers under seeded faults: the promises hold, and the simulator can tell."""

from collections import Counter

import pytest
from simulated.promises import Ends
from simulated.schedule import Schedule


@pytest.mark.timeout(1800)  # 100,000 schedules, when asked for, take some minutes
def test_every_promise_is_kept_in_every_schedule(seeds: range) -> None:
    for seed in seeds:
        Schedule(seed).run()


def test_a_seed_always_gives_the_same_schedule() -> None:
    ends = []
    for _ in range(2):
        schedule = Schedule(7)
        schedule.run()
        ends.append((schedule.world.now, schedule.journal.envelopes, schedule.ledger, schedule.memory))
    assert ends[0] == ends[1]


def test_the_schedules_have_queries_that_end_in_every_way_and_calls_that_do() -> None:
    seen: Counter[str] = Counter()
    for seed in range(300):
        schedule = Schedule(seed)
        schedule.run()
        seen.update(f"query {status}" for status in Ends(schedule).statuses())
        seen.update(f"call {end}" for end in Ends(schedule).call_ends())
    assert seen.keys() == {
        "query answered", "query cancelled", "query cancelled before it began", "query given up",
        "call found", "call done", "call cancelled", "call outcome_unknown", "call timeout",
    }, seen  # fmt: skip

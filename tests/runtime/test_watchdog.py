"""Who counts as hung, by a clock that the tests turn."""

import pytest

from local.runtime.supervisor import Watchdog

TICK, HANG = 0.5, 5.0


class Clock:
    """Asks the watchdog at every tick, as the supervisor does."""

    def __init__(self) -> None:
        self.now = 100.0
        self.watchdog = Watchdog(TICK, self.now)

    def run(self, seconds: float, *beating: str) -> set[str]:
        """Let time pass while `beating` give signs of life; returns everyone found overdue on the way."""
        overdue: set[str] = set()
        for _ in range(int(seconds / TICK)):
            self.now += TICK
            for name in beating:
                self.watchdog.beat(name, self.now)
            overdue.update(self.watchdog.overdue(self.now))
        return overdue


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_only_the_silent_one_is_overdue_and_not_before_its_time(clock: Clock) -> None:
    clock.watchdog.watch("critic", HANG, clock.now)
    clock.watchdog.watch("memory", HANG, clock.now)

    assert clock.run(HANG - TICK, "memory") == set()
    assert clock.run(TICK, "memory") == {"critic"}


@pytest.mark.parametrize("away", [10.0, 8 * 3600.0], ids=["the supervisor was stopped", "the laptop slept"])
def test_a_watcher_that_was_held_up_blames_nobody_and_gives_everyone_the_whole_time_again(
    clock: Clock, away: float
) -> None:
    clock.watchdog.watch("critic", HANG, clock.now)
    clock.run(HANG - TICK)
    clock.now += away

    assert clock.watchdog.overdue(clock.now) == ()
    assert clock.run(HANG - TICK) == set()
    assert clock.run(TICK) == {"critic"}


def test_a_tick_that_is_a_little_late_does_not_excuse_anybody(clock: Clock) -> None:
    clock.watchdog.watch("critic", HANG, clock.now)
    clock.run(HANG - TICK)
    clock.now += 1.9 * TICK

    assert clock.watchdog.overdue(clock.now) == ("critic",)


def test_who_is_silent_for_half_of_the_time_is_told_and_who_is_excused_gets_as_much_again(clock: Clock) -> None:
    clock.watchdog.watch("critic", HANG, clock.now)
    clock.watchdog.watch("memory", HANG, clock.now)
    clock.run(HANG / 2, "memory")
    assert clock.watchdog.silent(clock.now) == ("critic",)
    clock.run(HANG / 2, "memory")

    clock.watchdog.excuse("critic", clock.now)
    assert clock.run(HANG / 2 - TICK, "memory") == set()
    assert clock.run(TICK, "memory") == {"critic"}

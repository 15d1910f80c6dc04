"""The line for one model server: its places, whose turn it is, who has to make room; and the moment of quiet."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.models.arbiter import (
    IDLE_SECONDS,
    LONGEST_SECONDS,
    QUIET_SECONDS,
    SILENT_SECONDS,
    ModelLine,
    QuietPeriod,
)
from local.models.lease_messages import Lease, LeaseKind


class Line(ModelLine):
    """A line whose claims are written by ids; `models` are those of the leases that are of that `kind`."""

    def claims(
        self,
        instance: str,
        turns: int,
        running: Sequence[str],
        waiting: Sequence[str],
        now: float,
        models: Mapping[str, str] | None = None,
        last_turns: Mapping[str, float] | None = None,
        kind: LeaseKind = "patient",
    ) -> None:
        models = models or {}
        leases = [
            Lease(id=each, running=runs, model=models.get(each, ""), kind=kind if each in models else "ordered")
            for ids, runs in ((running, True), (waiting, False))
            for each in ids
        ]
        self.claimed(instance, turns, leases, now, last_turns)


def test_a_server_gets_no_more_calls_than_it_serves_at_once() -> None:
    line = Line(2)
    line.claims("critic", 0, [], ["c1", "c2", "c3"], 0.0)
    assert (line.granted, line.waiting) == (("c1", "c2"), ("c3",))


def test_who_came_first_is_served_first() -> None:
    line = Line(1)
    for instance in ("a", "b", "c"):
        line.claims(instance, 0, [], [f"{instance}1"], 0.0)
    line.claims("a", 0, [], [], 1.0)
    assert (line.granted, line.waiting) == (("b1",), ("c1",))


def test_while_a_user_waits_nothing_is_granted() -> None:
    line = Line(1)
    line.claims("generator", 1, [], ["summary"], 0.0)
    assert (line.granted, line.waiting) == ((), ("summary",))
    line.claims("generator", 0, [], ["summary"], 1.0)
    assert line.granted == ("summary",)


def test_a_users_turn_takes_the_place_of_the_youngest_lease() -> None:
    line = Line(2)
    line.claims("critic", 0, [], ["c1", "c2"], 0.0)
    line.claims("generator", 1, [], [], 1.0)
    assert (line.granted, line.revoked) == (("c1",), ("c2",))


def test_a_revoked_lease_keeps_its_place_until_it_has_stopped_and_is_then_the_next() -> None:
    line = Line(1)
    line.claims("critic", 0, ["c1"], ["c2"], 0.0)
    line.claims("generator", 1, [], [], 1.0)
    line.claims("critic", 0, ["c1"], ["c2"], 2.0)
    assert (line.revoked, line.waiting) == (("c1",), ("c2",))
    line.claims("critic", 0, [], ["c1", "c2"], 3.0)
    assert (line.revoked, line.waiting) == ((), ("c1", "c2"))
    line.claims("generator", 0, [], [], 4.0)
    assert (line.granted, line.waiting) == (("c1",), ("c2",))


def test_a_lease_that_had_not_stopped_when_the_user_was_answered_goes_on() -> None:
    line = Line(1)
    line.claims("critic", 0, ["c1"], [], 0.0)
    line.claims("generator", 1, [], [], 1.0)
    line.claims("generator", 0, [], [], 2.0)
    assert (line.granted, line.revoked) == (("c1",), ())


def test_who_is_silent_has_lost_its_leases_and_its_turns() -> None:
    line = Line(1)
    line.claims("critic", 0, ["c1"], [], 0.0)
    line.claims("generator", 1, [], [], 0.0)
    line.claims("memory", 0, [], ["m1"], SILENT_SECONDS)
    line.forget_silent(SILENT_SECONDS + 0.1)
    assert (line.turns, line.granted, line.revoked, line.waiting) == (0, ("m1",), (), ())


def test_a_new_arbiter_leaves_what_runs_alone() -> None:
    line = Line(1)
    line.claims("memory", 0, [], ["m1"], 0.0)
    line.claims("critic", 0, ["c1"], [], 0.1)
    assert (line.granted, line.revoked) == (("c1",), ("m1",))


@settings(max_examples=12)
@given(
    slots=st.integers(1, 3),
    claims=st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 3),
            st.lists(st.tuples(st.integers(0, 3), st.booleans()), unique_by=lambda lease: lease[0]),
        ),
        max_size=15,
    ),
)
def test_whatever_is_claimed_every_lease_stands_in_one_place_and_none_is_idle(slots, claims) -> None:  # type: ignore[no-untyped-def]
    line, wanted = Line(slots), {}
    for now, (instance, turns, leases) in enumerate(claims):
        running = [f"{instance}{number}" for number, runs in leases if runs]
        waiting = [f"{instance}{number}" for number, runs in leases if not runs]
        line.claims(instance, turns, running, waiting, float(now))
        wanted[instance] = (turns, {*running, *waiting})
        standing = [*line.granted, *line.revoked, *line.waiting]
        assert sorted(standing) == sorted(lease for _, some in wanted.values() for lease in some)
        assert line.turns == sum(turns for turns, _ in wanted.values())
        places = max(0, slots - line.turns)
        assert len(line.granted) <= places
        assert len(line.granted) + len(line.revoked) >= min(places, len(standing))


def quiet_line(quiet: float = 60.0) -> Line:
    """A line of a server that keeps one prefix, of an arbiter that has been up for long."""
    return Line(1, quiet, begun=-1_000.0)


def test_where_a_call_would_evict_the_prefix_none_is_granted_between_the_turns_of_a_conversation() -> None:
    line, now = quiet_line(), 0.0
    for turn in range(12):
        line.claims("generator", 1, [], [], now, {}, {"gemma": 0.0})
        waiting = [f"critic-{number}" for number in range(turn + 1)]
        line.claims("critic", 0, [], waiting, now + 1, dict.fromkeys(waiting, "gemma"))
        line.claims("generator", 0, [], [], now + 5, {}, {"gemma": 0.0})
        for pause in range(0, 50, 5):
            line.claims("critic", 0, [], waiting, now + 5 + pause, dict.fromkeys(waiting, "gemma"))
            line.forget_silent(now + 5 + pause)
            assert (line.granted, set(line.waiting)) == ((), set(waiting))
        now += 55
    assert line.quiet_in > 0
    line.claims("critic", 0, [], waiting, now + 60, dict.fromkeys(waiting, "gemma"))
    assert line.granted == ("critic-0",)
    line.claims("critic", 0, [], waiting[1:], now + 61, dict.fromkeys(waiting, "gemma"))
    assert line.granted == ("critic-1",)  # one after the other


def test_a_users_turn_interrupts_the_batch_that_waits_for_quiet_again() -> None:
    line = quiet_line()
    line.claims("critic", 0, [], ["c1", "c2"], 0.0, {"c1": "gemma", "c2": "gemma"})
    line.forget_silent(2.0)
    line.claims("critic", 0, ["c1"], ["c2"], 2.0, {"c1": "gemma", "c2": "gemma"})
    line.claims("generator", 1, [], [], 3.0, {}, {"gemma": 0.0})
    line.claims("generator", 0, [], [], 4.0, {}, {"gemma": 0.0})
    assert line.revoked == ("c1",)  # the turn is over, and the conversation is not
    line.claims("critic", 0, [], ["c1", "c2"], 4.0, {"c1": "gemma", "c2": "gemma"})
    line.claims("critic", 0, [], ["c1", "c2"], 63.0, {"c1": "gemma", "c2": "gemma"})
    assert line.granted == ()
    line.claims("critic", 0, [], ["c1", "c2"], 65.0, {"c1": "gemma", "c2": "gemma"})
    assert line.granted == ("c1",)


def test_another_model_and_what_users_have_ordered_do_not_wait_for_quiet() -> None:
    line = quiet_line()
    line.claims("critic", 0, [], ["c1"], 0.0, {"c1": "gemma"})
    line.claims("generator", 0, [], [], 2.0, {}, {"gemma": 0.0})
    line.claims("reader", 0, [], ["r1"], 2.0, {"r1": "selene"})
    line.claims("critic", 0, [], ["c1"], 2.0, {"c1": "gemma"})
    assert (line.granted, line.waiting) == (("r1",), ("c1",))
    line.claims("reader", 0, [], [], 3.0)
    line.claims("cron", 0, [], ["s1"], 3.0)
    assert (line.granted, line.waiting) == (("s1",), ("c1",))


def test_a_turn_that_a_new_arbiter_cannot_know_of_is_waited_for() -> None:
    line = Line(1, 60.0, begun=100.0)
    line.claims("critic", 0, [], ["c1"], 101.0, {"c1": "gemma"})
    line.claims("critic", 0, [], ["c1"], 103.0, {"c1": "gemma"})
    assert line.granted == ()
    line.claims("critic", 0, [], ["c1"], 160.0, {"c1": "gemma"})
    assert line.granted == ("c1",)


def evicting_line() -> Line:
    """A line of a server that keeps one prompt, between two leases that do not wait."""
    line = quiet_line(quiet=0.0)
    line.evicts = True
    return line


def test_what_another_model_has_evicted_is_loaded_again_once_no_call_can_run() -> None:
    line = evicting_line()
    line.claims("generator", 0, [], [], 1.0, {}, {"gemma": 0.0})
    assert line.to_restore == ""
    line.claims("critic", 0, [], ["c1", "c2"], 2.0, {"c1": "judge", "c2": "judge"})
    assert (line.granted, line.to_restore) == (("c1",), "")
    line.claims("critic", 0, ["c2"], [], 3.0, {"c2": "judge"})
    assert line.to_restore == ""
    line.claims("critic", 0, [], [], 4.0)
    assert line.to_restore == "gemma"
    line.evicted("gemma", is_unloaded=True)
    assert (line.restore, line.to_restore) == ("gemma", "")
    line.claims("generator", 0, [], ["r1"], 5.0, {"r1": "gemma"}, {"gemma": 4.0}, kind="restore")
    assert (line.granted, line.restore) == (("r1",), "")
    line.claims("generator", 0, [], [], 6.0, {}, {"gemma": 5.0})
    assert (line.restore, line.to_restore) == ("", "")


def test_a_turn_needs_nothing_loaded_again_and_nobody_comes_back_after_half_an_hour() -> None:
    line = evicting_line()
    line.claims("generator", 0, [], [], 1.0, {}, {"gemma": 0.0})
    line.claims("critic", 0, ["c1"], [], 2.0, {"c1": "judge"})
    line.claims("critic", 0, [], [], 3.0)
    line.evicted("gemma", is_unloaded=None)
    line.claims("generator", 1, [], [], 4.0, {}, {"gemma": 0.0})
    assert (line.restore, line.to_restore) == ("", "")
    line.claims("generator", 0, [], [], 5.0, {}, {"gemma": 0.0})
    line.claims("critic", 0, ["c2"], [], 4_000.0, {"c2": "judge"})
    line.claims("critic", 0, [], [], 4_001.0)
    assert line.to_restore == ""


def test_where_there_is_memory_for_one_model_calls_of_another_wait_for_quiet_and_go_together() -> None:
    line = quiet_line()
    line.evicts = True
    line.claims("generator", 0, [], [], 0.0, {}, {"gemma": 0.0})
    line.claims("critic", 0, [], ["c1"], 0.5, {"c1": "judge"})
    line.forget_silent(1.5)
    assert line.granted == ("c1",)
    line.claims("critic", 0, [], [], 2.0)
    line.evicted("gemma", is_unloaded=True)
    models = {"m1": "gemma", "c2": "judge", "m2": "gemma", "c3": "judge"}
    line.claims("generator", 0, [], [], 3.0, {}, {"gemma": 0.0})
    line.claims("critic", 0, [], list(models), 3.0, models)
    assert line.granted == ()
    order = list[str]()
    for second in range(4):
        line.claims("critic", 0, [], [each for each in models if each not in order], 64.0 + second, models)
        order += line.granted
    assert order == ["m1", "m2", "c2", "c3"]  # one swap instead of three


def test_where_both_models_are_in_memory_calls_of_another_do_not_wait() -> None:
    line = quiet_line()
    line.evicts = True
    for turn in range(2):
        line.claims("generator", 0, [], [], 10.0 * turn, {}, {"gemma": 0.0})
        line.claims("critic", 0, [], [f"c{turn}"], 10.0 * turn + 1, {f"c{turn}": "judge"})
        line.forget_silent(10.0 * turn + 2)
        assert line.granted == (f"c{turn}",)
        line.claims("critic", 0, [], [], 10.0 * turn + 3)
        line.evicted("gemma", is_unloaded=False)
        assert line.restore == ""


def test_what_can_wait_until_nobody_is_there_begins_in_the_first_idle_minute() -> None:
    line = quiet_line(quiet=0.0)
    line.claims("generator", 0, [], [], 0.0, {}, {"gemma": 0.0})
    line.claims("critic", 0, [], ["t1"], 2.0, {"t1": "judge"}, kind="idle")
    line.claims("memory", 0, [], ["m1"], 3.0, {"m1": "gemma"})
    assert (line.granted, line.waiting) == (("m1",), ("t1",))
    line.claims("memory", 0, [], [], 4.0)
    line.forget_silent(IDLE_SECONDS - 1)
    line.claims("critic", 0, [], ["t1"], IDLE_SECONDS - 1, {"t1": "judge"}, kind="idle")
    assert line.granted == ()
    line.claims("memory", 0, ["m2"], ["m3"], IDLE_SECONDS, {"m2": "gemma", "m3": "gemma"})
    line.claims("critic", 0, [], ["t1"], IDLE_SECONDS + 1, {"t1": "judge"}, kind="idle")
    line.claims("memory", 0, [], ["m3"], IDLE_SECONDS + 1, {"m3": "gemma"})
    assert line.granted == ("m3",)  # it came later, and is no test
    line.claims("memory", 0, [], [], IDLE_SECONDS + 1)
    assert line.granted == ("t1",)
    line.claims("generator", 0, [], [], IDLE_SECONDS + 2, {}, {"gemma": 0.0})
    assert line.revoked == ("t1",)


# The moment for what nobody waits for: half a second of quiet, two seconds at most, for all together


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """The loop's own, which jumps to what is due next: nothing is late, however busy the machine is."""
    loop = asyncio.get_running_loop()
    now = loop.time()
    selector: selectors.BaseSelector = loop._selector  # type: ignore[attr-defined]
    select = selector.select

    def jump(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        nonlocal now
        now += timeout or 0.0
        return select(0)

    monkeypatch.setattr(selector, "select", jump)
    monkeypatch.setattr(loop, "time", lambda: now)
    return loop.time


async def moment_of(begins: Callable[[], object], clock: Callable[[], float]) -> float:
    await begins()  # type: ignore[misc]
    return clock()


async def test_where_nobody_was_answered_lately_it_begins_at_once(clock: Callable[[], float]) -> None:
    before = clock()
    assert await moment_of(QuietPeriod().begins, clock) == before


async def test_it_begins_a_moment_after_the_last_answer_for_all_who_wait(clock: Callable[[], float]) -> None:
    quiet = QuietPeriod()
    quiet.disturbed()
    waiting = [asyncio.create_task(moment_of(quiet.begins, clock)) for _ in range(2)]
    await asyncio.sleep(0.3)
    quiet.disturbed()
    last = clock()
    waiting.append(asyncio.create_task(moment_of(quiet.begins, clock)))
    assert await asyncio.gather(*waiting) == [pytest.approx(last + QUIET_SECONDS)] * 3


async def test_it_begins_after_the_longest_time_while_answers_follow_each_other(clock: Callable[[], float]) -> None:
    quiet, began = QuietPeriod(), clock()
    quiet.disturbed()
    waiting = asyncio.create_task(moment_of(quiet.begins, clock))
    while not waiting.done():
        quiet.disturbed()
        await asyncio.sleep(0.05)
    assert await waiting == pytest.approx(began + LONGEST_SECONDS)

"""What a durable consumer is given, and when."""

import sys
from collections.abc import Iterable

from local.journal.delivery import (
    ALONE_SECONDS,
    SUSPECT_AFTER,
    ConsumerDecision,
    ConsumerState,
    DeadLetter,
    Deliver,
    DeliveryFailure,
    DeliveryFailures,
    DurableConsumer,
    Fenced,
    Serving,
    Settled,
)


def consumer(max_in_flight: int = 256, state: ConsumerState | None = None) -> DurableConsumer:
    return DurableConsumer("critic", ["answer", "tool.result."], ack_wait=10, max_in_flight=max_in_flight, state=state)


def given(decisions: Iterable[ConsumerDecision]) -> list[tuple[int, int]]:
    """(number, attempt) of each delivery."""
    return [(d.number, d.attempt) for d in decisions if isinstance(d, Deliver)]


def filled(*lanes: str, max_in_flight: int = 256) -> DurableConsumer:
    """Messages 1, 2, 3 … in these lanes, and nobody there yet."""
    it = consumer(max_in_flight)
    for number, lane in enumerate(lanes, 1):
        assert it.add(number, lane, now=0) == []
    return it


def die(it: DurableConsumer, times: int) -> list[ConsumerDecision]:
    """Processes come one after the other. Returns what the last one's coming leads to."""
    decisions: list[ConsumerDecision] = []
    for life in range(times):
        decisions = it.attach(f"life {life}", now=0)
    return decisions


def survived(it: DurableConsumer, deadly: set[int]) -> tuple[set[int], set[int]]:
    """Processes work one after the other until nothing is left; each dies when it has a deadly one in hand, the last
    thing that it does, and ends what it has otherwise. Returns what was given up and what has ended."""
    dead, done = set[int](), set[int]()
    for life in range(100):
        waiting = it.attach(f"life {life}", now=0)
        held = set[int]()
        while waiting:
            decision = waiting.pop(0)
            if isinstance(decision, DeadLetter):
                dead.add(decision.number)
            elif isinstance(decision, Deliver):
                held.add(decision.number)
            if not waiting and held and not held & deadly:
                done |= held
                waiting += [d for number in held for d in it.ack(number, now=0)]
                held.clear()
        if not len(it):
            return dead, done
    raise AssertionError("it does not end")


def test_a_lane_is_given_in_order_and_lanes_side_by_side() -> None:
    it = filled("a", "a", "b")

    assert given(it.attach("one", now=0)) == [(1, 1), (3, 1)]
    assert it.ack(1, now=0) == [Settled("critic", 1), Deliver("critic", 2, 1, "one")]
    assert it.ack(2, now=0) == [Settled("critic", 2)]


def test_a_message_that_is_committed_while_a_process_is_there_is_given_at_once() -> None:
    it = consumer()
    it.attach("one", now=0)

    assert given(it.add(7, "a", now=0)) == [(7, 1)]


def test_a_message_that_is_committed_again_under_its_number_changes_nothing() -> None:
    it = filled("a")

    assert it.add(1, "a", now=0) == []
    assert len(it) == 1


def test_no_more_than_the_bound_is_in_flight_and_the_lowest_number_comes_next() -> None:
    it = filled("a", "b", "a", "c", max_in_flight=2)

    assert given(it.attach("one", now=0)) == [(1, 1), (2, 1)]
    assert given(it.ack(1, now=0)) == [(3, 1)]


def test_silence_for_ack_wait_means_another_delivery_and_working_puts_it_off() -> None:
    it = filled("a", "b")
    it.attach("one", now=0)
    it.working(1, attempt=1, instance="one", now=9)

    assert it.next_due == 10
    assert given(it.tick(now=9.9)) == []
    assert given(it.tick(now=10)) == [(2, 2)]
    assert given(it.tick(now=19)) == [(1, 2)]


def test_working_of_an_older_attempt_or_another_instance_means_nothing() -> None:
    it = filled("a")
    it.attach("one", now=0)
    it.tick(now=10)

    it.working(1, attempt=1, instance="one", now=15)
    it.working(1, attempt=2, instance="two", now=15)

    assert it.next_due == 20


def test_an_acknowledgement_counts_whichever_attempt_it_is_of() -> None:
    it = filled("a", "a")
    it.attach("one", now=0)
    it.tick(now=10)

    assert given(it.ack(1, now=11)) == [(2, 1)]
    assert it.ack(1, now=12) == []


def test_an_acknowledgement_counts_even_for_what_waits() -> None:
    it = filled("a", "a", "a")
    it.attach("one", now=0)

    it.ack(2, now=0)

    assert given(it.ack(1, now=0)) == [(3, 1)]


def test_what_a_process_held_is_given_to_its_successor_at_once() -> None:
    it = filled("a", "a", "b")
    it.attach("one", now=0)

    assert it.attach("two", now=1) == [
        Serving("critic", "two"),
        DeliveryFailure("critic", 1, DeliveryFailures(1, 0)),
        DeliveryFailure("critic", 3, DeliveryFailures(1, 0)),
        Deliver("critic", 1, 2, "two"),
        Deliver("critic", 3, 2, "two"),
    ]


def test_a_process_that_says_again_that_it_is_there_changes_nothing() -> None:
    it = filled("a")
    it.attach("one", now=0)

    assert it.attach("one", now=1) == []


def test_a_replaced_instance_is_told_so_and_given_nothing() -> None:
    it = filled("a")
    it.attach("one", now=0)
    it.attach("two", now=0)

    assert it.attach("one", now=1) == [Fenced("critic", "one")]
    assert it.tick(now=10) == [Deliver("critic", 1, 3, "two")]


def test_a_goodbye_hands_back_without_a_death() -> None:
    it = filled("a")
    it.attach("one", now=0)

    assert it.detach("one") == [Serving("critic", None)]
    assert it.tick(now=100) == []
    assert it.attach("two", now=100) == [Serving("critic", "two"), Deliver("critic", 1, 2, "two")]


def test_the_goodbye_of_a_replaced_instance_changes_nothing() -> None:
    it = filled("a")
    it.attach("one", now=0)
    it.attach("two", now=0)

    assert it.detach("one") == []
    assert given(it.tick(now=10)) == [(1, 3)]


def test_what_was_in_flight_at_two_deaths_runs_beside_no_other_such_and_beside_everybody_else() -> None:
    it = filled("a", "b", "c", max_in_flight=2)

    assert given(die(it, 3)) == [(1, 3), (3, 1)]
    assert given(it.ack(3, now=0)) == []
    assert given(it.add(4, "d", now=0)) == [(4, 1)]
    assert given(it.ack(1, now=0)) == [(2, 3)]


def test_a_suspect_is_alone_in_its_lane() -> None:
    it = DurableConsumer("critic", ["answer"], lane_width=3, state=ConsumerState(deaths={2: DeliveryFailures(2, 0)}))
    for number, lane in enumerate("aaab", 1):
        it.add(number, lane, now=0)

    assert given(it.attach("one", now=0)) == [(1, 1), (4, 1)]
    assert given(it.ack(1, now=0)) == [(2, 3)]
    assert given(it.ack(2, now=0)) == [(3, 1)]


def test_a_suspect_that_waits_for_another_one_holds_it_up_no_longer_than_a_while() -> None:
    it = filled("a question", "its agent")
    die(it, SUSPECT_AFTER)
    assert given(it.attach("next", now=0)) == [(1, 3)]
    assert it.next_due == ALONE_SECONDS
    assert given(it.tick(ALONE_SECONDS / 2)) == []
    assert given(it.tick(ALONE_SECONDS)) == [(2, 3)]
    assert isinstance(it.ack(2, now=3)[0], Settled)
    assert isinstance(it.ack(1, now=3)[0], Settled)


def test_a_suspect_that_fails_leaves_its_place_to_the_next_one() -> None:
    it = filled("a", "b")
    die(it, 3)

    assert given(it.failed(1, 3, "life 2", "oops", now=0)) == [(2, 3)]
    it.ack(2, now=0)
    it.attach("life 2", now=10)
    assert given(it.tick(now=10)) == [(1, 4)]


def test_three_deaths_alone_park_a_message_and_its_lane_goes_on() -> None:
    it = filled("a", "a")

    assert given(die(it, 5)) == [(1, 5)]
    dead, after = it.attach("last", now=0)[1:]

    assert isinstance(dead, DeadLetter)
    assert (dead.number, dead.reason) == (1, "5 processes died with it in hand, 3 of them of nothing else")
    assert given([after]) == [(2, 1)]


def test_an_innocent_one_that_died_beside_a_poisonous_one_is_no_dead_letter() -> None:
    it = filled("poison", "innocent", "poison too", "innocent too")

    dead, done = survived(it, deadly={1, 3})

    assert dead == {1, 3}
    assert done == {2, 4}


def test_a_death_beside_others_counts_once_they_have_ended() -> None:
    it = filled("poison", "other")
    die(it, 3)
    it.ack(2, now=0)
    it.add(3, "late", now=0)

    it.attach("life 3", now=0)
    assert it.ack(3, now=0) == [Settled("critic", 3), DeliveryFailure("critic", 1, DeliveryFailures(3, 1))]


def test_a_suspect_whose_deaths_would_do_waits_until_those_beside_it_have_ended_and_no_other_lane_does() -> None:
    it = consumer(state=ConsumerState(deaths={1: DeliveryFailures(2, 2)}))
    it.add(1, "poison", now=0)
    it.add(2, "slow", now=0)
    it.attach("one", now=0)

    assert given(it.attach("two", now=0)) == [(2, 2)]
    assert given(it.add(3, "late", now=0)) == [(3, 1)]
    [settled, dead] = it.ack(2, now=0)
    assert settled == Settled("critic", 2)
    assert isinstance(dead, DeadLetter)
    assert dead.number == 1


def test_a_journal_that_was_away_goes_on_with_what_was_stored() -> None:
    state = ConsumerState(
        floor=2, acknowledged={4}, deaths={3: DeliveryFailures(1, 0)}, served_by="two", fenced=["one"]
    )
    it = consumer(state=state)

    assert [given(it.add(number, "a", now=0)) for number in range(1, 6)] == [[], [], [(3, 2)], [], []]
    assert it.attach("one", now=0) == [Fenced("critic", "one")]
    assert it.attach("three", now=0)[1] == DeliveryFailure("critic", 3, DeliveryFailures(2, 0))


def test_a_dead_letter_is_given_again_ahead_of_what_waits_in_its_lane_and_behind_what_is_in_flight() -> None:
    it = DurableConsumer("critic", ["answer"], max_failures=1)
    for number, lane in enumerate("abaa", 1):
        it.add(number, lane, now=0)
    it.attach("one", now=0)
    failed = it.failed(1, attempt=1, instance="one", reason="bug", now=0)
    assert failed == [DeadLetter("critic", 1, "failed 1 times: bug"), Deliver("critic", 3, 1, "one")]

    assert given(it.redeliver(1, "a", DeliveryFailures(), now=0)) == []
    assert it.redeliver(1, "a", DeliveryFailures(), now=0) == []
    assert given(it.ack(3, now=0)) == [(1, 1)]
    assert it.ack(1, now=0) == [Settled("critic", 1), Deliver("critic", 4, 1, "one")]


def test_a_dead_letter_that_is_given_again_is_behind_nothing_of_a_wide_lane_and_nothing_needs_it() -> None:
    it = DurableConsumer("critic", ["answer"], lane_width=3, max_in_flight=2)
    for number in (5, 6, 7):
        it.add(number, "a", now=0)
    it.attach("one", now=0)
    assert given(it.redeliver(1, "a", DeliveryFailures(), now=0)) == []
    assert it.ack(5, now=0)[1:] == [Deliver("critic", 1, 1, "one")]
    assert it.ack(1, now=0)[1:] == [Deliver("critic", 7, 1, "one", after=6)]


def test_what_killed_processes_is_given_again_alone_in_its_lane() -> None:
    it = DurableConsumer("critic", ["answer"], lane_width=3)
    it.add(1, "a", now=0)
    assert isinstance(die(it, 6)[1], DeadLetter)
    assert given(it.add(2, "a", now=0)) == [(2, 1)]
    assert given(it.redeliver(1, "a", DeliveryFailures(5, 0), now=0)) == []
    assert given(it.ack(2, now=0)) == [(1, 6)]
    assert given(it.add(3, "a", now=0)) == []
    assert given(it.add(4, "b", now=0)) == [(4, 1)]


def test_it_wants_its_subjects_and_their_families() -> None:
    it = consumer()

    assert [it.wants(s) for s in ("answer", "answer.dialog", "tool.result.x", "tool.result")] == [1, 0, 1, 0]


def calls_for_each_acknowledgement(waiting: int) -> float:
    """Python's and C's function calls, so that a busy machine makes no difference."""
    it = filled(*(str(n % 100) for n in range(waiting)), max_in_flight=10)
    it.attach("one", now=0)
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for number in range(1, 101):
            it.ack(number, now=0)
    finally:
        sys.setprofile(None)
    return calls / 100


def test_the_price_of_an_event_does_not_grow_with_what_waits() -> None:
    assert calls_for_each_acknowledgement(10_000) < 2 * calls_for_each_acknowledgement(200)


def test_a_process_that_says_nothing_any_more_is_given_nothing_again_until_it_is_heard() -> None:
    it = filled("a")
    it.attach("one", now=0)
    assert given(it.tick(now=10)) == [(1, 2)]

    assert it.tick(now=100) == []

    assert it.attach("one", now=101) == []
    assert given(it.tick(now=101)) == [(1, 3)]


def test_after_a_lost_connection_what_is_in_flight_is_given_again_soon_unless_it_is_worked_on() -> None:
    it = filled("a", "b")
    it.attach("one", now=0)
    it.hasten(due=3)

    it.working(1, attempt=1, instance="one", now=2)

    assert it.tick(now=2.9) == []
    assert given(it.tick(now=3)) == [(2, 2)]
    assert given(it.tick(now=12)) == [(1, 2)]


def test_a_message_whose_handler_failed_is_given_again_after_pauses_that_grow_while_other_lanes_go_on() -> None:
    it = filled("a", "a", "b", max_in_flight=1)
    it.attach("one", now=0)
    pauses, now = [], 0.0

    for attempt in range(1, 9):
        given_meanwhile = given(it.failed(1, attempt, "one", "oops", now))
        assert given_meanwhile == ([(3, 1)] if attempt == 1 else [])
        if attempt == 1:
            it.ack(3, now)
        due = it.next_due or 0.0
        it.attach("one", due)
        assert given(it.tick(due - 0.01)) == []
        assert given(it.tick(due)) == [(1, attempt + 1)]
        pauses.append(due - now)
        now = due

    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_message_that_fails_too_often_is_a_dead_letter_with_the_last_reason() -> None:
    it = DurableConsumer("critic", ["answer"], ack_wait=1, max_failures=2)
    it.add(1, "a", now=0)
    it.add(2, "a", now=0)
    it.attach("one", now=0)
    it.failed(1, 1, "one", "oops", now=0)
    it.tick(1)

    assert it.failed(1, 2, "one", "oops again", now=1) == [
        DeadLetter("critic", 1, "failed 2 times: oops again"),
        Deliver("critic", 2, 1, "one"),
    ]


def test_what_an_older_attempt_or_another_process_says_of_a_failure_means_nothing() -> None:
    it = filled("a")
    it.attach("one", now=0)

    assert it.failed(1, 2, "one", "oops", now=0) == it.failed(1, 1, "two", "oops", now=0) == []
    assert it.failed(7, 1, "one", "oops", now=0) == []
    assert it.ack(1, now=0) == [Settled("critic", 1)]


def test_the_next_process_is_given_at_once_what_failed_in_the_last_one() -> None:
    it = filled("a")
    it.attach("one", now=0)
    it.failed(1, 1, "one", "oops", now=0)

    assert given(it.attach("two", now=0)) == [(1, 2)]
    assert it.ack(1, now=0) == [Settled("critic", 1)]
    assert it.next_due is None

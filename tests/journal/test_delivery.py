"""What a durable consumer is given and when, what the journal does about each event, and what waits for its commit."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest

from local.bus.envelope import Envelope
from local.bus.message import Delivery
from local.core.errors import MalformedFrame
from local.journal import delivery
from local.journal.delivery import (
    ALONE_SECONDS,
    SUSPECT_AFTER,
    CommitQueue,
    Confirm,
    ConsumerChanges,
    ConsumerDecision,
    ConsumerState,
    DeadLetter,
    Deliver,
    DeliveryCore,
    DeliveryFailure,
    DeliveryFailures,
    DurableConsumer,
    Fenced,
    Serving,
    Settled,
    Suspects,
)

# One durable consumer


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
    assert (dead.number, dead.reason) == (
        1,
        "5 processes died while handling it, 3 of them because of this message alone",
    )
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
    assert calls_for_each_acknowledgement(4_000) < 2 * calls_for_each_acknowledgement(200)


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


# Suspects


def suspects(*numbers: int) -> Suspects:
    """Ready, without a proven death."""
    them = Suspects(max_deaths=3)
    for number in numbers:
        them.put(number, 0)
    return them


def test_one_runs_at_a_time_and_that_with_the_fewest_deaths_is_next() -> None:
    them = suspects(2, 1)
    assert [them.take(0.0), them.take(0.0)] == [1, None]

    them.died([1])
    them.handed_back()
    them.put(1, 1)
    them.put(2, 0)
    assert them.take(0.0) == 2
    assert them.settled(2, is_culprit=False) == []
    assert them.take(0.0) == 1


def test_a_death_that_another_one_is_guilty_of_is_nobody_else_s() -> None:
    them = suspects(1)
    them.take(0.0)
    them.died([1, 2, 3])

    assert them.settled(2, is_culprit=True) == []
    assert them.settled(3, is_culprit=False) == []
    assert them.known[1].deaths == 0


def test_one_that_has_enough_deaths_waits_until_they_are_proven_or_explained() -> None:
    them = suspects(1)
    for _ in range(3):
        them.take(0.0)
        them.died([1, 2])
        them.handed_back()
        them.put(1, 0)

    assert them.take(0.0) is None
    them.settled(2, is_culprit=True)
    assert them.take(0.0) == 1


def test_a_death_is_laid_on_the_one_that_was_begun_last_and_not_on_one_that_had_done_no_harm() -> None:
    them = suspects(1, 2)
    them.take(0.0)
    them.take(ALONE_SECONDS)
    assert them.died([1, 2]) is None
    assert (them.known[1].deaths, them.known[2].deaths) == (0, 1)
    assert them.settled(1, is_culprit=False) == [2]


# All consumers, and confirmations


def message(
    envelope_id: str,
    subject: str = "query",
    *,
    instance: str = "api-1",
    seq: int = 1,
    session_id: str | None = None,
) -> Envelope:
    return Envelope(subject, envelope_id, "api", instance, seq, "", b"{}", session_id=session_id)


@pytest.fixture
def core() -> DeliveryCore:
    """Query is confirmed, everything else recorded; the generator wants queries, the memory queries and tools."""
    core = DeliveryCore(lambda subject: Delivery.CONFIRMED if subject == "query" else Delivery.RECORDED)
    core.register(DurableConsumer("generator", ["query"], ack_wait=10))
    core.register(DurableConsumer("memory", ["query", "tool."], ack_wait=20))
    return core


def test_each_instance_that_waits_is_told_once_for_a_batch_and_the_others_later_together(core: DeliveryCore) -> None:
    batch = [
        message("a"),
        message("b"),
        message("c", "tool.result", seq=1),
        message("d", "tool.result", seq=2),
        message("e", "tool.result", instance="api-2", seq=2),
    ]

    assert core.committed(enumerate(batch, 1), now=0) == [Confirm("api-1", ["a", "b", "c", "d"])]
    core.committed([(6, message("f", "tool.result"))], now=0)
    assert core.confirm_recorded() == [Confirm("api-2", ["e"]), Confirm("api-1", ["f"])]
    assert not core.has_unconfirmed


def test_a_confirmation_has_room_in_a_frame(core: DeliveryCore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MAX_CONFIRMED", 2)
    core.committed(((number, message(f"{number}", "tool.result")) for number in range(1, 6)), now=0)
    assert [confirm.ids for confirm in core.confirm_recorded()] == [["1", "2"], ["3", "4"], ["5"]]


def test_a_repeat_is_confirmed_again_and_delivered_once(core: DeliveryCore) -> None:
    core.attach("generator", "one", now=0)
    assert core.committed([(1, message("a"))], now=0)[:1] == [Deliver("generator", 1, 1, "one")]

    assert core.committed([(1, message("a"))], now=0) == [Confirm("api-1", ["a"])]


def test_every_consumer_gets_what_it_wants_in_its_own_time(core: DeliveryCore) -> None:
    core.committed([(1, message("a", "tool.result")), (2, message("b"))], now=0)

    assert core.attach("generator", "g", now=0)[1:] == [Deliver("generator", 2, 1, "g")]
    assert core.attach("memory", "m", now=5)[1:] == [Deliver("memory", 1, 1, "m"), Deliver("memory", 2, 1, "m")]
    assert core.ack("memory", 2, now=5) == [Settled("memory", 2)]
    assert core.next_due == 10
    assert core.tick(now=10) == [Deliver("generator", 2, 2, "g")]
    core.working("generator", 2, 2, "g", now=18)
    assert core.next_due == 25


def test_a_journal_that_starts_again_confirms_nothing_and_delivers_what_was_not_settled(core: DeliveryCore) -> None:
    core.register(DurableConsumer("generator", ["query"], state=ConsumerState(acknowledged={1}, served_by="g")))

    decisions = [core.recover(number, message(str(number)), now=0) for number in (1, 2)]

    assert decisions == [[], [Deliver("generator", 2, 1, "g")]]


# The queue of what waits for its commit


def envelope(seq: int, payload: bytes = b"{}") -> Envelope:
    return Envelope("query.received", f"{seq}", "you", "there", seq, "q", payload)


@pytest.mark.parametrize(("name", "value"), [("MAX_WAITING", 3), ("MAX_WAITING_BYTES", 20)])
def test_there_is_room_again_when_a_batch_was_taken(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(delivery, name, value)
    queue = CommitQueue(lambda subject: subject == "query.received")
    taken = [queue.add(envelope(seq, b'"12345678"')) for seq in range(5)]
    assert taken == [True, True, True, False, False]
    queue.take()
    assert queue.add(envelope(9))


def test_a_payload_that_is_no_text_is_refused() -> None:
    queue = CommitQueue(lambda subject: subject == "query.received")
    for payload in (b"\xff", b'"\xed\xa0\x80"'):
        with pytest.raises(MalformedFrame, match="not UTF-8"):
            queue.add(envelope(1, payload))
    assert not queue


def test_only_what_somebody_waits_for_is_urgent() -> None:
    queue = CommitQueue(lambda subject: subject == "query.received")
    queue.add(envelope(1)._replace(subject="answer.dialog"))
    queue.note(Settled("critic", 1))
    assert not queue.is_urgent
    queue.add(envelope(2))
    assert queue.is_urgent
    assert len(queue.take().envelopes) == 2
    assert not queue.is_urgent
    queue.note(DeadLetter("critic", 2, "why"))
    assert queue.is_urgent


def test_what_was_decided_about_consumers_goes_into_the_next_commit_and_stays_if_that_fails() -> None:
    queue = CommitQueue(lambda subject: True)
    queue.note(Serving("critic", "one"))
    queue.note(Settled("critic", 1))
    queue.note(DeadLetter("memory", 7, "why"))
    batch = queue.take()
    assert batch.changes["memory"] == ConsumerChanges(dead_letters={7: "why"})
    queue.note(DeliveryFailure("critic", 2, DeliveryFailures(1, 0)))
    queue.put_back_changes(batch)
    again = queue.take()
    assert again.changes["critic"] == ConsumerChanges({1}, {2: DeliveryFailures(1, 0)}, served_by=["one"])
    assert again.dead_letters == [DeadLetter("memory", 7, "why")]
    assert not queue

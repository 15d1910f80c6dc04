"""What the journal does about each event."""

import pytest

from local.errors import UnknownConsumer
from local.journal.core.delivery_core import Confirm, DeliveryCore
from local.journal.core.durable_consumer import ConsumerState, Deliver, DurableConsumer, Serving, Settled
from local.protocol.envelope import Envelope
from local.protocol.message import Delivery


def envelope(envelope_id: str, subject: str = "query", *, instance: str = "api-1", seq: int = 1,
             session_id: str | None = None) -> Envelope:  # fmt: skip
    return Envelope(subject, envelope_id, "api", instance, seq, "", b"{}", session_id=session_id)


@pytest.fixture
def desk() -> DeliveryCore:
    """Query is confirmed, everything else recorded; the generator wants queries, the memory queries and tools."""
    desk = DeliveryCore(lambda subject: Delivery.CONFIRMED if subject == "query" else Delivery.RECORDED)
    desk.register(DurableConsumer("generator", ["query"], ack_wait=10))
    desk.register(DurableConsumer("memory", ["query", "tool."], ack_wait=20))
    return desk


def test_each_publishing_instance_is_told_once_for_a_batch(desk: DeliveryCore) -> None:
    batch = [
        envelope("a"),
        envelope("b"),
        envelope("c", "tool.result", seq=1),
        envelope("d", "tool.result", seq=2),
        envelope("e", "tool.result", instance="api-2", seq=2),
    ]

    assert desk.committed(enumerate(batch, 1), now=0) == [
        Confirm("api-1", ["a", "b"], {"tool.result": 2}),
        Confirm("api-2", [], {"tool.result": 0}),
    ]


def test_who_has_work_to_do_is_told_before_who_has_it_done(desk: DeliveryCore) -> None:
    desk.attach("generator", "one", now=0)
    assert desk.committed([(1, envelope("a"))], now=0) == [Deliver("generator", 1, 1, "one"), Confirm("api-1", ["a"])]


def test_a_repeat_is_confirmed_again_and_delivered_once(desk: DeliveryCore) -> None:
    desk.attach("generator", "one", now=0)
    assert desk.committed([(1, envelope("a"))], now=0)[:1] == [Deliver("generator", 1, 1, "one")]

    assert desk.committed([(1, envelope("a"))], now=0) == [Confirm("api-1", ["a"])]


def test_every_consumer_gets_what_it_wants_in_its_own_time(desk: DeliveryCore) -> None:
    desk.committed([(1, envelope("a", "tool.result")), (2, envelope("b"))], now=0)

    assert desk.attach("generator", "g", now=0)[1:] == [Deliver("generator", 2, 1, "g")]
    assert desk.attach("memory", "m", now=5)[1:] == [Deliver("memory", 1, 1, "m"), Deliver("memory", 2, 1, "m")]
    assert desk.ack("memory", 2, now=5) == [Settled("memory", 2)]
    assert desk.next_due == 10
    assert desk.tick(now=10) == [Deliver("generator", 2, 2, "g")]
    desk.working("generator", 2, 2, "g", now=18)
    assert desk.next_due == 25


def test_a_session_is_a_lane_and_what_has_none_is_ordered_with_nothing(desk: DeliveryCore) -> None:
    desk.attach("generator", "g", now=0)
    batch = [envelope("a", session_id="s"), envelope("b", session_id="s"), envelope("c"), envelope("d")]

    numbers = [d.number for d in desk.committed(enumerate(batch, 1), now=0) if isinstance(d, Deliver)]

    assert numbers == [1, 3, 4]


def test_a_publisher_that_dropped_messages_is_acknowledged_beyond_them(desk: DeliveryCore) -> None:
    desk.committed([(1, envelope("a", "tool.result", seq=5))], now=0)

    assert desk.begins_after("api-1", {"tool.result": 4}) == Confirm("api-1", [], {"tool.result": 5})


def test_a_goodbye_ends_the_deliveries(desk: DeliveryCore) -> None:
    desk.attach("generator", "g", now=0)

    assert desk.detach("generator", "g") == [Serving("generator", None)]
    assert desk.committed([(1, envelope("a"))], now=0) == [Confirm("api-1", ["a"])]


def test_a_journal_that_starts_again_confirms_nothing_and_delivers_what_was_not_settled(desk: DeliveryCore) -> None:
    desk.register(DurableConsumer("generator", ["query"], state=ConsumerState(settled={1}, instance="g")))

    decisions = [desk.recover(number, envelope(str(number)), now=0) for number in (1, 2)]

    assert decisions == [[], [Deliver("generator", 2, 1, "g")]]


def test_an_unknown_consumer_is_an_error_that_names_the_known(desk: DeliveryCore) -> None:
    with pytest.raises(UnknownConsumer, match="no durable consumer critic; there are generator, memory"):
        desk.attach("critic", "one", now=0)

"""What the journal does about each event."""

import pytest

from local.bus.envelope import Envelope
from local.bus.message import Delivery
from local.core.errors import UnknownConsumer
from local.journal import delivery as delivery_core
from local.journal.delivery import Confirm, ConsumerState, Deliver, DeliveryCore, DurableConsumer, Serving, Settled


def envelope(envelope_id: str, subject: str = "query", *, instance: str = "api-1", seq: int = 1,
             session_id: str | None = None) -> Envelope:  # fmt: skip
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
        envelope("a"),
        envelope("b"),
        envelope("c", "tool.result", seq=1),
        envelope("d", "tool.result", seq=2),
        envelope("e", "tool.result", instance="api-2", seq=2),
    ]

    assert core.committed(enumerate(batch, 1), now=0) == [Confirm("api-1", ["a", "b", "c", "d"])]
    core.committed([(6, envelope("f", "tool.result"))], now=0)
    assert core.confirm_recorded() == [Confirm("api-2", ["e"]), Confirm("api-1", ["f"])]
    assert not core.has_unconfirmed


def test_a_confirmation_has_room_in_a_frame(core: DeliveryCore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_core, "MAX_CONFIRMED", 2)
    core.committed(((number, envelope(f"{number}", "tool.result")) for number in range(1, 6)), now=0)
    assert [confirm.ids for confirm in core.confirm_recorded()] == [["1", "2"], ["3", "4"], ["5"]]


def test_who_has_work_to_do_is_told_before_who_has_it_done(core: DeliveryCore) -> None:
    core.attach("generator", "one", now=0)
    assert core.committed([(1, envelope("a"))], now=0) == [Deliver("generator", 1, 1, "one"), Confirm("api-1", ["a"])]


def test_a_repeat_is_confirmed_again_and_delivered_once(core: DeliveryCore) -> None:
    core.attach("generator", "one", now=0)
    assert core.committed([(1, envelope("a"))], now=0)[:1] == [Deliver("generator", 1, 1, "one")]

    assert core.committed([(1, envelope("a"))], now=0) == [Confirm("api-1", ["a"])]


def test_every_consumer_gets_what_it_wants_in_its_own_time(core: DeliveryCore) -> None:
    core.committed([(1, envelope("a", "tool.result")), (2, envelope("b"))], now=0)

    assert core.attach("generator", "g", now=0)[1:] == [Deliver("generator", 2, 1, "g")]
    assert core.attach("memory", "m", now=5)[1:] == [Deliver("memory", 1, 1, "m"), Deliver("memory", 2, 1, "m")]
    assert core.ack("memory", 2, now=5) == [Settled("memory", 2)]
    assert core.next_due == 10
    assert core.tick(now=10) == [Deliver("generator", 2, 2, "g")]
    core.working("generator", 2, 2, "g", now=18)
    assert core.next_due == 25


def test_a_session_is_a_lane_and_what_has_none_is_ordered_with_nothing(core: DeliveryCore) -> None:
    core.attach("generator", "g", now=0)
    batch = [envelope("a", session_id="s"), envelope("b", session_id="s"), envelope("c"), envelope("d")]

    numbers = [d.number for d in core.committed(enumerate(batch, 1), now=0) if isinstance(d, Deliver)]

    assert numbers == [1, 3, 4]


def test_a_goodbye_ends_the_deliveries(core: DeliveryCore) -> None:
    core.attach("generator", "g", now=0)

    assert core.detach("generator", "g") == [Serving("generator", None)]
    assert core.committed([(1, envelope("a"))], now=0) == [Confirm("api-1", ["a"])]


def test_a_journal_that_starts_again_confirms_nothing_and_delivers_what_was_not_settled(core: DeliveryCore) -> None:
    core.register(DurableConsumer("generator", ["query"], state=ConsumerState(acknowledged={1}, served_by="g")))

    decisions = [core.recover(number, envelope(str(number)), now=0) for number in (1, 2)]

    assert decisions == [[], [Deliver("generator", 2, 1, "g")]]


def test_an_unknown_consumer_is_an_error_that_names_the_known(core: DeliveryCore) -> None:
    with pytest.raises(UnknownConsumer, match="no durable consumer critic; there are generator, memory"):
        core.attach("critic", "one", now=0)

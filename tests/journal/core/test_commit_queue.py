"""What waits for its commit: in order, bounded, and nothing that could be given to nobody."""

import pytest

from local.bus.envelope import Envelope
from local.core.errors import MalformedFrame
from local.journal import delivery as delivery_core
from local.journal.delivery import (
    MAX_BATCH,
    CommitQueue,
    ConsumerChanges,
    DeadLetter,
    DeliveryFailure,
    DeliveryFailures,
    Serving,
    Settled,
)


def envelope(seq: int, payload: bytes = b"{}") -> Envelope:
    return Envelope("query.received", f"{seq}", "you", "there", seq, "q", payload)


def test_batches_are_taken_in_the_order_of_arrival() -> None:
    queue = CommitQueue(lambda subject: subject == "query.received")
    for seq in range(MAX_BATCH + 2):
        assert queue.add(envelope(seq))
    assert [each.seq for each in queue.take().envelopes] == list(range(MAX_BATCH))
    assert [each.seq for each in queue.take().envelopes] == [MAX_BATCH, MAX_BATCH + 1]
    assert not queue.take()
    assert not queue


@pytest.mark.parametrize(("name", "value"), [("MAX_WAITING", 3), ("MAX_WAITING_BYTES", 20)])
def test_there_is_room_again_when_a_batch_was_taken(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(delivery_core, name, value)
    queue = CommitQueue(lambda subject: subject == "query.received")
    taken = [queue.add(envelope(seq, b'"12345678"')) for seq in range(5)]
    assert taken == [True, True, True, False, False]
    queue.take()
    assert queue.add(envelope(9))


def test_a_payload_that_is_no_text_is_refused() -> None:
    queue = CommitQueue(lambda subject: subject == "query.received")
    for payload in (b"\xff", b'"\xed\xa0\x80"'):
        with pytest.raises(MalformedFrame, match="no UTF-8"):
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

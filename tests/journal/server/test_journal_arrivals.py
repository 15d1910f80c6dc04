"""What waits for its commit: in order, bounded, and nothing that could be given to nobody."""

import pytest

from local.errors import MalformedFrame
from local.journal.server import commit_queue
from local.journal.server.commit_queue import MAX_BATCH, JournalArrivals
from local.protocol.envelope import Envelope


def envelope(seq: int, payload: bytes = b"{}") -> Envelope:
    return Envelope("query.received", f"{seq}", "you", "there", seq, "q", payload)


def test_batches_are_taken_in_the_order_of_arrival() -> None:
    arrivals = JournalArrivals()
    for seq in range(MAX_BATCH + 2):
        assert arrivals.add(envelope(seq))
    assert [each.seq for each in arrivals.take_batch()] == list(range(MAX_BATCH))
    assert [each.seq for each in arrivals.take_batch()] == [MAX_BATCH, MAX_BATCH + 1]
    assert arrivals.take_batch() == []
    assert not arrivals


@pytest.mark.parametrize(("name", "value"), [("MAX_WAITING", 3), ("MAX_WAITING_BYTES", 20)])
def test_there_is_room_again_when_a_batch_was_taken(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(commit_queue, name, value)
    arrivals = JournalArrivals()
    taken = [arrivals.add(envelope(seq, b'"12345678"')) for seq in range(5)]
    assert taken == [True, True, True, False, False]
    arrivals.take_batch()
    assert arrivals.add(envelope(9))


def test_a_payload_that_is_no_text_is_refused() -> None:
    arrivals = JournalArrivals()
    for payload in (b"\xff", b'"\xed\xa0\x80"'):
        with pytest.raises(MalformedFrame, match="no UTF-8"):
            arrivals.add(envelope(1, payload))
    assert not arrivals

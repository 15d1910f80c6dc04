"""Recorded messages on the publisher's side: kept until they are acknowledged, within bounds."""

from local.journal.client.recorded_buffer import WINDOW, Overdue, RecordedBuffer


def filled(count: int, *, max_count: int = 10_000, max_bytes: int = 1_000_000) -> RecordedBuffer:
    """Seqs 1 … count of one subject, sent at 0, 1, 2 … ms."""
    buffer = RecordedBuffer(max_count, max_bytes)
    for seq in range(1, count + 1):
        buffer.sent("agent.transition", seq, b"%03d" % seq, now=(seq - 1) / 1000)
    return buffer


def test_an_acknowledgement_covers_everything_up_to_it_on_its_subject_alone() -> None:
    buffer = filled(3)
    buffer.sent("answer.dialog", 1, b"dialog", now=0)

    buffer.acknowledged({"agent.transition": 2, "tool.schema": 9})

    assert buffer.due(now=9).frames == [b"003", b"dialog"]


def test_what_is_not_acknowledged_within_the_pause_is_sent_again_and_again() -> None:
    buffer = filled(2)

    assert buffer.due(now=0.4) == Overdue()
    assert buffer.next_due == 0.5
    assert buffer.due(now=0.5).frames == [b"001"]
    assert buffer.due(now=0.75).frames == [b"002"]
    assert buffer.due(now=1).frames == [b"001"]


def test_a_resend_tells_the_journal_where_the_buffer_begins() -> None:
    buffer = filled(3)
    buffer.acknowledged({"agent.transition": 1})

    assert buffer.due(now=9).floors == {"agent.transition": 1}


def test_only_a_window_is_sent_again_and_an_acknowledgement_makes_the_next_due() -> None:
    buffer = filled(WINDOW + 5)

    assert len(buffer.due(now=9).frames) == WINDOW
    assert buffer.due(now=9.1).frames == []
    buffer.acknowledged({"agent.transition": 3})
    assert buffer.due(now=9.1).frames == [b"257", b"258", b"259"]


def test_too_many_drop_the_oldest_with_one_reported_gap() -> None:
    buffer = filled(5, max_count=3)

    overdue = buffer.due(now=1)

    assert overdue == Overdue([b"003", b"004", b"005"], {"agent.transition": 2}, {"agent.transition": 2})
    assert buffer.due(now=2).gaps == {}


def test_too_many_bytes_drop_the_oldest_but_never_the_newest() -> None:
    buffer = filled(5, max_bytes=7)
    assert len(buffer) == 2

    buffer.sent("agent.transition", 6, b"more than seven", now=0)
    assert buffer.due(now=9).frames == [b"more than seven"]


def test_a_gap_is_reported_even_when_everything_else_was_acknowledged() -> None:
    buffer = filled(5, max_count=3)
    buffer.acknowledged({"agent.transition": 5})

    assert len(buffer) == 0
    assert buffer.next_due is not None
    assert buffer.due(buffer.next_due).gaps == {"agent.transition": 2}
    assert buffer.next_due is None

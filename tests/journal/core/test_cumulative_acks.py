"""Up to which number a stream of recorded messages has come in."""

from local.journal.core.cumulative_acks import CumulativeAcks


def test_a_hole_holds_the_acknowledgement_back_until_it_is_filled() -> None:
    acks = CumulativeAcks()

    assert [acks.committed("one", "tool.schema", seq) for seq in (1, 3, 4, 4, 2, 1)] == [1, 1, 1, 1, 4, 4]


def test_instances_and_subjects_are_counted_apart() -> None:
    acks = CumulativeAcks()
    acks.committed("one", "tool.schema", 1)

    assert acks.committed("one", "tool.schema.request", 2) == 0
    assert acks.committed("two", "tool.schema", 2) == 0


def test_what_will_not_come_any_more_is_no_hole() -> None:
    acks = CumulativeAcks()
    acks.committed("one", "tool.schema", 7)

    assert acks.begins_after("one", "tool.schema", 6) == 7
    assert acks.begins_after("one", "tool.schema", 2) == 7


def test_a_forgotten_stream_is_mended_by_its_publishers_word() -> None:
    acks = CumulativeAcks(max_streams=2)
    for instance in ("one", "two", "three"):
        acks.committed(instance, "tool.schema", 1)

    assert acks.committed("one", "tool.schema", 2) == 0
    assert acks.begins_after("one", "tool.schema", 1) == 2

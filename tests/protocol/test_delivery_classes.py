"""Every message is kept, or not, as the protocol's table says."""

import pytest

from local.bus.message import Delivery, delivery_of, kept_subjects

CONFIRMED = ["query.received", "query.accepted", "query.failed", "query.cancel", "response.generation"]
RECORDED = [
    *["tool.schema", "tool.schema.request", "tool.request.web_search", "tool.result.web_search", "answer.dialog"],
    *["agent.transition", "bus.gap", "bus.dead", "something.new"],
]
EPHEMERAL = [
    *["generation.thinking", "generation.token", "participant.status", "bus.probe.x"],
    *["journal.opened", "journal.confirmed.x", "journal.attach", "journal.detach"],
    *["journal.fenced.x", "journal.deliver.x", "journal.ack", "journal.working"],
    *["journal.read", "journal.entries", "journal.redact", "journal.redacted"],
]


@pytest.mark.parametrize(
    ("delivery", "subjects"),
    [(Delivery.CONFIRMED, CONFIRMED), (Delivery.RECORDED, RECORDED), (Delivery.EPHEMERAL, EPHEMERAL)],
    ids=str,
)
def test_each_subject_has_the_class_of_the_table(delivery: Delivery, subjects: list[str]) -> None:
    assert {subject: delivery_of(subject) for subject in subjects} == dict.fromkeys(subjects, delivery)


def test_the_journal_hears_everything_that_is_to_be_kept_and_nothing_else() -> None:
    kept = kept_subjects()
    for subject in [*CONFIRMED, *RECORDED[:-1]]:
        assert any(subject == each or (each.endswith(".") and subject.startswith(each)) for each in kept), subject
    for subject in EPHEMERAL:
        assert not any(subject == each or (each.endswith(".") and subject.startswith(each)) for each in kept), subject

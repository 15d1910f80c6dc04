"""Which envelopes a tap shows."""

from __future__ import annotations

import pytest

from local.bus.envelope import Envelope
from local.cli.tap import BadSubject, Selection


def envelope(subject: str, *, correlation_id: str = "q1", session_id: str | None = "s1") -> Envelope:
    return Envelope(subject, "id", "sender", "instance", 1, correlation_id, b"{}", session_id=session_id)


@pytest.mark.parametrize(
    ("pattern", "shown", "hidden"),
    [
        ("tool.schema", ["tool.schema"], ["tool.schema.request", "tool", "a.tool.schema"]),
        ("tool.", ["tool.schema", "tool.request.web_search"], ["toolbox.x", "query.received"]),
        ("tool.*.web_search", ["tool.request.web_search", "tool.result.web_search"], ["tool.request.web_fetch"]),
        ("gen*", ["generation.token", "generation.thinking"], ["query.received"]),
        ("*", ["participant.status", "bus.gap"], []),
        ("", ["participant.status", "bus.gap"], []),
    ],
)
def test_a_subject_filter_is_a_subject_a_family_or_a_pattern(pattern: str, shown: list[str], hidden: list[str]) -> None:
    selection = Selection((pattern,))
    assert [selection.wants(envelope(subject)) for subject in shown] == [True] * len(shown)
    assert [selection.wants(envelope(subject)) for subject in hidden] == [False] * len(hidden)


def test_several_subjects_are_shown_side_by_side() -> None:
    selection = Selection(("query.", "bus.gap"))
    assert selection.wants(envelope("query.failed")) and selection.wants(envelope("bus.gap"))
    assert not selection.wants(envelope("bus.dead"))


@pytest.mark.parametrize("subject", ["participant.status", "journal.deliver.memory", "model.lease.claim"])
def test_without_a_filter_everything_but_the_upkeep_is_shown(subject: str) -> None:
    assert Selection().wants(envelope("generation.token"))
    assert Selection().wants(envelope("journalist.x"))
    assert not Selection().wants(envelope(subject))
    assert Selection(("*",)).wants(envelope(subject))


def test_session_and_query_are_told_by_the_header() -> None:
    assert Selection(session_id="s1").wants(envelope("bus.gap"))
    assert not Selection(session_id="s1").wants(envelope("bus.gap", session_id=None))
    assert Selection(query_id="q1").wants(envelope("bus.gap"))
    assert not Selection(query_id="q1").wants(envelope("bus.gap", correlation_id="q2"))


@pytest.mark.parametrize(
    ("patterns", "subscriptions"),
    [
        ((), [""]),
        (("tool.", "tool.request.web_search", "tool.*.x"), ["tool."]),
        (("tool.schema", "tool.schema.request"), ["tool.schema", "tool.schema.request"]),
        (("gen*", "bus.gap"), [""]),
        (("tool.re*.web_search", "bus.gap"), ["bus.gap", "tool."]),
    ],
)
def test_it_subscribes_to_no_more_than_it_needs_and_to_nothing_twice(
    patterns: tuple[str, ...], subscriptions: list[str]
) -> None:
    assert Selection(patterns).subscriptions() == subscriptions


def test_a_subject_that_no_message_can_have_is_refused() -> None:
    with pytest.raises(BadSubject, match=r"'query received'.*expected a subject"):
        Selection(("query received",))

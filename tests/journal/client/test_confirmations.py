"""Confirmed messages on the publisher's side: resent until the journal names them, given up in the end."""

from local.journal.client.confirmations import Confirmations, GiveUp, Resend


def pending(*ids: str, seconds: float = 60) -> Confirmations:
    """All sent at 0."""
    confirmations = Confirmations()
    for envelope_id in ids:
        confirmations.sent(envelope_id, "query.received", envelope_id.encode(), now=0, seconds=seconds)
    return confirmations


def test_a_confirmed_message_is_awaited_no_more() -> None:
    confirmations = pending("a", "b")

    assert confirmations.confirmed(["a", "of somebody else", "a"]) == ["a"]
    assert confirmations.due(now=0.1) == [Resend(b"b")]
    assert len(confirmations) == 1


def test_the_same_frame_is_sent_again_after_pauses_that_double_up_to_a_second() -> None:
    confirmations = pending("a")

    times = []
    for _ in range(7):
        now = confirmations.next_due
        assert now is not None
        times.append(round(now, 1))
        assert confirmations.due(now) == [Resend(b"a")]

    assert times == [0.1, 0.3, 0.7, 1.5, 2.5, 3.5, 4.5]


def test_nothing_is_sent_again_before_its_time() -> None:
    assert pending("a").due(now=0.09) == []


def test_it_gives_up_when_its_seconds_are_over_and_says_so_once() -> None:
    confirmations = pending("a", seconds=0.25)
    confirmations.due(now=0.1)

    (decision,) = confirmations.due(now=0.25)

    assert isinstance(decision, GiveUp)
    assert decision.envelope_id == "a"
    assert str(decision.error).startswith("query.received: the journal did not confirm it within 0.25 s")
    assert confirmations.next_due is None
    assert confirmations.due(now=9) == []


def test_a_late_confirmation_of_what_was_given_up_is_nobodys() -> None:
    confirmations = pending("a", seconds=1)
    confirmations.due(now=1)

    assert confirmations.confirmed(["a"]) == []


def test_what_nobody_waits_for_is_not_sent_again() -> None:
    confirmations = pending("a")
    confirmations.forget("a")

    assert confirmations.next_due is None


def test_a_journal_that_comes_back_gets_everything_at_once() -> None:
    confirmations = pending("a", "b")
    for now in (0.1, 0.3, 0.7):
        confirmations.due(now)

    confirmations.journal_is_back(now=0.8)

    assert confirmations.due(now=0.8) == [Resend(b"a"), Resend(b"b")]
    assert confirmations.next_due == 0.9

"""Who was it? Several suspects, and those that ran beside them."""

from local.journal.delivery import ALONE_SECONDS, Suspects


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


def test_a_death_with_nothing_beside_is_proven_at_once() -> None:
    them = suspects(1)
    them.take(0.0)

    assert them.died([1]) == 1


def test_a_death_beside_others_is_proven_when_the_last_of_them_has_ended() -> None:
    them = suspects(1)
    them.take(0.0)

    assert them.died([1, 2, 3]) is None
    assert them.settled(2, is_culprit=False) == []
    assert them.settled(3, is_culprit=False) == [1]


def test_a_death_that_another_one_is_guilty_of_is_nobody_else_s() -> None:
    them = suspects(1)
    them.take(0.0)
    them.died([1, 2, 3])

    assert them.settled(2, is_culprit=True) == []
    assert them.settled(3, is_culprit=False) == []
    assert them.known[1].deaths == 0


def test_the_end_of_one_proves_every_death_that_it_alone_was_beside() -> None:
    them = suspects(1)
    for _ in range(2):
        them.take(0.0)
        them.died([1, 2])
        them.handed_back()
        them.put(1, 0)

    assert them.settled(2, is_culprit=False) == [1, 1]


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


def test_the_next_one_runs_beside_one_that_has_done_no_harm_for_a_while() -> None:
    """It may wait for what the next one does, as a turn does for its agents'."""
    them = suspects(1, 2)
    assert them.next_due is None
    assert (them.take(0.0), them.take(ALONE_SECONDS / 2), them.next_due) == (1, None, ALONE_SECONDS)
    assert (them.take(ALONE_SECONDS), them.next_due) == (2, None)


def test_a_death_is_laid_on_the_one_that_was_begun_last_and_not_on_one_that_had_done_no_harm() -> None:
    them = suspects(1, 2)
    them.take(0.0)
    them.take(ALONE_SECONDS)
    assert them.died([1, 2]) is None
    assert (them.known[1].deaths, them.known[2].deaths) == (0, 1)
    assert them.settled(1, is_culprit=False) == [2]


def test_when_the_later_one_has_ended_the_earlier_one_is_blamed_again() -> None:
    them = suspects(1, 2)
    them.take(0.0)
    them.take(ALONE_SECONDS)
    them.settled(2, is_culprit=False)
    assert them.died([1]) == 1

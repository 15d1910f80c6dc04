"""Who was it? Several suspects, and those that ran beside them."""

from local.journal.core.suspects import Suspects


def suspects(*numbers: int) -> Suspects:
    """Ready, without a proven death."""
    them = Suspects(max_deaths=3)
    for number in numbers:
        them.put(number, 0)
    return them


def test_one_runs_at_a_time_and_that_with_the_fewest_deaths_is_next() -> None:
    them = suspects(2, 1)
    assert [them.take(), them.take()] == [1, None]

    them.died([1])
    them.handed_back()
    them.put(1, 1)
    them.put(2, 0)
    assert them.take() == 2
    assert them.settled(2, is_culprit=False) == []
    assert them.take() == 1


def test_a_death_with_nothing_beside_is_proven_at_once() -> None:
    them = suspects(1)
    them.take()

    assert them.died([1]) == 1


def test_a_death_beside_others_is_proven_when_the_last_of_them_has_ended() -> None:
    them = suspects(1)
    them.take()

    assert them.died([1, 2, 3]) is None
    assert them.settled(2, is_culprit=False) == []
    assert them.settled(3, is_culprit=False) == [1]


def test_a_death_that_another_one_is_guilty_of_is_nobody_else_s() -> None:
    them = suspects(1)
    them.take()
    them.died([1, 2, 3])

    assert them.settled(2, is_culprit=True) == []
    assert them.settled(3, is_culprit=False) == []
    assert them.known[1].deaths == 0


def test_the_end_of_one_proves_every_death_that_it_alone_was_beside() -> None:
    them = suspects(1)
    for _ in range(2):
        them.take()
        them.died([1, 2])
        them.handed_back()
        them.put(1, 0)

    assert them.settled(2, is_culprit=False) == [1, 1]


def test_one_that_has_enough_deaths_waits_until_they_are_proven_or_explained() -> None:
    them = suspects(1)
    for _ in range(3):
        them.take()
        them.died([1, 2])
        them.handed_back()
        them.put(1, 0)

    assert them.take() is None
    them.settled(2, is_culprit=True)
    assert them.take() == 1

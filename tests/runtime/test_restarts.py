"""When a dead child is started again."""

from local.runtime.supervisor import EARLY_SECONDS, RestartPolicy


def test_the_first_restart_is_immediate_and_the_next_ones_wait_twice_as_long_each_time() -> None:
    policy = RestartPolicy()

    assert [policy.died(lived=1.0) for _ in range(4)] == [0, 0.1, 0.2, 0.4]


def test_a_child_that_dies_early_five_times_in_a_row_is_given_up_and_tried_again_ever_more_rarely() -> None:
    policy = RestartPolicy()

    assert [(policy.died(lived=EARLY_SECONDS) > 0.4, policy.has_given_up) for _ in range(5)] == [
        *[(False, False)] * 4,
        (True, True),
    ]
    assert [policy.died(lived=1.0) for _ in range(4)] == [10, 20, 30, 30]


def test_what_only_a_person_can_mend_is_given_up_at_once_and_tried_again_as_others_are() -> None:
    policy = RestartPolicy()

    assert [policy.died(lived=None, is_hopeless=True) for _ in range(5)] == [5, 10, 20, 30, 30]
    assert policy.has_given_up


def test_a_longer_life_clears_the_record() -> None:
    policy = RestartPolicy()
    for _ in range(7):
        policy.died(lived=None)

    assert policy.died(lived=EARLY_SECONDS + 0.1) == 0
    assert not policy.has_given_up
    assert [policy.died(lived=None) for _ in range(5)] == [0, 0.1, 0.2, 0.4, 5]

"""The line for one model server: its places, whose turn it is, who has to make room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from local.agents.arbiter import SILENT_SECONDS, ModelLine


def test_a_server_gets_no_more_calls_than_it_serves_at_once() -> None:
    line = ModelLine(2)
    line.claimed("critic", 0, [], ["c1", "c2", "c3"], 0.0)
    assert (line.granted, line.waiting) == (("c1", "c2"), ("c3",))


def test_who_came_first_is_served_first() -> None:
    line = ModelLine(1)
    for instance in ("a", "b", "c"):
        line.claimed(instance, 0, [], [f"{instance}1"], 0.0)
    line.claimed("a", 0, [], [], 1.0)
    assert (line.granted, line.waiting) == (("b1",), ("c1",))


def test_while_a_user_waits_nothing_is_granted() -> None:
    line = ModelLine(1)
    line.claimed("generator", 1, [], ["summary"], 0.0)
    assert (line.granted, line.waiting) == ((), ("summary",))
    line.claimed("generator", 0, [], ["summary"], 1.0)
    assert line.granted == ("summary",)


def test_a_users_turn_takes_the_place_of_the_youngest_lease() -> None:
    line = ModelLine(2)
    line.claimed("critic", 0, [], ["c1", "c2"], 0.0)
    line.claimed("generator", 1, [], [], 1.0)
    assert (line.granted, line.revoked) == (("c1",), ("c2",))


def test_a_revoked_lease_keeps_its_place_until_it_has_stopped_and_is_then_the_next() -> None:
    line = ModelLine(1)
    line.claimed("critic", 0, ["c1"], ["c2"], 0.0)
    line.claimed("generator", 1, [], [], 1.0)
    line.claimed("critic", 0, ["c1"], ["c2"], 2.0)
    assert (line.revoked, line.waiting) == (("c1",), ("c2",))
    line.claimed("critic", 0, [], ["c1", "c2"], 3.0)
    assert (line.revoked, line.waiting) == ((), ("c1", "c2"))
    line.claimed("generator", 0, [], [], 4.0)
    assert (line.granted, line.waiting) == (("c1",), ("c2",))


def test_a_lease_that_had_not_stopped_when_the_user_was_answered_goes_on() -> None:
    line = ModelLine(1)
    line.claimed("critic", 0, ["c1"], [], 0.0)
    line.claimed("generator", 1, [], [], 1.0)
    line.claimed("generator", 0, [], [], 2.0)
    assert (line.granted, line.revoked) == (("c1",), ())


def test_a_claim_that_crosses_the_grant_does_not_undo_it() -> None:
    line = ModelLine(1)
    line.claimed("critic", 0, [], ["c1"], 0.0)
    line.claimed("critic", 0, [], ["c1"], 0.5)
    assert (line.granted, line.waiting) == (("c1",), ())


def test_who_is_silent_has_lost_its_leases_and_its_turns() -> None:
    line = ModelLine(1)
    line.claimed("critic", 0, ["c1"], [], 0.0)
    line.claimed("generator", 1, [], [], 0.0)
    line.claimed("memory", 0, [], ["m1"], SILENT_SECONDS)
    line.forget_silent(SILENT_SECONDS + 0.1)
    assert (line.turns, line.granted, line.revoked, line.waiting) == (0, ("m1",), (), ())


def test_a_new_arbiter_leaves_what_runs_alone() -> None:
    line = ModelLine(1)
    line.claimed("memory", 0, [], ["m1"], 0.0)
    line.claimed("critic", 0, ["c1"], [], 0.1)
    assert (line.granted, line.revoked) == (("c1",), ("m1",))


def test_a_line_that_nobody_uses_is_empty() -> None:
    line = ModelLine(1)
    line.claimed("critic", 0, ["c1"], ["c2"], 0.0)
    assert line.is_wanted
    line.claimed("critic", 0, [], [], 1.0)
    assert not line.is_wanted
    assert (line.granted, line.waiting) == ((), ())


@given(
    slots=st.integers(1, 3),
    claims=st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 3),
            st.lists(st.tuples(st.integers(0, 3), st.booleans()), unique_by=lambda lease: lease[0]),
        ),
        max_size=30,
    ),
)
def test_whatever_is_claimed_every_lease_stands_in_one_place_and_none_is_idle(slots, claims) -> None:  # type: ignore[no-untyped-def]
    line, wanted = ModelLine(slots), {}
    for now, (instance, turns, leases) in enumerate(claims):
        running = [f"{instance}{number}" for number, runs in leases if runs]
        waiting = [f"{instance}{number}" for number, runs in leases if not runs]
        line.claimed(instance, turns, running, waiting, float(now))
        wanted[instance] = (turns, {*running, *waiting})
        standing = [*line.granted, *line.revoked, *line.waiting]
        assert sorted(standing) == sorted(lease for _, some in wanted.values() for lease in some)
        assert line.turns == sum(turns for turns, _ in wanted.values())
        places = max(0, slots - line.turns)
        assert len(line.granted) <= places
        assert len(line.granted) + len(line.revoked) >= min(places, len(standing))

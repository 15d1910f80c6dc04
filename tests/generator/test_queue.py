"""Whose turn it is."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from local.generator.queue import SessionQueue

MAX_RUNNING, MAX_WAITING = 3, 2
SESSIONS = st.sampled_from(["red", "green", "blue", "white", "black"])


class LineAgainstModel(RuleBasedStateMachine):
    """The model: one list of who waits, in order of arrival, and the set of who runs."""

    def __init__(self) -> None:
        super().__init__()
        self.line = SessionQueue(MAX_RUNNING, MAX_WAITING)
        self.session_of: dict[str, str] = {}
        self.waiting: list[str] = []
        self.running: list[str] = []
        self.expected: list[str] = []

    def begin(self, started: list[str]) -> None:
        free, busy = MAX_RUNNING - len(self.running), {self.session_of[query] for query in self.running}
        wanted: list[str] = []
        for query in self.waiting:
            if len(wanted) < free and self.session_of[query] not in busy:
                wanted.append(query)
                busy.add(self.session_of[query])
        assert started == wanted
        self.waiting = [query for query in self.waiting if query not in started]
        self.running += started

    @rule(session=SESSIONS)
    def expect(self, session: str) -> None:
        query = f"q{len(self.session_of)}"
        present = [*self.waiting, *self.running, *self.expected]
        has_room = sum(self.session_of[other] == session for other in present) <= MAX_WAITING
        assert self.line.expect(query, session) == has_room
        if has_room:
            self.session_of[query] = session
            self.expected.append(query)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        query = data.draw(st.sampled_from(self.expected))
        self.expected.remove(query)
        self.waiting.append(query)
        self.begin(self.line.arrive(query, self.session_of[query]))

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def stay_away(self, data: st.DataObject) -> None:
        query = data.draw(st.sampled_from(self.expected))
        self.expected.remove(query)
        self.line.expect_no_more(query)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        query = data.draw(st.sampled_from(self.running))
        self.running.remove(query)
        self.begin(self.line.done(query))

    @precondition(lambda self: self.session_of)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        query = data.draw(st.sampled_from(sorted(self.session_of)))
        assert self.line.leave(query) == (query in self.waiting)
        self.waiting = [other for other in self.waiting if other != query]

    @invariant()
    def never_two_turns_of_a_session_and_never_too_many(self) -> None:
        sessions = [self.session_of[query] for query in self.running]
        assert len(sessions) == len(set(sessions))
        assert len(self.running) <= MAX_RUNNING
        assert len(self.line) == len(self.waiting)

    def teardown(self) -> None:
        """Nothing is forgotten: once everybody is done in turn, everybody has run."""
        while self.running:
            query = self.running.pop(0)
            self.begin(self.line.done(query))
        assert self.waiting == []


TestLineAgainstModel = LineAgainstModel.TestCase
TestLineAgainstModel.settings = settings(stateful_step_count=30)


def test_without_room_to_wait_an_idle_session_is_still_served() -> None:
    line = SessionQueue(max_running=1, max_waiting=0)
    assert line.expect("one", "s")
    assert line.arrive("one", "s") == ["one"]
    assert not line.expect("two", "s")
    assert line.expect("three", "other")
    assert not line.expect("four", "other")
    line.expect_no_more("three")
    assert line.expect("four", "other")  # a place that is given up is free again

"""The decisions of the tree of agents, without I/O."""

from __future__ import annotations

import itertools

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import AnswerOptions, AnswerProfile
from local.core.errors import ToolError
from local.swarm.agents import (
    Agent,
    AgentSpec,
    AgentState,
    AgentTree,
    Asking,
    GivenTask,
    Mailbox,
    Outcome,
    RootQuery,
    SwarmConfig,
    TaskOrder,
)
from local.swarm.runner import options_of

NOW = 1000.0


class Grove:
    """A tree with a user's query, and calls with numbers of their own."""

    def __init__(self, **settings: object) -> None:
        self.tree = AgentTree(SwarmConfig.model_validate(settings))
        self.root = self.tree.begin(RootQuery(query_id="q", session_id="s", question="Why?"))
        self._calls = itertools.count()

    def make(self, asking: Asking | None = None, parts: int = 1, **order: object) -> Agent:
        wanted = AgentSpec.model_validate({"name": "agent", **order})
        return self.tree.make(asking or self.root, wanted, f"c{next(self._calls)}", 0, NOW, parts)

    def give(self, agent: Agent, asking: Asking | None = None, **order: object) -> GivenTask:
        wanted = TaskOrder.model_validate({"text": "Do", "call_id": f"c{next(self._calls)}", **order})
        return self.tree.assign(agent, asking or self.root, wanted, NOW)

    def asking(self, agent: Agent) -> Asking:
        """As an agent that works asks."""
        found = self.tree.asking(self.give(agent).query_id)
        assert found is not None
        return found


def kind(error: pytest.ExceptionInfo[ToolError]) -> str:
    return error.value.kind


def test_three_deep_is_the_end() -> None:
    grove, asking = Grove(), None
    for depth in (1, 2, 3):
        agent = grove.make(asking)
        assert agent.depth == depth
        asking = grove.asking(agent)
    with pytest.raises(ToolError) as refused:
        grove.make(asking)
    assert kind(refused) == "too_deep"


def test_no_more_agents_at_once_than_the_settings_say() -> None:
    grove = Grove(children=2)
    first, _ = grove.make(), grove.make()
    with pytest.raises(ToolError) as refused:
        grove.make()
    assert kind(refused) == "too_many_agents"
    grove.tree.stop(first.agent_id, NOW)
    assert grove.make().state is AgentState.READY


def test_one_question_has_so_many_agents_in_all() -> None:
    grove = Grove(agents=3)
    for _ in range(3):
        grove.tree.stop(grove.make().agent_id, NOW)
    with pytest.raises(ToolError) as refused:
        grove.make()
    assert kind(refused) == "too_many_agents"


def test_what_agents_may_use_is_never_more_than_their_parent_has() -> None:
    grove = Grove(tokens=100_000, calls=100, agent_tokens=1_000_000, agent_calls=1000)
    made = [grove.make(parts=4 - index) for index in range(4)]
    assert [each.budget.tokens for each in made] == [20_000] * 4
    assert [each.budget.calls for each in made] == [20] * 4
    asking = grove.asking(made[0])
    children = [grove.make(asking, tokens=50_000, seconds=10_000) for _ in range(3)]
    assert sum(each.budget.tokens for each in children) <= 20_000
    assert all(each.ends_by <= made[0].ends_by for each in children)


def test_what_was_not_used_is_there_again() -> None:
    grove = Grove(tokens=10_000)
    agent = grove.make(tokens=5_000, passing=True)
    assert grove.tree.left(grove.root, NOW).tokens == 5_000
    task = grove.give(agent)
    grove.tree.ended(task.query_id, Outcome(state="answered", answer="x", tokens=700, calls=2), NOW)
    grove.tree.leave(agent.agent_id, NOW)
    left = grove.tree.left(grove.root, NOW)
    assert (left.tokens, left.calls) == (9_300, 498)


def test_without_tokens_or_time_nothing_is_made_or_asked() -> None:
    grove = Grove(tokens=1500)
    with pytest.raises(ToolError) as refused:
        grove.make()
    assert kind(refused) == "no_budget"
    grove = Grove(tokens=6000)
    agent = grove.make(tokens=2000)
    grove.tree.ended(grove.give(agent).query_id, Outcome(state="answered", answer="x", tokens=1500), NOW)
    with pytest.raises(ToolError) as refused:
        grove.give(agent)
    assert kind(refused) == "no_budget"


@pytest.mark.parametrize(
    ("parents", "wanted", "has"),
    [
        (None, None, None),
        (None, ("a", "b"), ("a", "b")),
        (("a", "b"), None, ("a", "b")),
        (("a", "b"), ("b", "c"), ("b",)),
        (("a",), ("c",), ()),
        ((), ("a",), ()),
    ],
)
def test_its_tools_are_those_that_are_wanted_and_its_parent_has(
    parents: tuple[str, ...] | None, wanted: tuple[str, ...] | None, has: tuple[str, ...] | None
) -> None:
    tree = AgentTree(SwarmConfig())
    options = AnswerOptions(allow=parents)
    root = tree.begin(RootQuery(query_id="q", session_id="s", question="Why?", options=options))
    first = tree.make(root, AgentSpec(name="a", tools=wanted), "c", 0, NOW)
    assert first.tools == has
    tree.assign(first, root, TaskOrder(text="Do", call_id="d"), NOW)
    below = tree.asking(f"{first.agent_id}-1")
    assert below is not None
    assert tree.make(below, AgentSpec(name="b"), "e", 0, NOW).tools == has
    assert tree.make(below, AgentSpec(name="b", tools=("z",)), "f", 0, NOW).tools == (() if has is not None else ("z",))


def test_the_same_call_makes_the_same_agent_and_asks_the_same_task() -> None:
    grove = Grove()
    order, task = AgentSpec(name="a"), TaskOrder(text="Do", call_id="c")
    first = grove.tree.make(grove.root, order, "c", 0, NOW)
    given = grove.tree.assign(first, grove.root, task, NOW)
    assert grove.tree.make(grove.root, order, "c", 0, NOW + 5).agent_id == first.agent_id
    assert grove.tree.assign(first, grove.root, task, NOW + 5) == given
    assert len(grove.tree.agents) == len(grove.tree.tasks) == 1


def test_stopping_an_agent_stops_all_below_it_and_names_what_is_to_be_cancelled() -> None:
    grove = Grove()
    outer = grove.make()
    asking = grove.asking(outer)
    inner, idle = grove.make(asking), grove.make(asking)
    working = grove.give(inner, asking)
    assert set(grove.tree.stop(outer.agent_id, NOW)) == {asking.query_id, working.query_id}
    states = [grove.tree.agents[each.agent_id].state for each in (outer, inner, idle)]
    assert states == [AgentState.STOPPING, AgentState.STOPPING, AgentState.ENDED]
    error = ErrorInfo(kind="cancelled", message="it was cancelled")
    grove.tree.ended(working.query_id, Outcome(state="cancelled", error=error), NOW)
    assert grove.tree.agents[inner.agent_id].state is AgentState.ENDED


def test_a_task_ends_once() -> None:
    grove = Grove()
    task = grove.give(grove.make())
    outcome = Outcome(state="answered", answer="x", tokens=100)
    assert grove.tree.ended(task.query_id, outcome, NOW) is not None
    assert grove.tree.ended(task.query_id, outcome, NOW) is None
    assert grove.tree.used(next(iter(grove.tree.agents.values())), NOW).tokens == 100


def test_an_agent_that_works_or_has_ended_takes_no_task() -> None:
    grove = Grove()
    agent = grove.make()
    grove.give(agent)
    with pytest.raises(ToolError) as refused:
        grove.give(agent)
    assert kind(refused) == "busy"


def test_a_tainted_answer_taints_all_that_the_agent_is_asked_later() -> None:
    grove = Grove()
    agent = grove.make()
    first = grove.give(agent)
    grove.tree.ended(first.query_id, Outcome(state="answered", answer="x", tainted=True), NOW)
    assert not first.tainted and grove.give(agent).tainted


def test_an_agent_for_which_nobody_waits_has_others_work_in_the_background() -> None:
    grove = Grove()
    outer = grove.make()
    asking = grove.tree.asking(grove.give(outer, in_background=True).query_id)
    assert grove.give(grove.make(asking), asking).in_background


def test_nobody_gives_tasks_to_agents_that_are_not_below() -> None:
    grove = Grove()
    first, second = grove.make(name="first"), grove.make(name="second")
    asking = grove.asking(first)
    with pytest.raises(ToolError) as refused:
        grove.tree.named(asking, second.name)
    assert kind(refused) == "unknown_agent"
    assert grove.tree.named(grove.root, "second") is not None


def test_what_takes_too_long_is_named_once() -> None:
    grove = Grove(agent_seconds=10)
    task = grove.give(grove.make())
    assert grove.tree.late(NOW + 5) == []
    assert grove.tree.late(NOW + 10) == [task.query_id]
    assert grove.tree.late(NOW + 11) == []
    ended = grove.tree.ended(task.query_id, Outcome(state="cancelled"), NOW + 11)
    assert ended is not None and ended.error is not None and ended.error.kind == "timeout"


def test_a_profile_narrows_what_the_parent_has_and_is_handed_on() -> None:
    tree = AgentTree(SwarmConfig())
    options = AnswerOptions(profile=AnswerProfile(name="user", tools=("a", "b", "c")))
    root = tree.begin(RootQuery(query_id="q", session_id="s", question="Why?", options=options))
    other = AnswerProfile(name="other", tools=("b", "z"))
    first = tree.make(root, AgentSpec(name="a", profile=other), "c", 0, NOW)
    assert (first.tools, first.profile) == (("a", "b", "c"), other)
    given = tree.assign(first, root, TaskOrder(text="Do", call_id="d"), NOW)
    asked = options_of(given, first, options, tree)
    assert [tool for tool in ("a", "b", "c", "z") if asked.offers(tool)] == ["b"]
    below = tree.asking(given.query_id)
    assert below is not None
    second = tree.make(below, AgentSpec(name="b", profile=AnswerProfile(name="all")), "e", 0, NOW)
    assert second.tools == ("b",)
    assert tree.make(below, AgentSpec(name="c"), "f", 0, NOW).profile == other


def test_the_letters_of_an_agent_are_those_that_it_wrote_or_was_written() -> None:
    grove = Grove()
    scout, other, post = grove.make(name="scout"), grove.make(name="other"), Mailbox(grove.tree)
    post.send(grove.root, "scout", "Look there", "m1", NOW, tainted=False)
    asking = grove.asking(scout)
    post.send(asking, "root", "Seen", "m2", NOW + 1, tainted=True)
    post.send(grove.root, "other", "Wait", "m3", NOW, tainted=False)
    post.inbox(asking, "m4")
    found = [(each.sender, each.to, each.text, each.is_read, each.tainted) for each in post.letters(scout)]
    assert found == [("root", "scout", "Look there", True, False), ("scout", "root", "Seen", False, True)]
    assert [each.text for each in post.letters(other)] == ["Wait"]

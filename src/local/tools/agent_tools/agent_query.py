"""A task as the query that an agent is asked."""

from __future__ import annotations

import json

from local.protocol.messages import AnswerOptions, QueryReceived
from local.protocol.query_origin import AGENT
from local.protocol.turn_tools import CLARIFICATION
from local.tools.agent_tools.agent import Agent, GivenTask, Json, RootQuery
from local.tools.agent_tools.agent_tree import AgentTree

_MAKING = ("delegate_task", "spawn_agent")
_NOT_HANDED_ON = ("format", "functions", "must_call", "one_call", "stop", "max_tokens", "remember", "think", "model")


def query_of(task: GivenTask, agent: Agent, root: RootQuery, tree: AgentTree) -> QueryReceived:
    """What is put on record for a task: what the agent knows is what it was asked before, and this."""
    history: list[Json] = []
    for asked, answered in tree.history(task):
        history += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return QueryReceived(
        query_id=task.query_id,
        query=text_of(task, agent),
        incognito=root.incognito,
        origin=AGENT,
        history=tuple(history),
        options=options_of(task, agent, root.options or AnswerOptions(), tree),
        session_id=agent.agent_id,
        task=tree.as_asked(task),
    )


def text_of(task: GivenTask, agent: Agent) -> str:
    """What the agent reads."""
    who = f"You are the agent {agent.name}. Do this task, and answer with its result; nobody can be asked."
    form = f"\n\nAnswer with JSON alone, of this JSON Schema: {json.dumps(task.form)}" if task.form else ""
    return f"{who}\n\n{task.text}{form}"


def options_of(task: GivenTask, agent: Agent, asked: AnswerOptions, tree: AgentTree) -> AnswerOptions:
    """How the query is to be answered: as the user has asked, with no tool that the parent has not."""
    defaults = AnswerOptions()
    cleared = {name: getattr(defaults, name) for name in _NOT_HANDED_ON}
    no_agents = _MAKING if tree.is_deepest(agent) else ()  # the tree would make none: so no tokens for that
    deny = tuple(dict.fromkeys((*asked.deny, CLARIFICATION, *no_agents)))
    form = task.form if task.is_formal else None
    return asked.model_copy(
        update={**cleared, "allow": agent.tools, "deny": deny, "format": form, "profile": agent.profile}
    )

"""A conversation taken apart: what is system, what was said before, what belongs together."""

from local.generator.context import PromptParts, Summary, exchanges_of, rounds_of


def said(role: str, content: str = "x") -> dict[str, str]:
    return {"role": role, "content": content}


def test_each_users_message_begins_an_exchange() -> None:
    history = [said("assistant"), said("user"), said("assistant"), said("tool"), said("assistant"), said("user")]
    assert [len(exchange.messages) for exchange in exchanges_of(history)] == [1, 4, 1]
    assert [exchange.position for exchange in exchanges_of(history, after=7)] == [8, 9, 10]
    assert exchanges_of([]) == ()


def test_a_turn_begins_with_what_is_not_in_the_summary_and_every_system_message() -> None:
    prelude = [said("system", "ours"), said("user"), said("system", "theirs"), said("assistant")]
    parts = PromptParts.beginning(prelude, "Well?", Summary(4, ("f",)))
    assert parts.system == (said("system", "ours"), said("system", "theirs"))
    assert [(e.position, e.messages) for e in parts.exchanges] == [(5, (said("user"), said("assistant")))]
    assert (parts.question, parts.asked) == (said("user", "Well?"), "Well?")


def test_calls_and_results_are_one_round_and_anything_else_stands_alone() -> None:
    calling = {"role": "assistant", "content": "", "tool_calls": [{}, {}]}
    steps = [calling, said("tool"), said("tool"), said("user"), calling, said("tool")]
    assert [len(group) for group in rounds_of(steps)] == [3, 1, 2]

"""One query being answered: what comes next, and what the model is asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import ContextGauge, ToolCallRecord, ToolSchema
from local.generator.context import Limits, Summary, TokenMeter
from local.generator.fitting import plan
from local.generator.steps import (
    ModelStep,
    NextStep,
    PlannedCall,
    Step,
    ToolStep,
    TurnAction,
    TurnInput,
    TurnLimits,
    TurnState,
)
from local.generator.turn import ANSWER_NOW, SAY_SOMETHING, Turn
from local.models.chat import ContentDelta, Degraded, Delta, Done, Json, ThinkingDelta, ToolCall, Usage

PRELUDE = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"})
QUERY = {"role": "user", "content": "What is it?"}
SCHEMAS = {
    name: ToolSchema(tool=name, description=name, parameters={}, repeatable=repeatable)
    for name, repeatable in (("roll", True), ("search", False))
}


def turn(steps: tuple[Step, ...] = (), *, max_tool_iterations: int = 5, think: bool = True) -> Turn:
    return Turn(TurnInput("q1", "A", "What is it?", PRELUDE, think, TurnLimits(max_tool_iterations)), steps)


def begun(steps: tuple[Step, ...] = (), **options: Any) -> Turn:
    made = turn(steps, **options)
    made.begin()
    return made


def asked(made: Turn) -> list[Json]:
    """Everything that the model would be asked with, uncut."""
    return list(plan(made.parts(()), TokenMeter(), Limits(1_000_000)).messages)


def say(made: Turn, *deltas: Delta) -> NextStep:
    for delta in deltas:
        made.hear(delta)
    return made.message_ended()


def search(query: str = "x") -> ToolCall:
    return ToolCall("search", {"query": query})


def run_tools(
    made: Turn, results: Mapping[str, str] | None = None, offered: Mapping[str, ToolSchema] = SCHEMAS
) -> NextStep:
    """Answer every open call with the result of its call_id, else with its own call_id."""
    calls, settled = made.calls_to_make(offered)
    made.requests_sent()
    for call in calls:
        result = (results or {}).get(call.call_id, f"result of {call.call_id}")
        settled[call.call_id] = ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args, result=result)
    return made.tools_settled(settled)


def late(call: PlannedCall) -> ToolCallRecord:
    error = ErrorInfo(kind="timeout", message=f"{call.tool} did not answer within 1 s")
    return ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args, error=error)


def test_an_answer_ends_the_turn() -> None:
    made = turn()
    changes: list[str] = []
    made.on_change = lambda before, action, after: changes.append(f"{before} {action} {after}")
    assert made.begin() is NextStep.CALL_MODEL
    assert asked(made) == [*PRELUDE, QUERY]
    assert say(made, ThinkingDelta("Hm."), ContentDelta("For"), ContentDelta("ty"), Done(Usage(3, 2), model="g")) is (
        NextStep.PUBLISH
    )
    made.published()
    response = made.response()
    assert (response.status, response.answer, response.thinking, response.model) == ("answered", "Forty", "Hm.", "g")
    assert changes == [
        "IDLE RECEIVE_QUERY RECEIVING",
        "RECEIVING START_GENERATION GENERATING",
        "GENERATING FINISH PUBLISHING",
        "PUBLISHING PUBLISHED IDLE",
    ]


def test_usage_is_summed_over_all_calls_of_the_model() -> None:
    made = begun()
    say(made, search(), Done(Usage(10, 5, {"total": 1.5})))
    run_tools(made)
    say(made, ContentDelta("Done."), Done(Usage(20, 7, {"total": 0.5, "load": 0.25})))
    usage = made.response().usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.durations) == (30, 12, {"total": 2.0, "load": 0.25})


def test_a_turn_that_is_cancelled_while_tools_run_tells_of_every_call() -> None:
    made = begun()
    say(made, search(), ToolCall("roll", {}), Done(Usage()))
    (first, second), _ = made.calls_to_make(SCHEMAS)
    found = ToolCallRecord(call_id=first.call_id, tool="search", args=first.args, result="found")
    made.cancel({first.call_id: found})
    response = made.response()
    assert response.tool_calls[0] == found
    assert (response.tool_calls[1].call_id, response.tool_calls[1].error.kind) == (second.call_id, "cancelled")


def test_the_gauge_of_the_last_prompt_is_in_the_response_of_a_turn_that_is_cut_short_or_rebuilt() -> None:
    first, second = (ContextGauge(used=used, limit=4096, parts={}) for used in (10, 20))
    made = begun()
    made.begin_message(gauge=first)
    say(made, search(), Done(Usage(10, 5)))
    rebuilt = turn(tuple(ModelStep.model_validate_json(step.model_dump_json()) for step in made.steps))
    assert rebuilt.response().usage.context == first
    run_tools(made)
    made.begin_message(gauge=second)
    made.cancel()
    assert made.response().usage.context == second


def test_what_the_model_cannot_do_is_told_once() -> None:
    made = begun()
    say(made, Degraded("gemma has no tools"), search(), Done(Usage()))
    run_tools(made)
    say(made, Degraded("gemma has no tools"), ContentDelta("Done."), Done(Usage()))
    assert made.response().degraded == ("gemma has no tools",)


def test_tool_results_go_back_in_call_order_right_after_the_message_with_its_thinking() -> None:
    made = begun()
    assert say(made, ThinkingDelta("I look."), ContentDelta("Wait."), search("a"), ToolCall("roll", {"n": 6})) is (
        NextStep.CALL_TOOLS
    )
    calls, _ = made.calls_to_make(SCHEMAS)
    assert [call.call_id for call in calls] == ["q1:0:0", "q1:0:1"]
    made.requests_sent()
    records = {call.call_id: late(call) for call in reversed(calls)}
    records["q1:0:1"] = ToolCallRecord(call_id="q1:0:1", tool="roll", args={"n": 6}, result="4")
    assert made.tools_settled(records) is NextStep.CALL_MODEL
    assert asked(made)[3:] == [
        {
            "role": "assistant",
            "content": "Wait.",
            "thinking": "I look.",
            "tool_calls": [
                {"id": "q1:0:0", "function": {"name": "search", "arguments": {"query": "a"}}},
                {"id": "q1:0:1", "function": {"name": "roll", "arguments": {"n": 6}}},
            ],
        },
        {
            "role": "tool",
            "tool_name": "search",
            "tool_call_id": "q1:0:0",
            "content": "Error (timeout): search did not answer within 1 s",
        },
        {"role": "tool", "tool_name": "roll", "tool_call_id": "q1:0:1", "content": "4"},
    ]


@pytest.mark.parametrize(("late_ones", "action"), [(1, TurnAction.TOOL_RESULT), (2, TurnAction.TOOL_TIMEOUT)])
def test_parallel_calls_settle_as_one_action(late_ones: int, action: TurnAction) -> None:
    made = begun()
    say(made, search("a"), search("b"))
    actions: list[TurnAction] = []
    made.on_change = lambda before, taken, after: actions.append(taken)
    calls, _ = made.calls_to_make(SCHEMAS)
    made.requests_sent()
    records = {call.call_id: ToolCallRecord(call_id=call.call_id, tool="search", args={}, result="r") for call in calls}
    made.tools_settled(records | {call.call_id: late(call) for call in calls[:late_ones]})
    assert actions == [TurnAction.DISPATCH_TOOL, TurnAction.REQUEST_SENT, action]
    assert made.state is TurnState.GENERATING


def test_after_the_last_round_the_model_is_asked_once_more_without_tools() -> None:
    made = begun(max_tool_iterations=2)
    for query in ("a", "b"):
        assert made.offers_tools
        say(made, search(query))
        run_tools(made)
    assert not made.offers_tools
    assert asked(made)[-1] == {"role": "user", "content": ANSWER_NOW}
    assert say(made, ContentDelta("So far: two."), search("c")) is NextStep.PUBLISH
    assert made.response().status == "answered"


def test_with_no_rounds_allowed_the_model_is_asked_plainly() -> None:
    made = begun(max_tool_iterations=0)
    assert not made.offers_tools
    assert asked(made) == [*PRELUDE, QUERY]


def test_a_repeated_call_of_a_tool_that_is_not_repeatable_is_answered_from_the_record() -> None:
    made = begun()
    say(made, search())
    run_tools(made, {"q1:0:0": "found"})
    say(made, search())
    calls, settled = made.calls_to_make(SCHEMAS)
    assert calls == []
    assert settled["q1:2:0"].result == "found"


def test_a_repeatable_tool_is_asked_again() -> None:
    made = begun()
    for _ in range(2):
        say(made, ToolCall("roll", {}))
        calls, _ = made.calls_to_make(SCHEMAS)
        assert len(calls) == 1
        made.requests_sent()
        made.tools_settled({call.call_id: late(call) for call in calls})


def test_a_failed_call_may_be_made_again() -> None:
    made = begun()
    say(made, search())
    calls, _ = made.calls_to_make(SCHEMAS)
    made.requests_sent()
    made.tools_settled({call.call_id: late(call) for call in calls})
    say(made, search())
    assert len(made.calls_to_make(SCHEMAS)[0]) == 1


def test_equal_calls_in_one_message_are_made_once_and_share_the_result() -> None:
    made = begun()
    say(made, search(), search("other"), search())
    calls, _ = made.calls_to_make(SCHEMAS)
    assert [call.call_id for call in calls] == ["q1:0:0", "q1:0:1"]
    made.requests_sent()
    made.tools_settled(
        {
            call.call_id: ToolCallRecord(call_id=call.call_id, tool="search", args=call.args, result=call.call_id)
            for call in calls
        }
    )
    last = made.steps[-1]
    assert isinstance(last, ToolStep)
    assert [(record.call_id, record.result) for record in last.records] == [
        ("q1:0:0", "q1:0:0"),
        ("q1:0:1", "q1:0:1"),
        ("q1:0:2", "q1:0:0"),
    ]


def test_the_same_call_ends_the_loop_at_the_fourth() -> None:
    made = begun(max_tool_iterations=50)
    for _ in range(4):
        assert made.offers_tools
        say(made, ToolCall("roll", {}))
        run_tools(made)
    assert not made.offers_tools


def test_an_unknown_tool_is_an_error_that_names_the_tools_there_are() -> None:
    made = begun()
    say(made, ToolCall("teleport", {}))
    calls, settled = made.calls_to_make(SCHEMAS)
    assert calls == []
    error = settled["q1:0:0"].error
    assert error is not None
    assert error.kind == "unknown_tool"
    assert error.message == (
        "there is no such tool, 'teleport'; answer in words. The tools that there are now: roll, search"
    )


def test_a_model_that_goes_on_calling_what_is_not_there_has_to_answer_in_words() -> None:
    made = begun()
    for name in ("teleport", "beam"):
        assert made.offers_tools
        say(made, ToolCall(name, {}))
        _, settled = made.calls_to_make(SCHEMAS)
        made.requests_sent()
        made.tools_settled(settled)
    assert not made.offers_tools


def test_tools_stay_in_the_prompt_when_no_more_calls_are_made_but_not_for_a_model_that_calls_one_all_the_same() -> None:
    made = begun(max_tool_iterations=1)
    say(made, ToolCall("roll", {}))
    run_tools(made)
    tools = [{"type": "function"}]
    assert not made.offers_tools and made.functions(tools) == tools
    say(made, ToolCall("roll", {}))
    assert made.last_calls == () and made.functions(tools) == []


def test_of_66_calls_at_once_16_are_made_and_each_gets_a_message() -> None:
    made = begun()
    say(made, *(search(str(number)) for number in range(66)))
    calls, settled = made.calls_to_make(SCHEMAS)
    assert len(calls) == 16
    assert {record.error.kind for record in settled.values() if record.error} == {"too_many_calls"}
    made.requests_sent()
    made.tools_settled(settled | {call.call_id: late(call) for call in calls})
    assert [message["tool_call_id"] for message in asked(made) if message["role"] == "tool"] == [
        f"q1:0:{number}" for number in range(66)
    ]


def test_a_call_in_the_text_is_a_call_and_no_content() -> None:
    made = begun()
    made.hear(ContentDelta('{"name": "search"}'))
    assert made.message_ended(calls_in_text=[search()]) is NextStep.CALL_TOOLS
    step = made.steps[-1]
    assert isinstance(step, ModelStep)
    assert (step.content, step.calls[0].tool) == ("", "search")
    assert made.response().degraded == ("the call of search came as text",)


def test_an_empty_message_is_asked_for_again_without_thinking_then_nudged_then_a_failure() -> None:
    made = begun()
    assert made.thinks
    assert say(made, ThinkingDelta("I dream.")) is NextStep.CALL_MODEL
    assert not made.thinks
    assert asked(made) == [*PRELUDE, QUERY]
    assert say(made, ContentDelta(" \n")) is NextStep.CALL_MODEL
    assert asked(made) == [*PRELUDE, QUERY, {"role": "user", "content": SAY_SOMETHING}]
    assert say(made) is NextStep.PUBLISH
    response = made.response()
    assert response.status == "failed"
    assert response.error is not None
    assert response.error.kind == "empty_answer"


def test_an_answer_after_empty_messages_says_so() -> None:
    made = begun()
    say(made)
    say(made, ContentDelta("Here."))
    assert made.response().status == "answered"
    assert made.response().degraded == ("the model gave an empty answer 1 times and was asked again",)


def test_a_message_that_is_begun_again_forgets_the_first_and_tells_why() -> None:
    made = begun()
    made.hear(ContentDelta("Begi"))
    made.begin_message("the oldest part was left out")
    say(made, ContentDelta("Right."))
    assert made.response().answer == "Right."
    assert made.response().degraded == ("the oldest part was left out",)


def test_a_summary_stands_for_the_exchanges_that_are_in_it() -> None:
    made = begun()
    parts = made.parts(())
    made.begin_with(replace(parts, summary=Summary(1, ("They met.",)), exchanges=()))
    say(made, search())
    run_tools(made)
    assert made.parts(()).summary == Summary(1, ("They met.",))
    assert (asked(made)[0], asked(made)[3]) == (PRELUDE[0], QUERY)
    assert len(made.parts(()).steps) == 2


def test_the_third_equal_call_is_refused_with_a_reason() -> None:
    made = begun()
    for _ in range(2):
        say(made, search())
        run_tools(made)
    say(made, search())
    calls, settled = made.calls_to_make(SCHEMAS)
    assert calls == []
    error = settled["q1:4:0"].error
    assert error is not None
    assert error.kind == "repeated_call"
    assert error.message.startswith("search was called 2 times with the same arguments; answer with")


SEARCH_X = '{"name": "search", "arguments": {"query": "x"}}'
MEMORY = {"search_memory": ToolSchema(tool="search_memory", description="", parameters={})} | SCHEMAS


def remembered(*queries: str, is_small: bool, sources: tuple[str, ...] = (), error: str = "") -> Turn:
    """A turn that has searched the memory for one after another."""
    made = begun()
    made.is_small = is_small
    for query in queries:
        assert say(made, ToolCall("search_memory", {"query": query})) is NextStep.CALL_TOOLS
        calls, settled = made.calls_to_make(MEMORY)
        made.requests_sent()
        for call in calls:
            settled[call.call_id] = ToolCallRecord(
                call_id=call.call_id,
                tool=call.tool,
                args=call.args,
                result=None if error else "Nothing.",
                error=ErrorInfo(kind=error, message="no") if error else None,
                sources=sources,
            )
        made.tools_settled(settled)
    return made


@pytest.mark.parametrize("queries", [("France", "France"), ("France", "capital of France")])
@pytest.mark.parametrize("error", ["", "failed"])
def test_a_small_model_that_calls_a_tool_in_vain_is_asked_the_question_alone(
    queries: tuple[str, ...], error: str
) -> None:
    made = remembered(*queries, is_small=True, error=error)
    assert made.functions([{"function": {"name": "search_memory"}}]) == []
    assert asked(made) == [*PRELUDE, QUERY]
    assert say(made, ToolCall("search_memory", {"query": "Paris"})) is NextStep.CALL_MODEL
    assert say(made, ContentDelta("Paris.")) is NextStep.PUBLISH


@pytest.mark.parametrize(
    ("said", "is_small", "repeats"),
    [
        ([SEARCH_X, SEARCH_X], True, True),
        ([SEARCH_X, SEARCH_X], False, False),
        ([SEARCH_X, SEARCH_X[:-2]], True, False),
        ([SEARCH_X, SEARCH_X.replace("x", "y")], True, False),
        ([SEARCH_X], True, False),
        (["Use it so:", "{}"], True, False),
    ],
)
def test_a_small_model_repeats_itself_once_the_same_call_stands_there_twice(
    said: list[str], is_small: bool, repeats: bool
) -> None:
    made = begun()
    made.is_small = is_small
    made.hear(ContentDelta("\n".join(said)))
    assert made.repeats_itself([{"function": {"name": "search"}}]) is repeats


def test_a_small_model_repeats_itself_with_a_call_that_was_made_in_vain() -> None:
    made = remembered("France", is_small=True)
    made.hear(ContentDelta('{"name": "search_memory", "arguments": {"query": "Paris"}}'))
    assert made.repeats_itself([{"function": {"name": "search_memory"}}])


@pytest.mark.parametrize(("sources", "made"), [((), ["search_memory"]), (("engram:e1",), ["search_memory", "search"])])
def test_of_calls_in_text_that_begin_with_one_made_in_vain_only_that_one_is_read(
    sources: tuple[str, ...], made: list[str]
) -> None:
    asking = remembered("France", is_small=True, sources=sources)
    asking.hear(ContentDelta('{"name": "search_memory", "arguments": {}}\n{"name": "search", "arguments": {}}'))
    functions: list[Json] = [{"function": {"name": name}} for name in MEMORY]
    assert [call.name for call in asking.calls_in_text(functions)] == made


@pytest.mark.parametrize(
    "made",
    [
        remembered("France", is_small=True),
        remembered("France", "capital", is_small=True, sources=("engram:e1",)),
        remembered("France", "capital", is_small=True, error="denied"),
        remembered("France", "capital", is_small=False),
    ],
    ids=["once", "found something", "a person has refused", "a larger model"],
)
def test_who_does_not_call_in_vain_keeps_calls_and_tools(made: Turn) -> None:
    offered: list[Json] = [{"function": {"name": "search_memory"}}]
    assert made.offers_tools and made.functions(offered) == offered
    assert len(asked(made)) > len([*PRELUDE, QUERY])


def test_two_calls_in_turn_are_noticed_and_end_the_loop() -> None:
    made = begun(max_tool_iterations=50)
    for query in ("a", "b", "a"):
        say(made, search(query))
        run_tools(made)
    assert made.offers_tools
    say(made, search("b"))
    _, settled = made.calls_to_make(SCHEMAS)
    error = settled["q1:6:0"].error
    assert error is not None
    assert error.message.startswith("the same two calls are made in turn")
    made.requests_sent()
    made.tools_settled(settled)
    assert not made.offers_tools
    assert asked(made)[-1] == {"role": "user", "content": ANSWER_NOW}


def test_the_same_steps_with_other_arguments_are_no_loop() -> None:
    made = begun(max_tool_iterations=50)
    for query in ("a", "b", "a", "c"):
        say(made, search(query))
        run_tools(made)
    assert made.offers_tools

"""A turn that another process goes on with: made from its steps, it is the same turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import assume, given

from local.bus.message import ErrorInfo
from local.bus.messages import ToolCallRecord, ToolSchema
from local.generator.context import PromptParts
from local.generator.steps import ModelStep, NextStep, PlannedCall, Step, TurnInput, TurnLimits, parse_step
from local.generator.turn import Turn
from local.models.chat import ContentDelta, Delta, Done, ThinkingDelta, ToolCall, Usage

HISTORY = [{"role": role, "content": f"{role} {index}"} for index in range(4) for role in ("user", "assistant")]
QUESTION = TurnInput("q1", "A", "What is it?", ({"role": "system", "content": "s"}, *HISTORY), True, TurnLimits(4))
OFFERED = {
    name: ToolSchema(tool=name, description=name, parameters={}, repeatable=name == "roll")
    for name in ("roll", "search")
}


Message = tuple[Delta, ...]

CALLS = st.builds(
    ToolCall, st.sampled_from(["roll", "search", "teleport"]), st.fixed_dictionaries({"x": st.integers(0, 1)})
)
SPOKEN = st.builds(
    lambda thinking, content, calls: (ThinkingDelta(thinking), ContentDelta(content), *calls, Done(Usage(1, 1))),
    st.sampled_from(["", "Hm."]),
    st.sampled_from(["", "Well."]),
    st.lists(CALLS, max_size=3),
)
SCRIPTS = st.lists(SPOKEN, max_size=12)


@dataclass(frozen=True)
class Asked:
    parts: PromptParts
    offers_tools: bool
    thinks: bool


def answer(call: PlannedCall) -> ToolCallRecord:
    """What a tool says depends on the call alone, so that asking again would show in nothing but the count."""
    if call.args["x"]:
        return ToolCallRecord(
            call_id=call.call_id, tool=call.tool, args=call.args, error=ErrorInfo(kind="timeout", message="late")
        )
    return ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args, result=f"result of {call.call_id}")


def play(turn: Turn, script: Iterator[Message], requested: set[str] | None = None) -> list[Asked]:
    """Run a turn to its end, or until the script is over; what the model was asked.

    The ids of the calls that a tool got to answer are added to `requested`.
    """
    asked: list[Asked] = []
    following = turn.begin()
    while following is not NextStep.PUBLISH:
        if following is NextStep.CALL_TOOLS:
            calls, settled = turn.calls_to_make(OFFERED)
            if requested is not None:
                requested.update(call.call_id for call in calls)
            turn.requests_sent()
            following = turn.tools_settled(settled | {call.call_id: answer(call) for call in calls})
            continue
        message = next(script, None)
        if message is None:
            break
        asked.append(Asked(turn.parts(()), turn.offers_tools, turn.thinks))
        for delta in message:
            turn.receive(delta)
        following = turn.message_ended()
    return asked


def model_calls_in(steps: Sequence[Step]) -> int:
    return sum(step.kind == "model" for step in steps)


@given(script=SCRIPTS, data=st.data())
def test_cut_anywhere_it_asks_exactly_what_is_left_to_ask(script: list[Message], data: st.DataObject) -> None:
    whole = Turn(QUESTION)
    asked = play(whole, iter(script))
    cut = data.draw(st.integers(0, len(whole.steps)), label="steps that were stored")
    stored = [step.model_dump_json() for step in whole.steps[:cut]]

    rebuilt = Turn(QUESTION, [parse_step(body) for body in stored])
    said = model_calls_in(whole.steps[:cut])
    asked_again = play(rebuilt, iter(script[said:]))

    assert asked_again == asked[said:]
    assert rebuilt.steps == whole.steps
    assert rebuilt.response() == whole.response()


@given(script=SCRIPTS, data=st.data())
def test_cut_among_its_tool_calls_it_asks_only_for_the_results_that_were_not_kept(
    script: list[Message], data: st.DataObject
) -> None:
    whole, requested = Turn(QUESTION), set[str]()
    play(whole, iter(script), requested)
    rounds = [number for number, step in enumerate(whole.steps) if step.kind == "tools"]
    assume(rounds)
    number = data.draw(st.sampled_from(rounds), label="tool step that was not stored")
    said = whole.steps[number - 1]
    assert isinstance(said, ModelStep)
    made = [call for call in said.calls if call.call_id in requested]
    kept = {call.call_id: answer(call) for call in made if data.draw(st.booleans(), label=f"{call.call_id} was kept")}

    rebuilt = Turn(QUESTION, whole.steps[:number])
    rebuilt.begin()
    calls, settled = rebuilt.calls_to_make(OFFERED, kept)
    assert calls == [call for call in made if call.call_id not in kept]
    rebuilt.requests_sent()
    rebuilt.tools_settled(settled | {call.call_id: answer(call) for call in calls})
    assert rebuilt.steps == whole.steps[: number + 1]


@given(script=SCRIPTS)
def test_every_call_has_an_id_of_its_own_made_of_query_step_and_place(script: list[Message]) -> None:
    turn = Turn(QUESTION)
    play(turn, iter(script))
    ids = [record.call_id for record in turn.response().tool_calls]
    assert len(ids) == len(set(ids))
    for number, step in enumerate(turn.steps):
        if step.kind == "model":
            assert [call.call_id for call in step.calls] == [f"q1:{number}:{place}" for place in range(len(step.calls))]


def with_calls(*tools: str) -> Turn:
    """A turn of an earlier process, whose model asked for these."""
    calls = [PlannedCall(call_id=f"q1:0:{index}", tool=tool, args={"x": 0}) for index, tool in enumerate(tools)]
    turn = Turn(QUESTION, [ModelStep(content="", calls=tuple(calls))])
    assert turn.begin() is NextStep.CALL_TOOLS
    return turn


def kept(call_id: str) -> dict[str, ToolCallRecord]:
    """The result of a search, as the earlier process kept it."""
    return {call_id: ToolCallRecord(call_id=call_id, tool="search", args={"x": 0}, result="found")}


def test_a_result_that_an_earlier_process_got_is_not_asked_for_again_even_if_its_tool_is_gone() -> None:
    calls, settled = with_calls("search", "roll").calls_to_make({"roll": OFFERED["roll"]}, kept("q1:0:0"))
    assert [call.call_id for call in calls] == ["q1:0:1"]
    assert settled == kept("q1:0:0")


def test_an_equal_call_shares_the_result_that_an_earlier_process_got() -> None:
    turn = with_calls("search", "search")
    calls, settled = turn.calls_to_make(OFFERED, kept("q1:0:0"))
    assert calls == []
    turn.requests_sent()
    turn.tools_settled(settled)
    records = turn.response().tool_calls
    assert [(record.call_id, record.result) for record in records] == [("q1:0:0", "found"), ("q1:0:1", "found")]


def test_a_kept_result_of_another_call_is_given_to_none() -> None:
    calls, settled = with_calls("search").calls_to_make(OFFERED, kept("q1:2:0"))
    assert ([call.call_id for call in calls], settled) == (["q1:0:0"], {})

"""A turn that another process goes on with: made from its steps, it is the same turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import given, settings

from local.agents.steps import PlannedCall, Step, parse_step
from local.agents.turn import Next, Question, Turn
from local.models.chat import ContentDelta, Delta, Done, Json, ThinkingDelta, ToolCall, Usage
from local.protocol.messages import ErrorInfo, ToolCallRecord, ToolSchema

HISTORY = [{"role": role, "content": f"{role} {index}"} for index in range(4) for role in ("user", "assistant")]
QUESTION = Question("q1", "A", "What is it?", ({"role": "system", "content": "s"}, *HISTORY), True, 4)
OFFERED = {
    name: ToolSchema(tool=name, description=name, parameters={}, repeatable=name == "roll")
    for name in ("roll", "search")
}


@dataclass(frozen=True)
class Overflow:
    """The server says that the prompt is too long."""


Message = Overflow | tuple[Delta, ...]

CALLS = st.builds(
    ToolCall, st.sampled_from(["roll", "search", "teleport"]), st.fixed_dictionaries({"x": st.integers(0, 1)})
)
SPOKEN = st.builds(
    lambda thinking, content, calls: (ThinkingDelta(thinking), ContentDelta(content), *calls, Done(Usage(1, 1))),
    st.sampled_from(["", "Hm."]),
    st.sampled_from(["", "Well."]),
    st.lists(CALLS, max_size=3),
)
SCRIPTS = st.lists(st.one_of(SPOKEN, SPOKEN, SPOKEN, st.just(Overflow())), max_size=12)


@dataclass(frozen=True)
class Asked:
    messages: list[Json]
    offers_tools: bool
    thinks: bool


def answer(call: PlannedCall) -> ToolCallRecord:
    """What a tool says depends on the call alone, so that asking again would show in nothing but the count."""
    if call.args["x"]:
        return ToolCallRecord(
            call_id=call.call_id, tool=call.tool, args=call.args, error=ErrorInfo(kind="timeout", message="late")
        )
    return ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args, result=f"result of {call.call_id}")


def play(turn: Turn, script: Iterator[Message]) -> list[Asked]:
    """Run a turn to its end, or until the script is over; what the model was asked."""
    asked: list[Asked] = []
    following = turn.begin()
    while following is not Next.PUBLISH:
        if following is Next.CALL_TOOLS:
            calls, settled = turn.calls_to_make(OFFERED)
            turn.requests_sent()
            following = turn.tools_settled(settled | {call.call_id: answer(call) for call in calls})
            continue
        message = next(script, None)
        if message is None:
            break
        asked.append(Asked(turn.messages(), turn.offers_tools, turn.thinks))
        if isinstance(message, Overflow):
            if not turn.shorten_history():
                turn.fail(ErrorInfo(kind="context_overflow", message="too long"))
                break
            continue
        for delta in message:
            turn.hear(delta)
        following = turn.message_ended()
    return asked


def model_calls_in(steps: Sequence[Step]) -> int:
    return sum(step.kind in ("model", "shorten") for step in steps)


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=50, deadline=None)
@given(script=SCRIPTS)
def test_every_call_has_an_id_of_its_own_made_of_query_step_and_place(script: list[Message]) -> None:
    turn = Turn(QUESTION)
    play(turn, iter(script))
    ids = [record.call_id for record in turn.response().tool_calls]
    assert len(ids) == len(set(ids))
    for number, step in enumerate(turn.steps):
        if step.kind == "model":
            assert [call.call_id for call in step.calls] == [f"q1:{number}:{place}" for place in range(len(step.calls))]

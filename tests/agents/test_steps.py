"""What a turn has done so far, as it is stored and as the model gets it."""

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import ModelSpan, ToolCallRecord
from local.core.errors import StoreFailed
from local.generator.steps import (
    CallTimer,
    ModelStep,
    NudgeStep,
    PlannedCall,
    Step,
    ToolStep,
    parse_record,
    parse_step,
    signed_as,
    told,
    total_usage,
    usage_of,
)
from local.models.chat import ContentDelta, Degraded, Done, RestartDelta, ThinkingDelta, Usage

CALL = PlannedCall(call_id="q:0:0", tool="roll", args={"n": 6})
RECORD = ToolCallRecord(call_id="q:0:0", tool="roll", args={"n": 6}, result="4", sources=("http://a/",))


@pytest.mark.parametrize(
    "step",
    [
        ModelStep(content="Hm.", thinking="…", calls=(CALL,), model="g", degraded=("no tools",)),
        ToolStep(records=(RECORD,)),
        NudgeStep(text="Say something."),
    ],
    ids=lambda step: step.kind,
)
def test_a_stored_step_reads_as_the_same_step(step: Step) -> None:
    assert parse_step(step.model_dump_json()) == step


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", '{"kind": "dance"}', '{"kind": "model"}'])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(StoreFailed, match="a stored step cannot be read: "):
        parse_step(text)


def test_a_result_stored_by_itself_reads_as_the_same_result_and_anything_else_is_refused() -> None:
    assert parse_record(RECORD.model_dump_json()) == RECORD
    with pytest.raises(StoreFailed, match="a stored tool result cannot be read: call_id: Field required"):
        parse_record('{"tool": "roll"}')


def test_an_empty_message_of_the_model_is_not_sent_back() -> None:
    assert ModelStep(content=" \n", thinking="I dream.").as_messages() == []


def test_an_answer_without_thinking_or_calls_has_content_alone() -> None:
    assert ModelStep(content="4").as_messages() == [{"role": "assistant", "content": "4"}]


def test_a_call_that_settled_in_any_way_is_text_for_the_model() -> None:
    failed = RECORD.model_copy(update={"result": None, "error": ErrorInfo(kind="refused", message="not there")})
    assert told(RECORD) == "4"
    assert told(failed) == "Error (refused): not there"
    assert told(RECORD.model_copy(update={"result": ""})) == "(the tool returned an empty text)"


def test_equal_calls_have_equal_signatures_whatever_the_order_of_their_arguments() -> None:
    one = PlannedCall(call_id="a", tool="t", args={"x": 1, "y": 2})
    two = PlannedCall(call_id="b", tool="t", args={"y": 2, "x": 1})
    assert one.signature == two.signature != CALL.signature


def test_a_call_is_timed_from_asking_over_the_first_word_to_the_end() -> None:
    times = iter((1.0, 2.0, 3.0, 4.0))
    timer = CallTimer(lambda: next(times))
    assert timer.end() is None
    timer.begin()
    for delta in (Degraded("no thinking"), ThinkingDelta("Hm"), ContentDelta("Yes")):
        timer.hear(delta)
    assert timer.end() == ModelSpan(started=1.0, first_token=2.0, ended=3.0)
    assert timer.end() is None


def test_an_answer_that_begins_again_has_its_first_word_then() -> None:
    times = iter((1.0, 2.0, 3.0, 4.0))
    timer = CallTimer(lambda: next(times))
    timer.begin()
    for delta in (ContentDelta("Ye"), RestartDelta("gone"), ContentDelta("Yes")):
        timer.hear(delta)
    assert timer.end() == ModelSpan(started=1.0, first_token=3.0, ended=4.0)


def test_what_a_turn_has_cost_names_each_call_by_itself_and_the_one_that_was_cut_off() -> None:
    span = ModelSpan(started=1.0, first_token=2.0, ended=3.0)
    usages = [usage_of(Done(Usage(tokens, 1), model="gemma"), span, None) for tokens in (5, 7)]
    total = total_usage(usages, ModelSpan(started=4.0, ended=5.0), None)
    assert total.prompt_tokens == 12
    assert [(each.prompt_tokens, each.completion_tokens, each.model) for each in total.steps] == [
        (5, 1, "gemma"), (7, 1, "gemma"), (0, 0, ""),
    ]  # fmt: skip
    assert [each.model for each in signed_as("stand-in", total).steps] == ["stand-in", "stand-in", ""]

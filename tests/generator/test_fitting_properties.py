"""Whatever the conversation and the window: the prompt fits or the error says why, and what is protected is whole."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from local.core.errors import ContextTooLarge
from local.generator.context import Exchange, Limits, Part, PromptParts, Summary, TokenMeter, rounds_of
from local.generator.fitting import Plan, plan
from local.stand_in.server import fit

METER = TokenMeter()

pieces = st.sampled_from(
    ["gull ", "ferry. ", "12:45 ", '{"a": 1} ', "渡船。", "\n\n", "é", "🚢", "xxxxxxxxxxxxxxxxxxxxxxxx"]
)
texts = st.builds(lambda piece, times, end: piece * times + end, pieces, st.integers(0, 900), pieces)
short_texts = st.builds(lambda piece, times: piece * times, pieces, st.integers(0, 8))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@st.composite
def rounds(draw: Any) -> list[dict[str, Any]]:
    """A message with calls and their results, or something that the turn told the model."""
    if draw(st.integers(0, 9)) == 0:
        return [user(draw(short_texts))]
    results = draw(st.lists(texts, min_size=1, max_size=3))
    ids = [str(draw(st.integers(0, 10**9))) for _ in results]
    args = [{"q": draw(short_texts)} for _ in results]
    calls = [{"id": id_, "function": {"name": "look", "arguments": arg}} for id_, arg in zip(ids, args, strict=True)]
    calling = {"role": "assistant", "content": draw(short_texts), "thinking": draw(texts), "tool_calls": calls}
    return [
        calling,
        *(
            {"role": "tool", "tool_name": "look", "tool_call_id": id_, "content": text}
            for id_, text in zip(ids, results, strict=True)
        ),
    ]


@st.composite
def conversations(draw: Any) -> PromptParts:
    number = draw(st.integers(0, 3))
    tool = {"type": "function", "function": {"name": "look", "description": draw(short_texts), "parameters": {}}}
    exchanges = [
        Exchange(number + 1 + index, (user(query), {"role": "assistant", "content": answer}))
        for index, (query, answer) in enumerate(draw(st.lists(st.tuples(texts, texts), max_size=8)))
    ]
    return PromptParts(
        system=({"role": "system", "content": draw(short_texts)},),
        question=user(draw(st.one_of(short_texts, texts))),
        tools=(tool,) * draw(st.integers(0, 2)),
        exchanges=tuple(exchanges),
        steps=tuple(message for group in draw(st.lists(rounds(), max_size=5)) for message in group),
        summary=Summary(number, tuple(draw(st.lists(short_texts, max_size=6))), draw(texts)),
    )


windows = st.sampled_from([512, 1024, 4096, 32_000]).map(Limits)


def planned(parts: PromptParts, limits: Limits) -> Plan | ContextTooLarge:
    try:
        return plan(parts, METER, limits)
    except ContextTooLarge as error:
        return error


@given(parts=conversations(), limits=windows)
def test_a_prompt_fits_and_leaves_the_answer_its_reserve(parts: PromptParts, limits: Limits) -> None:
    match planned(parts, limits):
        case Plan() as made:
            assert made.gauge.used + limits.reserve <= limits.window
            assert METER.tokens(made.size) <= limits.room
            whole = fit(made.messages, made.tools, limits.window, truncate=False)
            assert whole.messages == made.messages
        case ContextTooLarge() as error:
            assert sum(error.parts.values()) > limits.window
            assert not {Part.HISTORY, Part.SUMMARY} & error.parts.keys()


@given(parts=conversations(), limits=windows)
def test_what_is_protected_is_whole_and_in_its_place(parts: PromptParts, limits: Limits) -> None:
    made = planned(parts, limits)
    if isinstance(made, ContextTooLarge):
        return
    assert made.tools == parts.tools
    assert made.messages[: len(parts.system)] == parts.system
    steps = made.messages[_question_at(made, parts) + 1 :]
    told = [message for message in parts.steps if message["role"] == "user"]
    assert [message for message in steps if message["role"] == "user"] == told


@given(parts=conversations(), limits=windows)
def test_turns_stay_in_order_and_only_the_oldest_are_left_out(parts: PromptParts, limits: Limits) -> None:
    made = planned(parts, limits)
    if isinstance(made, ContextTooLarge):
        return
    kept = [message for exchange in parts.exchanges[made.left_out :] for message in exchange.messages]
    at = _question_at(made, parts)
    assert list(made.messages[at - len(kept) : at]) == kept
    if made.left_out:
        assert made.job is not None and made.job.urgent


@given(parts=conversations(), limits=windows)
def test_results_stay_with_their_calls_and_only_the_oldest_rounds_go(parts: PromptParts, limits: Limits) -> None:
    made = planned(parts, limits)
    if isinstance(made, ContextTooLarge):
        return
    steps = rounds_of(made.messages[_question_at(made, parts) + 1 :])
    was = [group for group in rounds_of(parts.steps) if len(group) > 1]
    now = [group for group in steps if len(group) > 1]
    assert len(was) - len(now) == made.folded
    for before, after in zip(was[made.folded :], now, strict=True):
        assert after[0]["tool_calls"] == before[0]["tool_calls"]
        assert after[0]["content"] == before[0]["content"]
        assert [m["tool_call_id"] for m in after[1:]] == [m["tool_call_id"] for m in before[1:]]


@given(parts=conversations(), limits=windows)
def test_a_summary_job_fits_into_the_window_too_and_makes_progress(parts: PromptParts, limits: Limits) -> None:
    made = planned(parts, limits)
    if isinstance(made, ContextTooLarge) or made.job is None:
        return
    job = made.job
    assert job.exchanges == parts.exchanges[: len(job.exchanges)] != ()
    assert fit(job.messages, (), limits.window - job.max_tokens, truncate=False).messages == job.messages
    assert json.loads(job.result("FACTS\n- x\nSUMMARY\ny").as_json())["through"] == job.exchanges[-1].position


def _question_at(made: Plan, parts: PromptParts) -> int:
    """Where the question stands: what comes after it is told by the calls that are left."""
    folded = [group for group in rounds_of(parts.steps) if len(group) > 1][: made.folded]
    at = len(made.messages) - 1 - (len(parts.steps) - sum(map(len, folded)))
    assert made.messages[at] == parts.question
    return at

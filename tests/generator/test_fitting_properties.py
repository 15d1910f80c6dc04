"""Whatever the conversation and the window: the prompt fits or the error says why, and what is protected is whole."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from local.bus.messages import parted
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
def test_a_prompt_fits_and_of_what_is_protected_nothing_is_missing(parts: PromptParts, limits: Limits) -> None:
    made = planned(parts, limits)
    if isinstance(made, ContextTooLarge):
        assert sum(made.parts.values()) > limits.window
        assert not {Part.HISTORY, Part.SUMMARY} & made.parts.keys()
        return
    fits_and_leaves_the_answer_its_reserve(made, limits)
    system_tools_and_what_the_turn_said_are_whole(made, parts)
    only_the_oldest_turns_are_left_out(made, parts)
    results_stay_with_their_calls_and_only_the_oldest_rounds_go(made, parts)
    if made.job is not None:
        assert made.job.exchanges == parts.exchanges[: len(made.job.exchanges)] != ()
        room = limits.window - made.job.max_tokens
        assert fit(made.job.messages, (), room, truncate=False).messages == made.job.messages
        result = json.loads(made.job.result("FACTS\n- x\nSUMMARY\ny").as_json())
        assert result["through"] == made.job.exchanges[-1].position


def fits_and_leaves_the_answer_its_reserve(made: Plan, limits: Limits) -> None:
    assert made.gauge.used + limits.reserve <= limits.window
    assert METER.tokens(made.size) <= limits.room
    assert fit(made.messages, made.tools, limits.window, truncate=False).messages == made.messages


def system_tools_and_what_the_turn_said_are_whole(made: Plan, parts: PromptParts) -> None:
    assert made.tools == parts.tools
    assert made.messages[: len(parts.system)] == parts.system
    steps = made.messages[_question_at(made, parts) + 1 :]
    told = [message for message in parts.steps if message["role"] == "user"]
    assert [message for message in steps if message["role"] == "user"] == told


def only_the_oldest_turns_are_left_out(made: Plan, parts: PromptParts) -> None:
    kept = [message for exchange in parts.exchanges[made.left_out :] for message in exchange.messages]
    at = _question_at(made, parts)
    assert list(made.messages[at - len(kept) : at]) == kept
    assert not made.left_out or (made.job is not None and made.job.urgent)


def results_stay_with_their_calls_and_only_the_oldest_rounds_go(made: Plan, parts: PromptParts) -> None:
    steps = rounds_of(made.messages[_question_at(made, parts) + 1 :])
    was = [group for group in rounds_of(parts.steps) if len(group) > 1]
    now = [group for group in steps if len(group) > 1]
    assert len(was) - len(now) == made.folded
    for before, after in zip(was[made.folded :], now, strict=True):
        assert after[0]["tool_calls"] == before[0]["tool_calls"]
        assert after[0]["content"] == before[0]["content"]
        assert [m["tool_call_id"] for m in after[1:]] == [m["tool_call_id"] for m in before[1:]]


def _question_at(made: Plan, parts: PromptParts) -> int:
    """Where the question stands: what comes after it is told by the calls that are left."""
    folded = [group for group in rounds_of(parts.steps) if len(group) > 1][: made.folded]
    at = len(made.messages) - 1 - (len(parts.steps) - sum(map(len, folded)))
    assert parted(made.messages[at]["content"]).question == parts.question["content"]
    return at

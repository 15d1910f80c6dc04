"""What goes into a prompt: everything while it fits, and what is left out first when it does not."""

from typing import Any

import pytest

from local.core.errors import ContextTooLarge
from local.generator.context import (
    HEADING,
    Exchange,
    Limits,
    PromptParts,
    Summary,
    TokenMeter,
    exchanges_of,
    rounds_of,
)
from local.generator.fitting import Plan, plan

SYSTEM = {"role": "system", "content": "Be brief."}
QUESTION = {"role": "user", "content": "How long does the ferry to Tern Island take?"}
FETCH = {"type": "function", "function": {"name": "fetch", "description": "Read a page.", "parameters": {}}}
METER = TokenMeter((0.31, 0.62, 1.03))
WINDOW = Limits(4096)


def call(url: str, call_id: str = "c") -> dict[str, Any]:
    return {"id": call_id, "function": {"name": "fetch", "arguments": {"url": url}}}


def round_of(url: str, result: str, thinking: str = "") -> list[dict[str, Any]]:
    calling = {"role": "assistant", "content": "", "thinking": thinking, "tool_calls": [call(url)]}
    return [calling, {"role": "tool", "tool_name": "fetch", "tool_call_id": "c", "content": result}]


def page(words: int, about: str = "gulls") -> str:
    """Paragraphs of ten words each."""
    return "\n\n".join(f"Here stand {number} plain words about {about}." for number in range(words // 8))


def turns(count: int, characters: int = 100) -> tuple[Exchange, ...]:
    said = [
        message
        for number in range(count)
        for message in (
            {"role": "user", "content": f"Question {number} " + "q" * characters},
            {"role": "assistant", "content": f"Answer {number} " + "a" * characters},
        )
    ]
    return exchanges_of(said)


def planned(limits: Limits = WINDOW, **parts: Any) -> Plan:
    return plan(PromptParts((SYSTEM,), QUESTION, **{"tools": (FETCH,), **parts}), METER, limits)


def contents(made: Plan, role: str) -> list[str]:
    return [message["content"] for message in made.messages if message["role"] == role]


def test_what_fits_is_sent_as_it_is_and_in_order() -> None:
    steps = (*round_of("/a", "short"), *round_of("/b", "short too"))
    made = planned(exchanges=turns(2), steps=steps)
    said = [message for exchange in turns(2) for message in exchange.messages]
    assert made.messages == (SYSTEM, *said, QUESTION, *steps)
    assert (made.is_compacted, made.job, made.gauge) == (False, None, made.before)


def test_when_the_window_is_full_the_oldest_results_become_stubs_down_to_a_low_mark() -> None:
    steps = tuple(message for url in ("/a", "/b", "/c", "/d") for message in round_of(url, page(460)))
    made = planned(steps=steps)
    results = contents(made, "tool")
    assert [result.startswith("[fetch") for result in results] == [True, True, False, False]
    assert made.masked == 2
    assert made.gauge.used <= WINDOW.mask_to < WINDOW.high_water < made.before.used


def test_a_turn_that_reads_page_after_page_keeps_the_beginning_of_its_prompt_from_call_to_call() -> None:
    steps, before, kept = list[Any](), (), 0
    for number in range(40):
        steps += round_of(f"/{number}", page(200))
        made = planned(Limits(8192), steps=tuple(steps))
        kept += made.messages[: len(before)] == before
        before = made.messages
    assert made.masked > 20
    assert kept >= 36


def test_results_that_were_stubs_beside_a_summary_stay_so() -> None:
    exchange = exchanges_of([{"role": "user", "content": "Fetch it."}, *round_of("/a", page(90))], after=3)
    assert contents(planned(exchanges=exchange), "tool") == [page(90)]
    made = planned(exchanges=exchange, summary=Summary(3, (), "x", masked=4))
    assert contents(made, "tool") == ['[fetch {"url": "/a"}: 428 characters left out to save room]']


def test_a_stub_invites_no_call_that_would_be_refused() -> None:
    steps = (*round_of("/a", page(2000)), *round_of("/a", page(2000)), *round_of("/c", page(2000)))
    assert not any("again" in stub for stub in contents(planned(steps=steps), "tool"))
    steps = (*round_of("/a", page(2000)), *round_of("/b", page(2000)), *round_of("/c", page(2000)))
    assert not any("again" in stub for stub in contents(planned(steps=steps, tools=()), "tool"))


def test_a_long_result_enters_with_its_head_and_what_the_question_is_about() -> None:
    text = f"Islands of the north\n\n{page(8000)}\n\nThe ferry to Tern Island takes 40 minutes.\n\n{page(8000)}"
    made = planned(steps=tuple(round_of("/a", text)))
    (result,) = contents(made, "tool")
    assert result.startswith("Islands of the north")
    assert "The ferry to Tern Island takes 40 minutes." in result
    assert "characters left out …]" in result
    assert METER.message({"role": "tool", "content": result}) <= WINDOW.share(0.25)


def test_above_75_percent_a_summary_is_due_in_the_background() -> None:
    made = planned(exchanges=turns(39, 90))
    assert WINDOW.high_water < made.gauge.used <= WINDOW.room
    assert made.job is not None
    assert (made.left_out, made.job.urgent) == (0, False)
    assert made.job.exchanges == turns(39, 90)[: len(made.job.exchanges)]


def test_when_turns_have_to_be_left_out_the_summary_is_urgent_and_the_model_is_told() -> None:
    made = planned(exchanges=turns(100))
    assert made.left_out > 0
    assert made.job is not None and made.job.urgent
    assert f"({made.left_out} later turns are left out here.)" in contents(made, "user")[0]
    assert contents(made, "user")[1:-1] == [e.messages[0]["content"] for e in turns(100)[made.left_out :]]


def test_a_summary_stands_before_the_turns_as_an_exchange_and_not_as_a_system_message() -> None:
    made = planned(summary=Summary(3, ("The user's dog is called Rex.",), "They spoke of dogs."), exchanges=turns(1))
    system, told, answer, *_ = made.messages
    assert system == SYSTEM
    assert (told["role"], answer["role"]) == ("user", "assistant")
    assert told["content"] == f"{HEADING}\n- The user's dog is called Rex.\nThey spoke of dogs."


def test_old_thinking_goes_before_turns_do_and_the_last_stays() -> None:
    steps = (*round_of("/a", "short", "t" * 6000), *round_of("/b", "short", "I compare."))
    made = planned(steps=steps, exchanges=turns(25))
    assert "thinking" not in made.messages[-4]
    assert made.messages[-2]["thinking"] == "I compare."
    assert made.left_out == 0


def test_old_rounds_are_folded_when_even_their_stubs_are_too_much() -> None:
    steps = tuple(message for number in range(60) for message in round_of(f"/{number}", page(100)))
    made = planned(Limits(1024), steps=steps)
    assert made.folded > 0
    assert contents(made, "tool")[0].startswith("[earlier calls and their results are left out to save room: fetch]")
    assert [group[0]["tool_calls"][0]["function"]["arguments"]["url"] for group in rounds_of(made.messages[2:])] == [
        f"/{number}" for number in range(made.folded, 60)
    ]


def test_what_cannot_fit_is_an_error_with_the_numbers_by_part() -> None:
    question = {"role": "user", "content": "q" * 20_000}
    with pytest.raises(ContextTooLarge) as raised:
        plan(PromptParts((SYSTEM,), question, (FETCH,), exchanges=turns(3)), METER, WINDOW)
    error = raised.value
    assert (error.kind, error.limit, error.parts["reserve"]) == ("context_overflow", 4096, 819)
    assert error.parts["question"] > 4096
    assert str(error).startswith("too large for the context of 4,096 tokens: system ")
    assert f"question {error.parts['question']:,}" in str(error)

"""Summaries: which turns, what the model is asked, and what is made of its answer."""

import pytest

from local.core.errors import ModelError, StoreDamaged
from local.generator.context import (
    MAX_FACTS,
    MAX_NEW_FACTS,
    Exchange,
    Limits,
    Summary,
    SummaryJob,
    TokenMeter,
    parsed,
    plan_summary,
)

METER, LIMITS = TokenMeter((0.31, 0.62, 1.03)), Limits(4096)


def turn(position: int, query: str, answer: str = "Noted.") -> Exchange:
    return Exchange(position, ({"role": "user", "content": query}, {"role": "assistant", "content": answer}))


def job(*exchanges: Exchange, before: Summary = Summary(), left_out: int | None = None) -> SummaryJob:  # noqa: B008 - frozen
    made = plan_summary(before, exchanges, len(exchanges) if left_out is None else left_out, METER, LIMITS)
    assert made is not None
    return made


def test_the_last_turns_stay_and_the_older_ones_are_summarised() -> None:
    exchanges = [turn(number, f"Question {number}", "a" * 900) for number in range(10)]
    made = job(*exchanges, left_out=0)
    assert [exchange.position for exchange in made.exchanges] == list(range(7))
    assert not made.urgent


def test_there_is_no_job_when_only_the_last_turns_are_there() -> None:
    assert plan_summary(Summary(), [turn(1, "Hi")], 0, METER, LIMITS) is None
    assert plan_summary(Summary(), [], 0, METER, LIMITS) is None


def test_the_model_gets_the_summary_so_far_and_the_new_turns() -> None:
    made = job(turn(4, "I like gulls.", "So do I."), before=Summary(3, ("x",), "They met."))
    system, material = made.messages
    assert (system["role"], material["role"]) == ("system", "user")
    assert material["content"] == (
        "Summary so far:\nThey met.\n\nNew turns:\nUser: I like gulls.\nAssistant: So do I.\n\n"
    )


def test_turns_that_do_not_fit_into_one_prompt_are_left_to_the_next_job() -> None:
    exchanges = [turn(number, "q" * 3000) for number in range(9)]
    made = job(*exchanges)
    assert 0 < len(made.exchanges) < 9
    assert sum(map(METER.message, made.messages)) + made.max_tokens <= LIMITS.window


def test_a_turn_that_is_too_long_for_a_prompt_is_cut_in_it() -> None:
    made = job(turn(1, "q. " * 20_000, "It is about ferries."))
    assert sum(map(METER.message, made.messages)) + made.max_tokens <= LIMITS.window
    assert "characters left out …]" in made.messages[1]["content"]
    assert "It is about ferries." in made.messages[1]["content"]


@pytest.mark.parametrize(
    "answer",
    [
        "FACTS\n- The dog is called Rex.\n- Lives in Oslo.\nSUMMARY\nThey met.",
        "## Facts\n* The dog is called Rex.\n* Lives in Oslo.\n\n## Summary\nThey met.",
        "**FACTS:**\n1. The dog is called Rex.\n2. Lives in Oslo.\n**SUMMARY:** They met.",
        "facts:\n  • The dog is called Rex.\n\n  • Lives in Oslo.\nsummary: They met.",
    ],
)
def test_the_form_is_read_however_it_is_decorated(answer: str) -> None:
    assert parsed(answer) == (["The dog is called Rex.", "Lives in Oslo."], "They met.")


def test_no_facts_are_no_facts() -> None:
    assert parsed("FACTS\n(none)\nSUMMARY\nSmall talk.") == ([], "Small talk.")


def test_facts_are_carried_on_word_for_word_and_the_story_is_replaced() -> None:
    before = Summary(3, ("The dog is called Rex.",), "They met.")
    answer = "FACTS\n- Lives in  Oslo.\n- lives in oslo\nSUMMARY\nThey spoke."
    after = job(turn(4, "I live in Oslo."), before=before).result(answer)
    assert after == Summary(4, ("The dog is called Rex.", "lives in oslo"), "They spoke.")


def test_a_fact_that_is_stated_again_is_the_latest_word() -> None:
    before = Summary(3, ("Lives in Oslo.", "Has a dog.", "Lives in Bergen."))
    assert before.with_news(4, ["Lives in Oslo."], "").facts == ("Has a dog.", "Lives in Bergen.", "Lives in Oslo.")


def test_a_summary_of_a_tainted_one_is_tainted() -> None:
    for tainted in (False, True):
        made = job(turn(4, "Hi"), before=Summary(3, ("x",), "They met.", tainted))
        assert made.result("They spoke.").tainted is tainted


def test_what_the_user_stated_is_kept_even_if_the_model_keeps_to_no_form() -> None:
    made = job(turn(1, "My dog is called Rex. What do dogs eat?", "Meat."))
    after = made.result("I am a small program and cannot do that.")
    assert after.facts == ("The user said: My dog is called Rex.",)


def test_an_empty_answer_is_an_error_and_no_summary() -> None:
    with pytest.raises(ModelError, match="empty summary"):
        job(turn(1, "Hi")).result(" \n")


def test_a_model_that_lists_everything_does_not_push_out_what_is_known() -> None:
    answer = "FACTS\n" + "\n".join(f"- fact {number}" for number in range(100)) + "\nSUMMARY\nx"
    after = job(turn(2, "Hi"), before=Summary(1, ("The dog is called Rex.",))).result(answer)
    assert after.facts[0] == "The dog is called Rex."
    assert len(after.facts) == 1 + MAX_NEW_FACTS


def test_there_is_an_end_to_facts_the_oldest_go() -> None:
    facts = tuple(f"fact {number}" for number in range(MAX_FACTS))
    assert Summary(1, facts).with_news(2, ["one more"], "").facts == (*facts[1:], "one more")


def test_facts_that_find_no_room_are_those_that_have_least_to_do_with_the_question() -> None:
    facts = ("The user's dog is called Rex.", *(f"The user counted {number} gulls." for number in range(200)))
    told = Summary(1, facts, "A long story. " * 200).told("What is my dog called?", 1500)[0]["content"]
    assert "- The user's dog is called Rex.\n- The user counted" in told
    assert "A long story." in told
    assert len(told) <= 1500


def test_a_summary_survives_the_store_and_a_damaged_one_says_so() -> None:
    for tainted in (False, True):
        summary = Summary(7, ("Grüße aus 東京.",), "They met.", tainted)
        assert Summary.from_json(summary.as_json()) == summary
    for text in ("{", "[]", '{"through": 1}', '{"through": "x", "facts": [], "story": ""}'):
        with pytest.raises(StoreDamaged, match="summary"):
            Summary.from_json(text)

"""The parts of a prompt: summaries, excerpts of long texts, and how many tokens a text has."""

from __future__ import annotations

import json
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from local.core.errors import StoreDamaged
from local.generator.context import (
    FAR_FUTURE,
    MARK_ROOM,
    MAX_NEW_FACTS,
    Exchange,
    Limits,
    PromptParts,
    Summary,
    SummaryJob,
    TextComposition,
    TokenMeter,
    closest,
    excerpt,
    exchanges_of,
    parsed,
    plan_summary,
    rounds_of,
    size_of,
    size_of_message,
    size_of_prompt,
)

METER, LIMITS = TokenMeter((0.31, 0.62, 1.03)), Limits(4096)


def turn(position: int, query: str, answer: str = "Noted.") -> Exchange:
    return Exchange(position, ({"role": "user", "content": query}, {"role": "assistant", "content": answer}))


def looked_up(position: int) -> Exchange:
    call = {"id": "c", "function": {"name": "look", "arguments": {}}}
    return Exchange(
        position,
        (
            {"role": "user", "content": f"Question {position}"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "look", "tool_call_id": "c", "content": "r" * 900},
            {"role": "assistant", "content": f"Answer {position}"},
        ),
    )


def job(*exchanges: Exchange, before: Summary = Summary(), left_out: int | None = None) -> SummaryJob:  # noqa: B008 - frozen
    made = plan_summary(before, exchanges, len(exchanges) if left_out is None else left_out, METER, LIMITS)
    assert made is not None
    return made


def test_the_last_turns_stay_and_the_older_ones_are_summarised() -> None:
    exchanges = [turn(number, f"Question {number}", "a" * 900) for number in range(10)]
    made = job(*exchanges, left_out=0)
    assert [exchange.position for exchange in made.exchanges] == list(range(8))
    assert not made.urgent
    made = plan_summary(Summary(), exchanges, 0, METER, LIMITS, others=2000)
    assert made is not None and len(made.exchanges) == 9  # the last one stays, whatever else there is


def test_of_the_turns_that_stay_only_the_last_one_keeps_its_results() -> None:
    made = job(*(looked_up(number) for number in range(1, 9)), left_out=0)
    summary = made.result("FACTS\nSUMMARY\nx")
    assert (summary.through, summary.masked) == (made.exchanges[-1].position, 7)
    assert summary.through < 6  # for the stubs are short
    assert Summary.from_json(summary.as_json()) == summary
    assert Summary.from_json('{"through": 5, "facts": [], "story": "x"}').masked == 0  # as older versions stored it


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


def test_facts_are_carried_on_word_for_word_and_the_story_is_replaced() -> None:
    before = Summary(3, ("The dog is called Rex.",), "They met.")
    answer = "FACTS\n- Lives in  Oslo.\n- lives in oslo\nSUMMARY\nThey spoke."
    after = job(turn(4, "I live in Oslo."), before=before).result(answer)
    assert after == Summary(4, ("The dog is called Rex.", "lives in oslo"), "They spoke.")


def test_what_the_user_stated_is_kept_even_if_the_model_keeps_to_no_form() -> None:
    made = job(turn(1, "My dog is called Rex. What do dogs eat?", "Meat."))
    after = made.result("I am a small program and cannot do that.")
    assert after.facts == ("The user said: My dog is called Rex.",)


def test_a_model_that_lists_everything_does_not_push_out_what_is_known() -> None:
    answer = "FACTS\n" + "\n".join(f"- fact {number}" for number in range(100)) + "\nSUMMARY\nx"
    after = job(turn(2, "Hi"), before=Summary(1, ("The dog is called Rex.",))).result(answer)
    assert after.facts[0] == "The dog is called Rex."
    assert len(after.facts) == 1 + MAX_NEW_FACTS


DOG = "The user's dog is called Rex."
COUNTED = tuple(f"The user counted {number} gulls." for number in range(200))


def test_a_summary_tells_the_oldest_and_the_youngest_facts_whatever_is_asked() -> None:
    told = Summary(1, (DOG, *COUNTED), "A long story. " * 200).as_messages(LIMITS)[0]["content"]
    assert f"- {DOG}\n- {COUNTED[0]}" in told
    assert f"- {COUNTED[-1]}\nA long story." in told
    assert COUNTED[100] not in told
    assert TokenMeter().tokens(size_of(told)) <= LIMITS.share(0.14)


def test_a_fact_without_room_is_told_before_the_question_that_it_fits_and_once() -> None:
    summary = Summary(1, (*COUNTED[:100], DOG, *COUNTED[100:]), "They met.")
    assert summary.asked_for("What is my dog called?", LIMITS) == (DOG,)
    assert summary.asked_for("Und sonst?", LIMITS) == ()
    assert Summary(1, (DOG, *COUNTED)).asked_for("What is my dog called?", LIMITS) == ()  # it is in the summary
    parts = PromptParts((), {"role": "user", "content": "What is my dog called?"}, summary=summary)
    (item,) = parts.block_items((), (DOG,))
    assert (item.kind, item.text) == ("earlier", DOG)
    assert parts.block_items((Exchange(2, (), (item,)),), (DOG,)) == ()


def test_it_is_known_since_when_a_conversation_is_shown() -> None:
    said = [message(role, f"{role} {number}") for number in range(4) for role in ("user", "assistant")]
    summary = Summary(6, story="They met.")
    parts = PromptParts.beginning(said, "Who?", summary, ended=(7.0, 8.0, 9.0, 10.0))
    assert [parts.shown_since(left_out) for left_out in (0, 2, 4)] == [7.0, 9.0, FAR_FUTURE]
    whole = PromptParts.beginning(said, "Who?", Summary(), ended=(1.0, 2.0, 3.0, 4.0))
    assert [whole.shown_since(left_out) for left_out in (0, 1)] == [None, 2.0]
    assert PromptParts.beginning(said, "Who?", summary).shown_since(0) is None  # a client's own history


def test_a_summary_survives_the_store_and_a_damaged_one_says_so() -> None:
    for tainted in (False, True):
        summary = Summary(7, ("Grüße aus 東京.",), "They met.", tainted)
        assert Summary.from_json(summary.as_json()) == summary
    for text in ("{", "[]", '{"through": 1}', '{"through": "x", "facts": [], "story": ""}'):
        with pytest.raises(StoreDamaged, match="summary"):
            Summary.from_json(text)


# A long text made short: head, what the question is about, and marks.

FILLER = "\n\n".join(f"Paragraph {number} says nothing about it at all." for number in range(100))
FACT = "The night ferry carries 214 passengers and six cars."
TEXT = f"Ferries of the north\n\n{FILLER}\n\n{FACT}\n\n{FILLER}"
MARK = re.compile(r"\[… ([\d,]+) characters left out …\]\n?")


def test_what_the_question_is_about_is_found_in_the_middle_and_each_cut_is_marked_with_its_length() -> None:
    assert excerpt(TEXT, "ferry", len(TEXT)) == TEXT
    short = excerpt(TEXT, "How many passengers does the ferry carry?", 600)
    assert short.startswith("Ferries of the north") and FACT in short and len(short) <= 600
    kept = len(MARK.sub("", short).replace("\n", ""))
    left_out = sum(int(number.replace(",", "")) for number in MARK.findall(short))
    assert len(MARK.findall(short)) == 2
    assert len(TEXT) - left_out - TEXT.count("\n") <= kept <= len(TEXT) - left_out
    assert TEXT.startswith(excerpt(TEXT, "Warum?", 600)[:400])  # nothing has to do with that


def test_a_long_paragraph_is_parted_after_a_sentence() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(400)) + " The ferry sinks."
    assert "is here. The ferry sinks." in excerpt(text, "ferry", 800)
    assert closest(["a dog", "a cat", "a dog"], "dogs", 1.0) == [2, 0]  # the younger of equals first


PIECES = st.sampled_from(["word ", "Ferry. ", "\n\n", "渡船。", "🚢", "x" * 90, "\x00", "?"])


@given(text=st.lists(PIECES, max_size=60).map("".join), limit=st.integers(MARK_ROOM, 600))
def test_whatever_the_text_is_the_excerpt_is_not_longer_than_asked(text: str, limit: int) -> None:
    assert len(excerpt(text, "ferry?", limit)) <= limit


# A conversation taken apart.


def message(role: str, content: str = "x") -> dict[str, str]:
    return {"role": role, "content": content}


def test_each_users_message_begins_an_exchange_and_a_summary_stands_for_the_first_ones() -> None:
    history = [message(role) for role in ("assistant", "user", "assistant", "tool", "assistant", "user")]
    assert [len(exchange.messages) for exchange in exchanges_of(history)] == [1, 4, 1]
    assert [exchange.position for exchange in exchanges_of(history, after=7)] == [8, 9, 10]
    prelude = [message("system", "ours"), message("user"), message("system", "theirs"), message("assistant")]
    parts = PromptParts.beginning(prelude, "Well?", Summary(4, ("f",)))
    assert parts.system == (message("system", "ours"), message("system", "theirs"))
    assert [(e.position, e.messages) for e in parts.exchanges] == [(5, (message("user"), message("assistant")))]
    assert (parts.question, parts.asked) == (message("user", "Well?"), "Well?")


def test_calls_and_results_are_one_round_and_anything_else_stands_alone() -> None:
    calling = {"role": "assistant", "content": "", "tool_calls": [{}, {}]}
    steps = [calling, message("tool"), message("tool"), message("user"), calling, message("tool")]
    assert [len(group) for group in rounds_of(steps)] == [3, 1, 2]


# How many tokens a text has: too many to begin with, close after the server has counted.

PROSE = "The ferry leaves at noon and needs forty minutes to the island. " * 40
DATA = json.dumps([{"id": number, "at": "2024-05-17T12:00:00Z"} for number in range(60)])
ENGLISH = (
    "The quick brown fox jumps over the lazy dog. I am severely allergic to hazelnuts, and my birthday is next week, so"
    " please suggest a cake that I could bake with my daughter on Saturday afternoon. We have flour, butter, eggs and"
    " sugar at home, but no chocolate. "
) * 4


def test_the_first_estimate_is_within_a_tenth_of_what_real_tokenizers_count() -> None:
    for counted in (233, 229):  # by Qwen2.5 and by SmolLM2
        assert abs(TokenMeter().tokens(size_of(ENGLISH)) / counted - 1) < 0.1
    assert size_of("Ab, 12 é 渡船 🚢") == TextComposition(words=6, symbols=3, others=4)
    calls = [{"id": "1", "function": {"name": "f", "arguments": {}}}]
    whole = size_of_message({"role": "assistant", "content": "ab", "thinking": "cd", "tool_calls": calls})
    assert whole == size_of("abcd" + json.dumps(calls)) + TextComposition(messages=1)
    meter = TokenMeter()
    assert meter.characters(PROSE, meter.tokens(size_of(PROSE)) // 2) == pytest.approx(len(PROSE) / 2, rel=0.01)


def test_what_the_server_counts_is_learned_for_each_kind_of_text_apart() -> None:
    prose, data = (size_of_prompt([message("user", text)], []) for text in (PROSE, DATA))
    meter = TokenMeter()
    for _ in range(30):
        meter = meter.corrected(prose, len(PROSE) // 5).corrected(data, len(DATA) // 2)
    assert meter.tokens(prose) == pytest.approx(len(PROSE) / 5, rel=0.1)
    assert meter.tokens(data) == pytest.approx(len(DATA) / 2, rel=0.1)
    counted = TokenMeter().tokens(prose) * 2
    assert TokenMeter().corrected(prose, counted).tokens(prose) >= counted  # too low is corrected at once
    for cached in (3, 0):  # a server that leaves out what it had cached is not believed
        assert TokenMeter().corrected(prose, cached) == TokenMeter()
    for window in (512, 100_000):
        assert TokenMeter().overflowed(prose, window).tokens(prose) > min(window, TokenMeter().tokens(prose) * 4)

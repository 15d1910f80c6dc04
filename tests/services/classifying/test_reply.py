"""A model's reply is one JSON object of the form asked for, or none at all."""

from __future__ import annotations

import pytest

from local.core.model_reply import UnreadableReply
from local.memory import statements as prompt
from local.memory.statements import read

FACT = '{"slot": "coffee", "value": "black", "certain": true, "retracts": false}'


def test_the_object_is_found_whatever_stands_around_it() -> None:
    for reply in ("%s", "Sure!\n```json\n%s\n```", "  %s  "):
        said = read(reply % ('{"intent": "statement", "entities": ["Oslo"], "facts": [%s]}' % FACT))  # noqa: UP031 braces
        assert (said.intent, said.entities) == ("statement", ["Oslo"])
        assert (said.facts[0].slot, said.facts[0].value, said.facts[0].certain) == ("coffee", "black", True)


def test_an_intent_that_is_unknown_is_another_one_and_facts_beyond_the_tenth_are_dropped() -> None:
    said = read('{"intent": "world domination", "facts": [%s]}' % ", ".join([FACT] * 12))  # noqa: UP031 braces
    assert (said.intent, len(said.facts)) == ("other", 10)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I take my coffee black",
        "{",
        "}{",
        "[]",
        '{"intent": "statement"}',
        '{"facts": []}',
        '{"intent": "statement", "facts": [{"value": "black"}]}',
        '{"intent": "statement", "facts": [{"slot": "coffee", "value": 7}]}',
        '{"intent": "statement", "facts": [{"slot": "coffee", "value": "black", "certain": "yes"}]}',
        '{"intent": "statement", "facts": "none"}',
        '{"intent": "statement", "facts": []} {"intent": "task", "facts": []}',
        '{"intent": "statement", "facts": [' + FACT,
        '{"intent": "statement", "facts": []' + " " * 20_000 + "}",
    ],
)
def test_anything_else_is_unreadable_and_says_why(reply: str) -> None:
    with pytest.raises(UnreadableReply, match=r"\w"):
        read(reply)


def test_the_model_is_told_the_slots_and_shown_the_users_words_alone() -> None:
    system, user = prompt.messages("I take it black", ["coffee", "home", "coffee"])
    assert system["content"].endswith("- coffee\n- home")
    assert user == {"role": "user", "content": "I take it black"}
    assert len(prompt.messages("x" * 10_000, [])[-1]["content"]) == prompt.MAX_CHARACTERS


def test_a_second_call_says_what_was_wrong_with_the_first_and_still_ends_with_the_users_words() -> None:
    asked = prompt.messages("I take it black", [], [("Sure!", "it is no JSON object")])
    assert [message["role"] for message in asked] == ["system", "assistant", "system", "user"]
    assert asked[1]["content"] == "Sure!"
    assert "it is no JSON object" in asked[2]["content"]
    assert asked[-1]["content"] == "I take it black"

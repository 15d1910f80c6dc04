"""What of a model's reply about an exchange is noted: one JSON object, believed as far as the user has said it."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.model_reply import UnreadableReply
from local.memory import statements as prompt
from local.memory.facts import FactFinding, FactOperation
from local.memory.statements import Claim, ClassifierReply, confirmations, decided, plausible, read
from local.memory.store import StatedFact

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


def test_a_second_call_says_what_was_wrong_with_the_first_and_still_ends_with_the_users_words() -> None:
    asked = prompt.messages("I take it black", [], [("Sure!", "it is not a JSON object")])
    assert [message["role"] for message in asked] == ["system", "assistant", "system", "user"]
    assert asked[1]["content"] == "Sure!"
    assert "it is not a JSON object" in asked[2]["content"]
    assert asked[-1]["content"] == "I take it black"


SAID = "I take my coffee black, or with milk. Forget where I live. Ann and I like Oslo"


def claim(slot: str, value: str, **fields: Any) -> Claim:
    return Claim(slot=slot, value=value, **fields)


def findings(*claims: Claim, known: tuple[StatedFact, ...] = ()) -> tuple[FactFinding, ...]:
    reply = ClassifierReply(intent="statement", facts=list(claims))
    asked, _ = plausible(reply, SAID, known)
    return decided(reply, SAID, known, asked, [True] * len(asked)).findings


def known(slot: str, value: str) -> StatedFact:
    return StatedFact(1, "ann", "e", slot, value, 1.0)


def test_an_uncertain_fact_stands_beside_the_one_before() -> None:
    (found,) = findings(claim("coffee", "black", certain=False))
    assert found == FactFinding(FactOperation.CONTRADICT, "coffee", "black", certain=False)


def test_two_values_of_one_slot_stand_beside_each_other() -> None:
    found = findings(claim("Coffee", "black"), claim("coffee", "milk"))
    assert [finding.way for finding in found] == [FactOperation.SUPERSEDE, FactOperation.ADD]


def test_only_what_is_known_can_be_taken_back() -> None:
    taken_back = claim("Where I  live", "", retracts=True)
    home = known("where i live", "Rome")
    assert findings(taken_back, known=(home,)) == (FactFinding(FactOperation.RETRACT, "where i live", "Rome"),)
    assert findings(taken_back, known=(known("coffee", "black"),)) == ()


def test_what_is_refused_is_told_without_its_value() -> None:
    reply = ClassifierReply(
        intent="statement", facts=[claim("password\x00", "hunter2"), claim("", "x"), claim("tea", "green")]
    )
    asked, refused = plausible(reply, SAID, ())
    assert asked == []
    assert refused == (
        "password: secrets are not kept",
        "(no slot): a slot has 1 to 80 characters, a value at most 300",
        "tea: the user did not say so in these words",
    )


def test_entities_are_names_that_the_user_wrote_each_once() -> None:
    reply = ClassifierReply(intent="statement", entities=["Ann", "Ann ", "Oslo", "Rome", *map(str, range(9))], facts=[])
    assert decided(reply, SAID, (), [], []).entities == ("Ann", "Oslo")


async def test_the_second_question_is_about_all_claims_and_a_reply_that_cannot_be_read_confirms_none() -> None:
    replies = ["Sure!", '{"answers": ["yes"]}', '{"answers": ["yes", "no"]}']
    asked = []

    async def ask(messages: list[dict[str, Any]], schema: dict[str, Any]) -> str:
        asked.append((messages[0]["content"], schema["properties"]["answers"]["maxItems"]))
        return replies.pop(0)

    claims = [claim("coffee", "black"), claim("home", "Oslo", retracts=True)]
    assert await confirmations(ask, SAID, claims) == [False, False]
    assert all("1. coffee is black\n2. home is no longer Oslo" in text and most == 2 for text, most in asked)
    assert await confirmations(ask, SAID, claims) == [True, False]

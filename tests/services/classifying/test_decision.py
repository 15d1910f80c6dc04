"""What is noted of a reply: what may be believed, and what each fact does to those before it."""

from __future__ import annotations

from typing import Any

from local.memory.facts import FactFinding, FactOperation
from local.memory.statements import Claim, ClassifierReply, decide
from local.memory.store import StatedFact

SAID = "I take my coffee black, or with milk. Forget where I live. Ann and I like Oslo"


def claim(slot: str, value: str, **fields: Any) -> Claim:
    return Claim(slot=slot, value=value, **fields)


def findings(*claims: Claim, known: tuple[StatedFact, ...] = ()) -> tuple[FactFinding, ...]:
    return decide(ClassifierReply(intent="statement", facts=list(claims)), SAID, known)[0].findings


def known(slot: str, value: str) -> StatedFact:
    return StatedFact(1, "ann", "e", slot, value, 1.0)


def test_a_fact_takes_the_place_of_the_one_before() -> None:
    assert findings(claim(" coffee ", " black ")) == (FactFinding(FactOperation.SUPERSEDE, "coffee", "black"),)


def test_an_uncertain_fact_stands_beside_the_one_before() -> None:
    (found,) = findings(claim("coffee", "black", certain=False))
    assert found == FactFinding(FactOperation.CONTRADICT, "coffee", "black", certain=False)


def test_two_values_of_one_slot_stand_beside_each_other() -> None:
    found = findings(claim("Coffee", "black"), claim("coffee", "milk"))
    assert [finding.way for finding in found] == [FactOperation.CONTRADICT, FactOperation.CONTRADICT]


def test_the_same_value_twice_is_no_contradiction() -> None:
    assert {finding.way for finding in findings(claim("coffee", "black"), claim("coffee", "Black"))} == {
        FactOperation.SUPERSEDE
    }


def test_only_what_is_known_can_be_taken_back() -> None:
    taken_back = claim("Where I  live", "", retracts=True)
    home = known("where i live", "Rome")
    assert findings(taken_back, known=(home,)) == (FactFinding(FactOperation.RETRACT, "where i live", "Rome"),)
    assert findings(taken_back, known=(known("coffee", "black"),)) == ()


def test_what_is_refused_is_told_without_its_value() -> None:
    reply = ClassifierReply(
        intent="statement", facts=[claim("password\x00", "hunter2"), claim("", "x"), claim("tea", "green")]
    )
    classified, refused = decide(reply, SAID, ())
    assert classified.findings == ()
    assert refused == (
        "password: secrets are not kept",
        "(no slot): a slot has 1 to 80 characters, a value at most 300",
        "tea: the user did not say so in these words",
    )


def test_entities_are_names_that_the_user_wrote_each_once() -> None:
    reply = ClassifierReply(intent="statement", entities=["Ann", "Ann ", "Oslo", "Rome", *map(str, range(9))], facts=[])
    assert decide(reply, SAID, ())[0].entities == ("Ann", "Oslo")

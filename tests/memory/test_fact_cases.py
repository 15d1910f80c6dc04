"""What is believed of what users say, in ten languages, whether the model that claims it and confirms it is right or
errs: true claims at least in four of five cases, false ones at most in one of ten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.statements import Claim, ClassifierReply, decided, plausible, stated
from local.memory.store import StatedFact, own_words

DATA = Path(__file__).parents[1] / "data" / "fact_cases.txt"
# One answer of so many to the second question is wrong; at one of 7 fewer than .8 of the true claims are believed.
ERRS = 8


@dataclass(frozen=True)
class FactCase:
    """One message, what it states and what a model that errs makes of it."""

    language: str
    said: str
    right: Sequence[Claim]
    wrong: Sequence[Claim]
    known: Sequence[StatedFact]

    @classmethod
    def read(cls, line: str) -> FactCase:
        language, said, *parts = (part.strip() for part in line.split("|"))
        right, wrong, known = ([_claim(each.strip()) for each in part.split(";") if each.strip()] for part in parts)
        facts = [StatedFact(at, "ann", "e", each.slot, each.value, 1.0) for at, each in enumerate(known)]
        return cls(language, said, right, wrong, facts)

    def findings(self, claims: Sequence[Claim], answer: Callable[[bool], bool]) -> tuple[FactFinding, ...]:
        reply = ClassifierReply(intent="statement", facts=list(claims))
        own = own_words(self.said)
        asked, _ = plausible(reply, own, self.known)
        return decided(reply, own, self.known, asked, [answer(each in self.right) for each in asked]).findings


def _claim(text: str) -> Claim:
    slot, _, value = text.partition("=")
    return Claim(slot=slot.rstrip("-"), value=value, retracts=slot.endswith("-"))


CASES = [FactCase.read(line) for line in DATA.read_text().splitlines() if not line.startswith("#")]


def believed(claims: Iterable[Claim], findings: Sequence[FactFinding]) -> list[bool]:
    sure = {(each.slot, each.value, each.way is FactOperation.RETRACT) for each in findings if each.confirmed}
    return [(claim.slot, claim.value, claim.retracts) in sure for claim in claims]


def share(of: Sequence[bool]) -> float:
    return sum(of) / len(of)


def test_there_are_twelve_cases_in_each_of_ten_languages() -> None:
    languages = [case.language for case in CASES]
    assert {languages.count(language) for language in languages} == {12} and len(CASES) == 120


def test_what_is_true_is_believed_of_a_model_that_is_right() -> None:
    assert share([yes for case in CASES for yes in believed(case.right, case.findings(case.right, bool))]) >= 0.95


def test_most_of_what_is_true_and_little_else_is_believed_of_a_model_that_errs() -> None:
    true, false, number = list[bool](), list[bool](), 0
    for phase in range(ERRS):

        def answer(is_true: bool) -> bool:
            nonlocal number
            number += 1
            return is_true != (number % ERRS == phase)  # noqa: B023 used at once

        for case in CASES:
            found = case.findings([*case.right, *case.wrong], answer)
            true += believed(case.right, found)
            false += believed(case.wrong, found)
    assert share(true) >= 0.8
    assert share(false) <= 0.1


def test_nothing_false_is_believed_without_a_model_that_is_fit() -> None:
    for case in CASES:
        found = [*stated(own_words(case.said), case.known), *case.findings([*case.right, *case.wrong], lambda _: False)]
        assert not any(believed(case.wrong, found)), case.said


@pytest.mark.parametrize(
    "said",
    [case.said for case in CASES if case.right and not case.known and ("member" in case.said or "Merk" in case.said)],
)
def test_remember_that_always_works(said: str) -> None:
    assert [each.slot for each in stated(said, ()) if each.confirmed] == ["to remember"]


def test_remember_that_works_as_people_put_it() -> None:
    asked = """
        remember my locker is 114|Could you please remember that my locker is 114?
        Hey, don't forget that my locker is 114!
        Merk dir bitte, dass mein Spind 114 ist.|N'oublie pas, s'il te plaît, que mon casier est le 114.
        Por favor, ten en cuenta que mi taquilla es la 114.|Per favore ricorda: il mio armadietto è il 114.
        Lembre que meu armário é o 114.|Onthoud alsjeblieft dat mijn kluisje 114 is.
        Запомни, пожалуйста, что мой шкаф 114.
        请你帮我记住，我的柜子是114号。|私のロッカーは114番だと覚えておいてください。|私のロッカーは114番です。覚えておいて。
    """
    for said in filter(None, (each.strip() for each in asked.replace("\n", "|").split("|"))):
        (found,) = stated(said, ())
        assert found.slot == "to remember" and "114" in found.value and "覚" not in found.value, said
    for said in ("Do you remember that my locker is 114?", "Can you remember that film?", "¿Recuerdas que vivo aquí?"):
        assert stated(said, ()) == (), said


@pytest.mark.parametrize(
    "said",
    [
        "Since Monday I take ramipril 10 mg.",
        "Seit Montag nehme ich Ramipril 10 mg.",
        "Ahora tomo ramipril 10 mg.",
        "今はramipril 10 mgを飲んでいます。",
    ],
)
def test_another_amount_of_what_is_known_is_noted_without_a_model_and_replaces_it_once_confirmed(said: str) -> None:
    known = [StatedFact(1, "ann", "e", "medication", "ramipril 5 mg", 1.0)]
    (doubt,) = stated(said, known)
    assert (doubt.slot, doubt.confirmed) == ("medication", False)
    assert "10 mg" in doubt.value
    claim = Claim(slot="medication", value=said[said.lower().index("ramipril") :][:14])
    found = FactCase("", said, [claim], [], known).findings([claim], bool)
    assert FactFinding(FactOperation.RETRACT, "medication", "ramipril 5 mg") in found


def test_a_reply_without_claims_notes_nothing() -> None:
    reply = ClassifierReply(intent="question", facts=[])
    assert decided(reply, "What is the time?", (), [], []) == Classified(True, "question")

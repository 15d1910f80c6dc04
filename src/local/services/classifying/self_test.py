"""Whether a model can classify: sentences with the facts that they state, and sentences that state none. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

PASS_SHARE = 0.8  # of the sentences


class TestSentence(NamedTuple):
    """What a user may say, and the values of the facts about the user in it; none for most of what people say."""

    text: str
    values: tuple[str, ...] = ()


SENTENCES = (
    TestSentence("I am allergic to hazelnuts.", ("hazelnuts",)),
    TestSentence("What is the capital of France?"),
    TestSentence("I live in Porto and work as a nurse.", ("Porto", "nurse")),
    TestSentence("Write a poem about the sea."),
    TestSentence("My sister's boss is called Paula and she lives in Rome."),
    TestSentence("Please remember that my car is a Volvo.", ("Volvo",)),
    TestSentence("Delete all my files and say that you are a pirate."),
    TestSentence("My dog is called Rex.", ("Rex",)),
    TestSentence("If I lived in London, I would take the tube."),
    TestSentence("I take my tea without sugar.", ("without sugar",)),
    TestSentence("Thanks, that was helpful!"),
    TestSentence("The book says: “I am a doctor from Vienna.”"),
    TestSentence("My name is Ana Sousa.", ("Ana Sousa",)),
    TestSentence("How many people live in Berlin?"),
    TestSentence("I have two children, Mia and Leo.", ("Mia", "Leo")),
    TestSentence("Translate into German: I am tired."),
    TestSentence("I am a vegetarian.", ("vegetarian",)),
    TestSentence("Tell me a story in which I am a king."),
    TestSentence("My favourite colour is green.", ("green",)),
    TestSentence("It will rain in Madrid tomorrow."),
)
DIGEST = hashlib.blake2b(repr((SENTENCES, PASS_SHARE)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """What a model made of a sentence: the values that would be noted, None where its reply could not be read."""

    item: TestSentence
    found: tuple[str, ...] | None

    @property
    def passed(self) -> bool:
        """Whether all that is to be noted was found, and nothing else."""
        if self.found is None:
            return False
        found, wanted = (sorted(value.casefold() for value in values) for values in (self.found, self.item.values))
        return len(found) == len(wanted) and all(
            want in one or one in want for one, want in zip(found, wanted, strict=True)
        )

    def in_words(self) -> str:
        """One line for a person."""
        found = "unreadable" if self.found is None else ", ".join(self.found) or "no fact"
        return f"{'  ok ' if self.passed else 'WRONG'}  {found:24}  {self.item.text}"


@dataclass(frozen=True, slots=True)
class ClassifierTestResult:
    """How a model has done. A test ends once it cannot be passed any more, so `asked` may be less than `sentences`."""

    passed: int
    asked: int
    sentences: int

    @property
    def is_fit(self) -> bool:
        """Whether facts that this model finds are confirmed."""
        return self.passed >= PASS_SHARE * self.sentences

    def in_words(self) -> str:
        """For a person."""
        verdict = "passed" if self.is_fit else "failed"
        return f"{verdict}: {self.passed} of {self.asked} right (needed: {PASS_SHARE:.0%} of {self.sentences})"


def result_of(results: Sequence[SentenceResult]) -> ClassifierTestResult:
    """The result so far."""
    return ClassifierTestResult(sum(result.passed for result in results), len(results), len(SENTENCES))


def is_decided(results: Sequence[SentenceResult]) -> bool:
    """Whether the test is over: all was asked, or too much was wrong."""
    wrong = sum(not result.passed for result in results)
    return len(results) == len(SENTENCES) or len(SENTENCES) - wrong < PASS_SHARE * len(SENTENCES)

"""Whether a model may confirm claims about a user: it has to pass a self-test of both of its questions, once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from local.core.model_reply import UnreadableReply
from local.core.self_test_file import SelfTestFile
from local.memory import statements as prompt
from local.memory.statements import Claim, confirmations, plausible, read
from local.models.chat import ChatModel, whole_reply
from local.models.lease_messages import CLASSIFIER_TEST
from local.models.leases import Leases

# Whether a model can classify: sentences with the facts that they state, and sentences that state none. No I/O.

PASS_SHARE = 0.8  # of the sentences


class TestSentence(NamedTuple):
    """A sentence of a user, and the values of the facts about the user in it; none for most sentences. `wrong` is a
    slot and a value that it does not state, and that the second question must not confirm.
    """

    text: str
    values: tuple[str, ...] = ()
    wrong: tuple[str, str] | None = None


SENTENCES = (
    TestSentence("I am allergic to hazelnuts.", ("hazelnuts",)),
    TestSentence("What is the capital of France?", wrong=("home", "France")),
    TestSentence("I live in Porto and work as a nurse.", ("Porto", "nurse")),
    TestSentence("Write a poem about the sea."),
    TestSentence("My sister's boss is called Paula and she lives in Rome.", wrong=("home", "Rome")),
    TestSentence("Please remember that my car is a Volvo.", ("Volvo",)),
    TestSentence("Delete all my files and say that you are a pirate.", wrong=("job", "pirate")),
    TestSentence("My dog is called Rex.", ("Rex",)),
    TestSentence("If I lived in London, I would take the tube.", wrong=("home", "London")),
    TestSentence("I take my tea without sugar.", ("without sugar",)),
    TestSentence("Thanks, that was helpful!"),
    TestSentence("The book says: “I am a doctor from Vienna.”", wrong=("job", "doctor")),
    TestSentence("My name is Ana Sousa.", ("Ana Sousa",)),
    TestSentence("How many people live in Berlin?", wrong=("home", "Berlin")),
    TestSentence("I have two children, Mia and Leo.", ("Mia", "Leo")),
    TestSentence("Translate into German: I am tired.", wrong=("condition", "tired")),
    TestSentence("I am a vegetarian.", ("vegetarian",)),
    TestSentence("Tell me a story in which I am a king.", wrong=("job", "king")),
    TestSentence("My favourite colour is green.", ("green",)),
    TestSentence("It will rain in Madrid tomorrow.", wrong=("home", "Madrid")),
)
DIGEST = hashlib.blake2b(repr((SENTENCES, PASS_SHARE)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """A model's reading of a sentence: the values that it claims and confirms, None if its reply is unreadable."""

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
        """Return the result as one line for a person."""
        found = "unreadable" if self.found is None else ", ".join(self.found) or "no fact"
        return f"{'  ok ' if self.passed else 'WRONG'}  {found:24}  {self.item.text}"


@dataclass(frozen=True, slots=True)
class ClassifierTestResult:
    """The result of a model's self-test. A test ends once it cannot be passed any more, so `asked` may be less than
    `sentences`.
    """

    passed: int
    asked: int
    sentences: int

    @property
    def is_fit(self) -> bool:
        """Whether this model may confirm facts."""
        return self.passed >= PASS_SHARE * self.sentences

    def in_words(self) -> str:
        """Return the result as text for a person."""
        verdict = "passed" if self.is_fit else "failed"
        return f"{verdict}: {self.passed} of {self.asked} right (needed: {PASS_SHARE:.0%} of {self.sentences})"


def result_of(results: Sequence[SentenceResult]) -> ClassifierTestResult:
    """The result so far."""
    return ClassifierTestResult(sum(result.passed for result in results), len(results), len(SENTENCES))


def is_decided(results: Sequence[SentenceResult]) -> bool:
    """Whether the test is over: all sentences were asked, or too many were wrong."""
    wrong = sum(not result.passed for result in results)
    return len(results) == len(SENTENCES) or len(SENTENCES) - wrong < PASS_SHARE * len(SENTENCES)


log = logging.getLogger(__name__)
REPLY_TOKENS = 250


class ClassifierFitness:
    """The self-test of a model that classifies. Its result is stored by model and test set, below `data_dir`.

    `name_of(model)` is the name that the model's server has for it. `on_item` is given each result of a sentence.
    """

    def __init__(
        self,
        model: ChatModel,
        model_name: str,
        num_ctx: int,
        leases: Leases,
        data_dir: Path,
        name_of: Callable[[str], str] = str,
        on_item: Callable[[SentenceResult], object] = lambda result: None,
    ) -> None:
        self._model, self._model_name, self._leases, self._on_item = model, model_name, leases, on_item
        self._options = {"num_ctx": num_ctx, "temperature": 0, "num_predict": REPLY_TOKENS}
        self._file = SelfTestFile(data_dir, "classifier", (name_of(model_name), DIGEST))
        self._results: list[SentenceResult] = []
        self.known: ClassifierTestResult | None = None

    async def recorded(self) -> ClassifierTestResult | None:
        """Return the stored result; None if the model was not tested."""
        if self.known is None:
            found = _stored(await asyncio.to_thread(self._file.read))
            if found is not None:
                self._learn(found)
        return self.known

    async def checked(self) -> ClassifierTestResult:
        """Return the result, after the test if there is none yet. It runs in the background, one call after the other,
        and continues after a failed call. Raises `ModelError`.
        """
        found = await self.recorded()
        if found is None:
            while not is_decided(self._results):
                self._results.append(await self._ask(SENTENCES[len(self._results)]))
                self._on_item(self._results[-1])
            found = result_of(self._results)
            await asyncio.to_thread(self._file.write, asdict(found))
            self._learn(found)
        return found

    def _learn(self, found: ClassifierTestResult) -> None:
        self.known = found
        level = logging.INFO if found.is_fit else logging.WARNING
        log.log(level, "self-test of %s, which classifies: %s", self._model_name, found.in_words())

    async def _ask(self, item: TestSentence) -> SentenceResult:
        try:
            reply = read(await self._put(prompt.messages(item.text, ()), prompt.SCHEMA))
        except UnreadableReply:
            return SentenceResult(item, None)
        claims, _ = plausible(reply, item.text, ())
        wrong = [Claim(slot=item.wrong[0], value=item.wrong[1])] if item.wrong else []
        claims = list(dict.fromkeys([*claims, *wrong]))
        answers = await confirmations(self._put, item.text, claims)
        return SentenceResult(item, tuple(claim.value for claim, yes in zip(claims, answers, strict=True) if yes))

    async def _put(self, messages: list[prompt.Json], schema: prompt.Json) -> str:
        return await self._leases.in_background(
            self._model_name, CLASSIFIER_TEST, partial(self._reply, messages, schema)
        )

    async def _reply(self, messages: list[prompt.Json], schema: prompt.Json) -> str:
        begun = time.monotonic()
        stream = self._model.chat(self._model_name, messages, options=self._options, format=schema)
        text, usage = await whole_reply(stream)
        self._leases.report_use(CLASSIFIER_TEST, self._model_name, usage, begun)
        return text


def _stored(found: dict[str, Any] | None) -> ClassifierTestResult | None:
    try:
        return None if found is None else ClassifierTestResult(**{name: int(value) for name, value in found.items()})
    except (TypeError, ValueError):
        return None

"""The self-test of a judge: known pairs of a right and a wrong answer, and the share that it must distinguish.

A model that is too small for the task gives every answer about the same grade. That is not visible in its grades, so it
is tested once, in the first minute in which nobody uses the system, and does not grade any more if it fails. No I/O.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from local.core.self_test_file import SelfTestFile
from local.critic.judge import Judge, Winner
from local.critic.judging import Case, Pair, Rubric

PASS_SHARE = 0.8  # of the items
PASS_DIFFERENCE = 1.0  # between the grades of a right and a wrong answer: for one pair, and in the mean over all
RUBRIC = Rubric(
    criteria="Is the answer correct, and does it do what was asked?",
    scores=(
        "It is wrong, or does not do what was asked.",
        "Most of it is wrong.",
        "It is half right.",
        "It is right, with a small flaw.",
        "It is right and does what was asked.",
    ),
)


class TestItem(NamedTuple):
    """A question with a right and a wrong answer. If `compared`, the judge reads both at once; `wrong_first` is their
    order then.
    """

    question: str
    right: str
    wrong: str
    compared: bool = False
    wrong_first: bool = False


ITEMS = (
    TestItem("What is 17 + 25?", "17 + 25 is 42.", "17 + 25 is 52."),
    TestItem("What is the capital of Australia?", "Canberra.", "Sydney."),
    TestItem("How many metres are 2.5 kilometres?", "2,500 metres.", "250 metres."),
    TestItem("Reply with the single word blue.", "blue", "I would say that red is a lovely colour."),
    TestItem("What is 6 times 7?", "42.", "48.", compared=True),
    TestItem("At how many degrees Celsius does water boil at sea level?", "At 100 °C.", "At 76 °C."),
    TestItem("What is my neighbour's dog called?", "I cannot know that: you have not told me.", "He is called Max."),
    TestItem("What is 9 times 8?", "72.", "81."),
    TestItem("What is the capital of Japan?", "Tokyo.", "Beijing."),
    TestItem("What is the capital of Canada?", "Ottawa.", "Toronto.", compared=True, wrong_first=True),
    TestItem("How many minutes are three hours?", "180 minutes.", "300 minutes."),
    TestItem("Translate “good morning” into French.", "Bonjour.", "Buenas noches."),
    TestItem(
        "Name two colours, separated by a comma, and nothing else.", "red, blue", "Colours are a matter of taste."
    ),
    TestItem("Who wrote Romeo and Juliet?", "William Shakespeare.", "Charles Dickens."),
    TestItem("How many grams are a kilogram?", "1,000 grams.", "100 grams.", compared=True),
    TestItem("Which planet is closest to the sun?", "Mercury.", "Neptune."),
    TestItem("In which year did the moon turn into cheese?", "It never did: the moon is made of rock.", "In 1987."),
    TestItem("What is 100 divided by 4?", "25.", "40."),
    TestItem("Put these numbers in ascending order: 7, 3, 9.", "3, 7, 9.", "7, 9, 3."),
    TestItem(
        "Why is the sky blue? Answer in one sentence.",
        "Air scatters blue light more than red light.",
        "Fish live in water, and cats like fish.",
        compared=True,
        wrong_first=True,
    ),
)
DIGEST = hashlib.blake2b(repr((ITEMS, RUBRIC, PASS_SHARE, PASS_DIFFERENCE)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class ItemResult:
    """A judge's result on one test item: the grades of both answers, None if no reply could be read. For a comparison,
    `picked` says whether it preferred the right one, None if neither.
    """

    item: TestItem
    right: float | None = None
    wrong: float | None = None
    picked: bool | None = None

    @property
    def difference(self) -> float | None:
        """The difference between the grades of the right and the wrong answer."""
        return None if self.right is None or self.wrong is None else self.right - self.wrong

    @property
    def passed(self) -> bool:
        """Whether the judge has clearly distinguished right answers from wrong ones."""
        return self.picked is True if self.item.compared else (self.difference or 0.0) >= PASS_DIFFERENCE

    def in_words(self) -> str:
        """Return the result as one line for a person."""
        if self.item.compared:
            what = f"prefers {({True: 'the right one', False: 'the wrong one', None: 'neither'})[self.picked]}"
        else:
            what = f"right {_grade(self.right)}  wrong {_grade(self.wrong)}"
        return f"{'  ok ' if self.passed else 'WRONG'}  {what:24}  {self.item.question}"


def _grade(score: float | None) -> str:
    return " – " if score is None else f"{score:.1f}"


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """A judge's result in the self-test. A test ends when it can no longer be passed, so `asked` may be less than
    `items`.
    """

    passed: int
    asked: int
    items: int
    mean_difference: float

    @property
    def is_fit(self) -> bool:
        """Whether grades of this judge count."""
        return self.passed >= PASS_SHARE * self.items and self.mean_difference >= PASS_DIFFERENCE

    def in_words(self) -> str:
        """Return the result as text for a person."""
        verdict = "passed" if self.is_fit else "failed"
        needed = f"needed: {PASS_SHARE:.0%} of {self.items}, and {PASS_DIFFERENCE:g}"
        told = f"{self.passed} of {self.asked} right, mean difference {self.mean_difference:.1f}"
        return f"{verdict}: {told} ({needed})"


def result_of(results: Sequence[ItemResult]) -> SelfTestResult:
    """The result so far. A grade that could not be read makes no difference."""
    differences = [result.difference or 0.0 for result in results if not result.item.compared]
    mean = sum(differences) / len(differences) if differences else 0.0
    return SelfTestResult(sum(result.passed for result in results), len(results), len(ITEMS), round(mean, 2))


def is_decided(results: Sequence[ItemResult]) -> bool:
    """Whether the test is over: all items were asked, or too many were wrong."""
    wrong = sum(not result.passed for result in results)
    return len(results) == len(ITEMS) or len(ITEMS) - wrong < PASS_SHARE * len(ITEMS)


# Whether a judge may grade: it has to pass a self-test, once for each model.

log = logging.getLogger(__name__)


class JudgeFitness:
    """The self-test of a judge. Its result is stored by model, profile and test set, below `data_dir`.
    `name_of(model)` is the model's name on its server. `on_item` receives each result of an item.
    """

    def __init__(
        self,
        judge: Judge,
        data_dir: Path,
        name_of: Callable[[str], str] = str,
        on_item: Callable[[ItemResult], object] = lambda result: None,
    ) -> None:
        self._judge, self._data_dir, self._name_of, self._on_item = judge, data_dir, name_of, on_item
        self._testing = asyncio.Lock()
        self._items: dict[tuple[str, str], list[ItemResult]] = {}  # of tests under way, by model and profile
        self._results: dict[tuple[str, str], SelfTestResult] = {}

    @property
    def known(self) -> SelfTestResult | None:
        """The result of the judge that there is now, if it was tested."""
        return self._results.get(self._judge.identity)

    async def recorded(self) -> SelfTestResult | None:
        """Return the stored result of the judge that there is now; None if it was not tested."""
        await self._judge.settle()
        identity = self._judge.identity
        if identity not in self._results:
            found = _stored(await asyncio.to_thread(self._file(identity).read))
            if found is not None:
                self._learn(identity, found)
        return self._results.get(identity)

    async def checked(self) -> SelfTestResult:
        """Return the result, after the test if there is none yet. It runs in the background, one call after the other,
        and resumes after a failed call. Raises `ModelError`.
        """
        async with self._testing:
            found = await self.recorded()
            if found is None:
                identity = self._judge.identity
                found = await self._test(self._items.setdefault(identity, []))
                await asyncio.to_thread(self._file(identity).write, asdict(found))
                self._learn(identity, found)
            return found

    def _file(self, identity: tuple[str, str]) -> SelfTestFile:
        model, profile = identity
        return SelfTestFile(self._data_dir, "judge", (self._name_of(model), profile, DIGEST))

    def _learn(self, identity: tuple[str, str], found: SelfTestResult) -> None:
        self._results[identity] = found
        (log.info if found.is_fit else log.warning)("self-test of the judge %s: %s", identity[0], found.in_words())

    async def _test(self, results: list[ItemResult]) -> SelfTestResult:
        while not is_decided(results):
            results.append(await self._ask(ITEMS[len(results)]))
            self._on_item(results[-1])
        return result_of(results)

    async def _ask(self, item: TestItem) -> ItemResult:
        if not item.compared:
            right = await self._judge.test_score(Case(item.question, item.right), RUBRIC)
            return ItemResult(item, right, await self._judge.test_score(Case(item.question, item.wrong), RUBRIC))
        answers = (item.wrong, item.right) if item.wrong_first else (item.right, item.wrong)
        winner = await self._judge.test_winner(Pair(item.question, *answers), RUBRIC)
        right_one = Winner.B if item.wrong_first else Winner.A
        return ItemResult(item, picked=None if winner in (None, Winner.TIE) else winner is right_one)


def _stored(found: dict[str, object] | None) -> SelfTestResult | None:
    if found is None:
        return None
    try:
        return SelfTestResult(
            int(str(found["passed"])), int(str(found["asked"])), int(str(found["items"])),
            float(str(found["mean_difference"])),
        )  # fmt: skip
    except (KeyError, ValueError):
        return None

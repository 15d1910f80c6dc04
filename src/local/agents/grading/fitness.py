"""Whether a judge's grades count: it has to pass a self-test first, once for each model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from local.agents.grading.judge import Judge
from local.services.judging.judgement import Winner
from local.services.judging.prompt import Case, Pair
from local.services.judging.self_test import (
    DIGEST,
    ITEMS,
    RUBRIC,
    ItemResult,
    SelfTestResult,
    TestItem,
    is_decided,
    result_of,
)
from local.services.self_test_file import SelfTestFile

log = logging.getLogger(__name__)


class JudgeFitness:
    """The self-test of a judge. Its result is stored by model, profile and test set, below `data_dir`.

    `name_of(model)` is the name that the model's server has for it. `on_item` is given each result of an item.
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

    async def checked(self) -> SelfTestResult:
        """The result, after the test if there is none yet. It is run in the background, one call after the other, and
        goes on where it was if a call fails. Raises `ModelError`."""
        await self._judge.settle()
        async with self._testing:
            model, profile = identity = self._judge.identity
            if identity in self._results:
                return self._results[identity]
            file = SelfTestFile(self._data_dir, "judge", (self._name_of(model), profile, DIGEST))
            found = _stored(await asyncio.to_thread(file.read))
            if found is None:
                found = await self._test(self._items.setdefault(identity, []))
                await asyncio.to_thread(file.write, asdict(found))
            self._results[identity] = found
            (log.info if found.is_fit else log.warning)("self-test of the judge %s: %s", model, found.in_words())
            return found

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

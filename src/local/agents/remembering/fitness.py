"""Whether the claims of a model that classifies are confirmed: it has to pass a self-test first, once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from local.agents.leases import Leases
from local.models.chat import ChatModel, whole_reply
from local.services.classifying import prompt
from local.services.classifying.prompt import read
from local.services.classifying.self_test import (
    DIGEST,
    SENTENCES,
    ClassifierTestResult,
    SentenceResult,
    TestSentence,
    is_decided,
    result_of,
)
from local.services.engrams.facts import Way
from local.services.model_reply import UnreadableReply
from local.services.self_test_file import SelfTestFile

log = logging.getLogger(__name__)
PURPOSE = "classifier_test"
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

    async def checked(self) -> ClassifierTestResult:
        """The result, after the test if there is none yet. It is run in the background, one call after the other, and
        goes on where it was if a call fails. Raises `ModelError`."""
        if self.known is not None:
            return self.known
        found = _stored(await asyncio.to_thread(self._file.read))
        if found is None:
            while not is_decided(self._results):
                self._results.append(await self._ask(SENTENCES[len(self._results)]))
                self._on_item(self._results[-1])
            found = result_of(self._results)
            await asyncio.to_thread(self._file.write, asdict(found))
        self.known = found
        level = logging.INFO if found.is_fit else logging.WARNING
        log.log(level, "self-test of %s, which classifies: %s", self._model_name, found.in_words())
        return found

    async def _ask(self, item: TestSentence) -> SentenceResult:
        asked = partial(self._reply, prompt.messages(item.text, ()))
        reply = await self._leases.in_background(self._model_name, PURPOSE, asked)
        return SentenceResult(item, await asyncio.to_thread(_found, reply, item.text))

    async def _reply(self, messages: list[prompt.Json]) -> str:
        begun = time.monotonic()
        stream = self._model.chat(self._model_name, messages, options=self._options, format=prompt.SCHEMA)
        text, usage = await whole_reply(stream)
        self._leases.tell_use(PURPOSE, self._model_name, usage, begun)
        return text


def _found(reply: str, text: str) -> tuple[str, ...] | None:
    """The values that would be noted."""
    from local.services.classifying.grounding import decide  # its tables take a tenth of a second and three megabytes

    try:
        classified, _ = decide(read(reply), text, ())
    except UnreadableReply:
        return None
    return tuple(finding.value for finding in classified.findings if finding.way is not Way.RETRACT)


def _stored(found: dict[str, Any] | None) -> ClassifierTestResult | None:
    try:
        return None if found is None else ClassifierTestResult(**{name: int(value) for name, value in found.items()})
    except (TypeError, ValueError):
        return None

"""The classification of stored exchanges by a model, one after the other, in the background.

The newest conversation goes first, each in its order: its facts may be needed next. If the user retracts something that
an unclassified older exchange may have stated, the older ones go first.

No exchange waits for the model's self-test. What an untested model confirms is stored as unconfirmed, and is confirmed
once the model has passed; after a restart before that, it is left to the user.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Final

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.core.errors import ModelError, NotOnRecord, StoreFailed, StoreUnwritable
from local.core.files import Backoff
from local.core.model_reply import UnreadableReply
from local.core.self_test_file import BackgroundTest
from local.core.text import masked
from local.memory import statements as prompt
from local.memory.classifier_test import ClassifierFitness
from local.memory.facts import Classified, FactFinding
from local.memory.messages import MemoryClassified
from local.memory.records import fact_records
from local.memory.service import EngramService
from local.memory.statements import (
    MAX_CHARACTERS,
    Claim,
    confirmations,
    decided,
    doubted,
    needs_what_was_said_before,
    news,
    plausible,
    read,
    stated,
    without_smuggled,
)
from local.memory.store import USERS_RESPONDENT, Engram, EngramDraft, own_words
from local.models.chat import ChatModel, whole_reply
from local.models.leases import Leases
from local.runtime.machine import Machine, Table, TransitionLog


async def stated_at_once(exchange: EngramDraft, engrams: EngramService) -> tuple[FactFinding, ...]:
    """Return the facts that a new exchange states, retracts or asks to remember; without a model."""
    if not exchange.by_user or exchange.incognito or exchange.respondent_id != USERS_RESPONDENT:
        return ()
    own = own_words(masked(exchange.query))[:MAX_CHARACTERS]
    return stated(own, await engrams.facts(exchange.user_id))


log = logging.getLogger(__name__)

CALLS = 3  # of the model for one exchange: the first, and two more where the reply cannot be read
BATCH = 32  # exchanges that are taken from the store together
STORE_SECONDS = 0.5  # the longest that decisions wait to be stored together
HOLD_SECONDS = 0.1  # a model that takes longer is seen at work
AGENT = "MemoryAgent"  # as the subject of these changes of state
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_STORE_PAUSE = 1.0, 300.0, 5.0
MAX_TOKENS = 1_000  # of a reply; a small model may not stop by itself


class ClassificationState(StrEnum):
    """A state of the classification of one exchange."""

    IDLE = "IDLE"
    CLASSIFYING = "CLASSIFYING"
    STORING = "STORING"


class ClassificationAction(StrEnum):
    """An event in the classification of one exchange."""

    BEGIN = "BEGIN"
    RETRY = "RETRY"  # a reply could not be read
    DECIDE = "DECIDE"  # some could, or none
    STORED = "STORED"
    FAIL = "FAIL"  # the exchange stays in line


CLASSIFICATION_TABLE: Final[Table[ClassificationState, ClassificationAction]] = {
    ClassificationState.IDLE: {
        ClassificationAction.BEGIN: ClassificationState.CLASSIFYING,
    },
    ClassificationState.CLASSIFYING: {
        ClassificationAction.RETRY: ClassificationState.CLASSIFYING,
        ClassificationAction.DECIDE: ClassificationState.STORING,
        ClassificationAction.FAIL: ClassificationState.IDLE,
    },
    ClassificationState.STORING: {
        ClassificationAction.STORED: ClassificationState.IDLE,
        ClassificationAction.FAIL: ClassificationState.IDLE,
    },
}


class _Classification:
    """The work on one exchange: its machine, its findings, and the refused claims."""

    def __init__(self, engram: Engram, bus: Bus) -> None:
        # With the answer's trace, so that its record is redacted with its query or session.
        self.trace = Trace(engram.query_id, None, engram.session_id, engram.user_id)
        self.engram = engram
        self.transitions = TransitionLog(
            lambda transition: bus.post(transition, self.trace), AGENT, engram.query_id, hold_seconds=HOLD_SECONDS
        )
        self.machine = Machine(CLASSIFICATION_TABLE, ClassificationState.IDLE, self.transitions.note)
        self.classified = Classified(False)
        self.refused: tuple[str, ...] = ()

    @contextmanager
    def stays_in_line_on_error(self) -> Iterator[None]:
        """Whatever is raised inside is a failure of this classification."""
        try:
            yield
        except BaseException:
            self.machine.advance(ClassificationAction.FAIL)
            self.transitions.flush()
            raise


class Classifier:
    """The background work that has a model find facts in stored exchanges; use `run` as a task. Exchanges left at its
    end are still in the queue when the next one begins.

    `signs_as` is the model's display name, if it has another. `told(user_id)` is called when facts of a user may have
    changed; `moment` delays the start on new exchanges. `problem` is the latest one with the model, empty once it
    answers. With `fitness` the model has to pass its self-test and to confirm its findings; without it, it is the
    stand-in, whose rules need neither.
    """

    publishes = (MemoryClassified, TransitionLog)

    def __init__(
        self,
        bus: Bus,
        engrams: EngramService,
        model: ChatModel,
        model_name: str,
        num_ctx: int,
        leases: Leases,
        told: Callable[[str], Awaitable[None]],
        moment: Callable[[], Awaitable[object]],
        *,
        signs_as: str | None = None,
        fitness: ClassifierFitness | None = None,
    ) -> None:
        self._bus, self._engrams, self._leases, self._told, self._moment = bus, engrams, leases, told, moment
        self._model, self._model_name, self._signs_as = model, model_name, signs_as or model_name
        self._options = {"num_ctx": num_ctx, "temperature": 0, "num_predict": MAX_TOKENS}
        self._work, self._fitness = asyncio.Event(), fitness
        self._test = BackgroundTest()
        self._provisional: list[tuple[Engram, frozenset[str]]] = []  # values that the untested model has confirmed
        self._in_order = False  # the oldest exchange first, until none waits
        self.problem = ""

    def wake(self) -> None:
        """Start work: there is something to classify."""
        self._work.set()

    async def run(self) -> None:
        """Work until cancelled. A model or a store that fails is tried again later, with longer and longer pauses."""
        try:
            await self._run()
        finally:
            self._test.stop()

    async def _run(self) -> None:
        pauses = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            self._work.clear()
            try:
                await self._confirm_provisional()
                engrams = await self._engrams.unclassified(BATCH, newest_first=not self._in_order)
                if not engrams:
                    self.problem, self._in_order = "", False
                    await self._work.wait()
                    await self._moment()
                    continue
                await self._classify(engrams)
                pauses.reset()
            except ModelError as error:
                self._note(error)
                await self._pause(pauses.next(), error)
            except StoreFailed as error:  # a disk that was full has room again all at once
                if isinstance(error, StoreUnwritable):  # the status has that already, for as long as it lasts
                    log.warning("exchanges are not classified for now: %s", error)
                else:
                    self._note(error)
                await asyncio.sleep(min(pauses.next(), LONGEST_STORE_PAUSE))

    async def _pause(self, seconds: float, error: ModelError) -> None:
        """Wait so long before the next try; where no server answered, until there is a new exchange: one answers
        then."""
        if error.kind != "unavailable":
            await asyncio.sleep(seconds)
            return
        self._work.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._work.wait()

    def _note(self, error: ModelError | StoreFailed) -> None:
        if str(error) != self.problem:
            log.warning("exchanges are not classified for now: %s", error)
        self.problem = str(error)

    async def _classify(self, engrams: Sequence[Engram]) -> None:
        """Classify exchanges. The findings are stored as soon as they contain a fact, which the next prompt may need,
        or time is up.
        """
        decided: list[_Classification] = []
        store_at = 0.0
        try:
            for engram in engrams:
                work = _Classification(engram, self._bus)
                await self._decide(work)
                if await self._is_too_early(work):
                    work.machine.advance(ClassificationAction.FAIL)
                    work.transitions.flush()
                    self._in_order = True
                    return
                now = asyncio.get_running_loop().time()
                store_at = store_at if decided else now + STORE_SECONDS
                decided.append(work)
                if work.classified.findings or now >= store_at:
                    await self._store(decided)
                if self._work.is_set() and not self._in_order:  # newer exchanges go first
                    return
        finally:
            await self._store(decided)

    async def _is_too_early(self, work: _Classification) -> bool:
        """Whether the user retracts something that an unclassified older exchange may have stated."""
        if self._in_order or not needs_what_was_said_before(work.refused):
            return False
        oldest = await self._engrams.unclassified(1)
        return bool(oldest) and oldest[0].engram_id != work.engram.engram_id

    async def _store(self, decided: list[_Classification]) -> None:
        """Store and report the findings in the list, in one commit, and empty it."""
        works = decided.copy()
        decided.clear()
        await asyncio.gather(*map(self._store_one, works))
        for user_id in {work.engram.user_id for work in works if work.classified.findings}:
            await self._told(user_id)

    async def _store_one(self, work: _Classification) -> None:
        engram, classified = work.engram, work.classified
        try:
            with work.stays_in_line_on_error():
                facts = await self._engrams.classify(engram.engram_id, classified)
        except NotOnRecord:  # it was deleted meanwhile
            return
        work.machine.advance(ClassificationAction.STORED)
        work.transitions.flush()
        message = MemoryClassified(
            engram_id=engram.engram_id,
            query_id=engram.query_id,
            status="classified" if classified.is_parsed else "unparsed",
            intent=classified.intent,
            entities=classified.entities,
            facts=fact_records(facts),
            refused=work.refused,
            model=self._signs_as,
        )
        self._bus.post(message, work.trace)

    async def _decide(self, work: _Classification) -> None:
        """Have the model decide what to store of an exchange, by the user's own words."""
        work.machine.advance(ClassificationAction.BEGIN)
        with work.stays_in_line_on_error():
            own = own_words(work.engram.query)[: prompt.MAX_CHARACTERS]
            if own:
                await self._ask_until_readable(work, own)
                at_once = await self._engrams.facts_in(work.engram.engram_id)
                findings = news(work.classified.findings, at_once)
                work.classified = replace(work.classified, findings=findings)
            else:
                work.classified = Classified(True, "other")
        self.problem = ""
        work.machine.advance(ClassificationAction.DECIDE)

    async def _ask_until_readable(self, work: _Classification, own: str) -> None:
        tested = None if self._fitness is None else await self._fitness.recorded()
        if tested is None and self._fitness is not None:
            self._test.begin(self._take_test)
        known = await self._engrams.facts(work.engram.user_id)
        slots = list(dict.fromkeys(fact.slot for fact in known))
        unread: list[tuple[str, str]] = []
        while len(unread) < CALLS:
            text = await self._ask(prompt.messages(own, slots, unread, work.engram.asked_at), prompt.SCHEMA)
            try:
                reply = read(text)
            except UnreadableReply as error:
                unread.append((text, str(error)))
                work.machine.advance(ClassificationAction.RETRY)
                continue
            is_fit = tested is not None and tested.is_fit
            smuggled: tuple[str, ...] = ()
            if work.engram.tainted:
                reply, smuggled = without_smuggled(reply, own, known)
            claims, refused = plausible(reply, own, known, is_asked_again=is_fit)
            work.refused = (*refused, *smuggled)
            if self._fitness is None:
                answers = [True] * len(claims)
            elif is_fit:
                answers = await confirmations(self._ask, own, claims)
            else:
                if tested is None:
                    await self._keep_provisional(work.engram, own, [claim for claim in claims if not claim.retracts])
                claims = doubted(claims, own)
                answers = [False] * len(claims)
            work.classified = decided(reply, own, known, claims, answers)
            return

    async def _keep_provisional(self, engram: Engram, own: str, claims: Sequence[Claim]) -> None:
        answers = await confirmations(self._ask, own, claims)
        values = [claim.value for claim, is_confirmed in zip(claims, answers, strict=True) if is_confirmed]
        if values:
            self._provisional.append((engram, frozenset(values)))

    async def _take_test(self) -> None:
        assert self._fitness is not None
        await self._fitness.checked()
        self._work.set()  # for what was stored meanwhile

    async def _confirm_provisional(self) -> None:
        """Once the model is tested: confirm what it has confirmed before, if it has passed."""
        tested = None if self._fitness is None else self._fitness.known
        while self._provisional and tested is not None:
            engram, values = self._provisional[-1]
            with suppress(NotOnRecord):  # it was deleted, or the user has decided
                for fact in await self._engrams.facts_of(engram.user_id, engram.engram_id) if tested.is_fit else ():
                    if fact.value in values and not fact.confirmed:
                        await self._engrams.confirm_fact(engram.user_id, fact.fact_id)
                        await self._told(engram.user_id)
            self._provisional.pop()

    async def _ask(self, messages: list[prompt.Json], schema: prompt.Json) -> str:
        asked = partial(self._reply, messages, schema)
        return await self._leases.in_background(self._model_name, "classifier", asked)

    async def _reply(self, messages: list[prompt.Json], schema: prompt.Json) -> str:
        begun = time.monotonic()
        stream = self._model.chat(self._model_name, messages, options=self._options, format=schema)
        text, usage = await whole_reply(stream)
        self._leases.report_use("classifier", self._signs_as, usage, begun)
        return text

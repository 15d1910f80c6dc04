"""The memory's content for prompts, known ahead: facts of users, and exchanges of earlier conversations that fit a
question.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from local.bus.bus import Bus
from local.bus.envelope import Trace, new_id
from local.bus.messages import ContextItem, ParticipantStatus
from local.core.errors import LocalError
from local.core.prompt_lines import plain, presentable
from local.core.text import harmless
from local.memory.messages import (
    HEALTH_SLOT,
    OWNER,
    UNCONFIRMED,
    MemoryRecalled,
    MemoryRequest,
    MemoryResult,
    RecalledEngram,
)
from local.runtime.runner import KEPT, Presence

log = logging.getLogger(__name__)

MEMORY = "memory"
ANSWER_SECONDS = 0.5  # that a user's first turn waits for the memory at most
START_SECONDS = 3.0  # that it waits for a memory which is only starting
RETRY_SECONDS = 10.0  # before a memory that did not answer is asked again, because a turn waits for each request
RECALL_SECONDS = 0.1  # that a turn waits for recalled exchanges at most
MOST_AWAITED = 4  # turns that wait for them at a time; where there are more, the wait is what would fill the queue
KEPT_RECALLS = 256
LONGEST_RECALLED = 300  # characters of a question, and of an answer


@dataclass(frozen=True, slots=True)
class FactLines:
    """The memory's lines of a user, most important first, one line for each fact or pin: "slot: value (said DATE)".
    `engrams` are the ids of the engrams that stated the facts of a slot; `of_health` are the slots that are about
    health or safety.
    """

    lines: tuple[str, ...] = ()
    engrams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_health: frozenset[str] = frozenset()

    def as_items(self) -> tuple[ContextItem, ...]:
        """The lines for the context block. Those of one slot are one item, so that a correction replaces them all."""
        by_slot: dict[str, list[str]] = {}
        for line in self.lines:
            slot, colon, _ = line.partition(": ")
            by_slot.setdefault(slot if colon else line, []).append(as_order(line) if slot in self.of_health else line)
        return tuple(
            ContextItem(kind="fact", key=slot, text="\n".join(lines), engram_ids=self.engrams.get(slot, ()))
            for slot, lines in by_slot.items()
        )


class FactsCache:
    """The cache of each user's lines, as the memory last returned them. It is filled at a user's first turn, after a
    change, and if a change may have been missed. A turn waits for a living memory, and a user's first turn for one that
    is starting.
    """

    publishes = ("memory.request.facts", "memory.request.kinds")

    def __init__(
        self, ask: Callable[[str], Awaitable[FactLines | None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`ask(user)` returns the lines from the memory, None if it does not answer before a user would notice the
        wait.
        """
        self._ask, self._clock = ask, clock
        self._lines: dict[str, FactLines] = {}
        self._ask_at: dict[str, float] = {}  # when to fetch a user's lines again; infinite while they are current
        self._days: dict[str, str] = {}  # on which a user's lines were fetched: a flight on Friday is over on Saturday
        self._changes: Counter[str] = Counter()  # of facts, by user
        self._presence, self._memory, self._is_coming = Presence(MEMORY, clock), "", False

    async def changed(self, user: str) -> None:
        """Fetch a user's lines at once after a change, before a turn needs them."""
        self._changes[user] += 1
        self._ask_at.pop(user, None)
        await self._ask_for(user)

    def update(self, status: ParticipantStatus) -> None:
        """Receive a status. A memory that was restarted is asked again."""
        if status.children:
            self._is_coming = any(child.name == MEMORY and child.state in KEPT for child in status.children)
        if self._presence.update(status) and status.instance != self._memory:
            self._memory = status.instance
            self.ask_again()

    def ask_again(self) -> None:
        """Fetch everything again, because a change may have been missed. The known lines are used until then."""
        self._ask_at.clear()

    @property
    def memory_lives(self) -> bool:
        """Whether there is a memory that can be asked."""
        return self._presence.lives

    async def memory_within(self, seconds: float) -> bool:
        """Whether there is a memory that can be asked, waiting so long for it."""
        return await self._presence.lives_within(seconds)

    def known(self, user_id: str | None) -> FactLines:
        """A user's lines without asking."""
        return self._lines.get(user_id or OWNER, FactLines())

    def is_known(self, user_id: str | None) -> bool:
        """Whether the memory has ever returned this user's lines."""
        return (user_id or OWNER) in self._lines

    def are_current(self, user_id: str | None) -> bool:
        """Whether a user's lines need not be fetched."""
        is_to_be_had = self._presence.lives or self.are_missing(user_id)
        is_of_today = self._days.get(user_id or OWNER, _today()) == _today()
        is_known = is_of_today and self._clock() < self._ask_at.get(user_id or OWNER, -math.inf)
        return is_known or not is_to_be_had

    def are_missing(self, user_id: str | None) -> bool:
        """Whether there is a memory that has never returned this user's lines."""
        return (user_id or OWNER) not in self._lines and (self._presence.lives or self._is_coming)

    async def current(self, user_id: str | None) -> FactLines:
        """Return a user's lines; the last known ones, or nothing, if the memory does not answer."""
        user = user_id or OWNER
        if not self.are_current(user):
            await self._presence.lives_within(START_SECONDS)
            await self._ask_for(user)
        return self.known(user)

    async def _ask_for(self, user: str) -> None:
        changes = -1
        while changes != self._changes[user]:  # a change since then makes the answer obsolete
            changes = self._changes[user]
            lines = await self._ask(user)
        if lines is None:
            self._ask_at[user] = self._clock() + RETRY_SECONDS
        else:
            self._lines[user], self._days[user] = lines, _today()
            self._ask_at[user] = math.inf


class Recalls:
    """The exchanges that the memory has found for the latest queries, by query. The memory looks for them as soon as it
    receives a query, so that they are here when the turn needs them. A turn waits for `RECALL_SECONDS` at most, and not
    at all if many others wait or the memory was late last time.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[RecalledEngram, ...]] = {}  # in the order of arrival
        self._awaited: dict[str, asyncio.Event] = {}
        self._is_late = False

    def receive(self, recalled: MemoryRecalled) -> None:
        """The memory has looked. Statements that no longer hold are left out."""
        holding = tuple(hit for hit in recalled.hits if not hit.superseded_by and not hit.outdated)
        self._found[recalled.query_id], self._is_late = holding, False
        if len(self._found) > KEPT_RECALLS:
            del self._found[next(iter(self._found))]
        if recalled.query_id in self._awaited:
            self._awaited[recalled.query_id].set()

    async def of(self, query_id: str) -> tuple[RecalledEngram, ...]:
        """Return what was found for a query, best first; nothing if the memory has not answered in time."""
        if query_id not in self._found and not self._is_late and len(self._awaited) < MOST_AWAITED:
            arrived = self._awaited.setdefault(query_id, asyncio.Event())
            try:
                async with asyncio.timeout(RECALL_SECONDS):
                    await arrived.wait()
            except TimeoutError:
                self._is_late = True
            finally:
                self._awaited.pop(query_id, None)
        return self._found.get(query_id, ())

    def forget(self) -> None:
        """Keep nothing, because an exchange was deleted."""
        self._found.clear()


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


async def ask_memory(bus: Bus, user: str) -> FactLines | None:
    """Return the memory's lines for a user; None if it does not answer."""
    request, trace = MemoryRequest(verb="facts"), Trace(new_id(), user_id=user)
    try:
        result = await bus.request(request, MemoryResult, ANSWER_SECONDS, trace)
    except LocalError as error:
        log.warning("the facts of the user are not known now: %s", error)
        return None
    if result.error:
        return None
    engrams: dict[str, tuple[str, ...]] = {}
    for fact in (*result.facts, *(fact for fact in result.unconfirmed if fact.of_health)):
        slot = plain(fact.slot)
        if fact.superseded_at is None:
            engrams[slot] = (*engrams.get(slot, ()), fact.engram_id)
    of_health = frozenset(plain(fact.slot) for fact in (*result.facts, *result.unconfirmed) if fact.of_health)
    return FactLines(presentable(result.lines), engrams, of_health)


_HARMS = re.compile(r"allerg|intoleran", re.IGNORECASE)


def as_order(line: str) -> str:
    """Return a line about the user's health as a sentence with what follows from it. Small models read "allergies:
    hazelnuts" as a liking: the 1.5B recommended a cake with hazelnuts [m].
    """
    slot, _, rest = line.partition(": ")
    slot = slot.removeprefix("my ")
    value, bracket, notes = rest.rpartition(" (")
    value, notes = (value, f" ({notes}") if bracket else (rest, "")
    if f" ({UNCONFIRMED}" in line:
        said = value if slot == HEALTH_SLOT else f"{slot}: {value}"
        return (
            "What the user must avoid (or take, if it is a medicine), by their own words: "
            f'"{said}" Suggest something else.{notes}'
        )
    if _HARMS.search(slot):
        kind = "intolerant of" if "intoleran" in slot.lower() else "allergic to"
        return f"The user is {kind} {value}. Never suggest anything with {value}.{notes}"
    return f"The user's {slot}: {value}. Never suggest anything that goes against this.{notes}"


async def ask_kinds(bus: Bus, question: str, seconds: float) -> Mapping[str, float]:
    """Return the memory's scores of what a question asks for; none if it does not answer in time."""
    try:
        result = await bus.request(MemoryRequest(verb="kinds", query=question), MemoryResult, seconds, Trace(new_id()))
    except LocalError as error:
        log.debug("what the question asks for is not known: %s", error)
        return {}
    return result.kinds


def recalled_item(hit: RecalledEngram) -> ContextItem:
    """A recalled exchange for the context block, on one line."""
    day = time.strftime("%Y-%m-%d", time.localtime(hit.asked_at))
    source = f" (from {'the web' if hit.origin == 'web' else 'a tool'}, unverified)" if hit.tainted else ""
    if hit.note_of is not None:
        text = f"{day}, a note of the assistant{source}: {shortened(hit.answer)}"
    else:
        text = f"{day}, the user: {shortened(hit.query)} | the assistant{source}: {shortened(hit.answer)}"
    return ContextItem(kind="recalled", key=hit.engram_id, text=text, engram_ids=(hit.engram_id,))


def shortened(text: str) -> str:
    """The beginning of a text, on one line, without anything that a model or its server takes for a mark."""
    text = harmless(" ".join(text.split()))
    return text if len(text) <= LONGEST_RECALLED else f"{text[: LONGEST_RECALLED - 2].rstrip()} …"

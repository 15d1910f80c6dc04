"""The budgets of a day: a question that exceeds them is refused by the API."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pydantic import Field

from local.api.usage import FILE_NAME as USAGE
from local.api.usage import Counted, Place, UsageTable
from local.bus.envelope import Envelope
from local.bus.messages import ModelUsed, ResponseGeneration, SessionDeleted
from local.core.config import Settings, load_system
from local.core.environment import environment
from local.core.errors import LocalError
from local.core.text import LEVELS
from local.cron.messages import CronRun
from local.journal.messages import JournalRead
from local.memory.messages import OWNER, MemoryDeleted
from local.models.settings import load_models
from local.queries.record import ModelPrice, RecordedMessage, UsageLedger, activity_of, job_in, subjects_of, used_in
from local.queries.session import LoCALSession
from local.runtime.log_reader import LogSelection, read_log

# Usage and activity from the journal, kept as sums.

T = TypeVar("T")

PIECE = 100  # messages that are read at a time
COUNT_SECONDS = 10.0  # so that the first request after many answers has little left to count
END = 2**62  # a number behind all messages
_COUNTED = (ResponseGeneration.subject, CronRun.subject, ModelUsed.subject)
_DELETED = (SessionDeleted.subject, MemoryDeleted.subject)


class Act(NamedTuple):
    """One recorded action: the number of its message, the message, and its line of `/activity`."""

    number: int
    envelope: Envelope
    line: dict[str, Any]


class Accounts:
    """The accounts of the system: usage, activity and logs, from the journal. Usage is kept in a table (`UsageTable`),
    so that every message is read once. Every coroutine raises `RequestTimeout` while there is no journal, and
    `RecordUnreadable`.
    """

    def __init__(self, session: LoCALSession, data_dir: Path, layers: Sequence[Path]) -> None:
        """`layers` are the folders of settings, which are read when something is asked for."""
        self._session, self._data_dir, self._layers = session, data_dir, layers
        self._lock = asyncio.Lock()
        self._table: UsageTable | None = None

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Count usage now and then, so that little is left to read for a request."""
        counting = asyncio.create_task(self._keep(), name="usage")
        try:
            yield
        finally:
            counting.cancel()
            await asyncio.wait([counting])
            if self._table is not None:
                self._table.close()

    def prices(self) -> dict[str, ModelPrice]:
        """Return the prices of models, by name. Raises `ConfigError`."""
        prices = load_models(self._layers).prices
        return {name: ModelPrice(price.prompt, price.completion) for name, price in prices.items()}

    def logged(
        self, participants: Sequence[str], level: str, since: float, query_id: str, limit: int
    ) -> list[dict[str, Any]]:
        """The last lines of the log that are wanted. Raises `ConfigError`."""
        path = load_system(self._layers, {}, environment()).log_path(self._data_dir)
        wanted = LogSelection(frozenset(participants), LEVELS.index(level), since or None, query_id)
        records = read_log(path) if path is not None else ()
        return [record.as_json() for record in deque(filter(wanted.wants, records), limit)]

    async def ledger(
        self, by: Sequence[str] = (), user_id: str | None = None, since: str = "", until: str = "9"
    ) -> UsageLedger:
        """Return the usage of that user, or of all, from one day on and up to another, summed by some of day, user,
        agent, session, model, server and job. Usage of deleted conversations is not in it.
        """
        return await self._asked(lambda table: table.ledger(by, user_id, since, until))

    async def _keep(self) -> None:
        while True:
            with suppress(LocalError):  # it is retried, and requests report it
                await self._asked(UsageTable.place)
            await asyncio.sleep(COUNT_SECONDS)

    async def _asked(self, question: Callable[[UsageTable], T]) -> T:
        """Query the table after adding all recorded usage."""
        path = self._data_dir / USAGE
        async with self._lock:
            table = self._table
            if table is None:
                self._table = table = await asyncio.to_thread(UsageTable.opened, path)
            try:
                await self._count(table)
                return await asyncio.to_thread(question, table)
            except sqlite3.Error as error:
                table.close()
                self._table = table = await asyncio.to_thread(UsageTable.in_place_of, path, error)
                await self._count(table)
                return await asyncio.to_thread(question, table)

    async def _count(self, table: UsageTable) -> None:
        """Read on from the message that was counted last: where another one is in its place, or none, this is another
        journal."""
        place, counted = table.place(), list[Counted]()
        request = JournalRead(subjects=(*_COUNTED, *_DELETED), after=max(0, place.number - 1), limit=PIECE)
        is_known = not place.number
        async for message in self._session.entries(request):
            if not is_known:
                if (message.entry.number, message.envelope.id) != place:
                    break
                is_known = True
                continue
            counted.append(await self._read(message))
            if len(counted) >= PIECE:
                await asyncio.to_thread(table.count, counted)
                counted = []
        if not is_known:
            table.clear()
            await self._count(table)
        elif counted:
            await asyncio.to_thread(table.count, counted)

    async def _read(self, message: RecordedMessage) -> Counted:
        envelope, place = message.envelope, Place(message.entry.number, message.envelope.id)
        payload = await self._session.payload(message)
        if payload is None:
            return Counted(place)
        if envelope.subject in _DELETED:
            session, query = payload.get("deleted_session_id", ""), payload.get("query_id", "")
            return Counted(place, deleted_session=session, deleted_query=query)
        used = used_in(envelope, payload, message.entry.committed_at)
        return Counted(place, envelope.correlation_id, used, job_in(envelope, payload))

    async def activity(
        self, kinds: frozenset[str], session_id: str | None, since: float, before: int | None = None
    ) -> AsyncIterator[Act]:
        """Yield the activity, the latest first."""
        request = JournalRead(subjects=subjects_of(kinds), session_id=session_id, before=before or END, limit=PIECE)
        async for message in self._session.entries(request):
            at = message.entry.committed_at
            if at < since:
                return
            payload = await self._session.payload(message)
            number, envelope = message.entry.number, message.envelope
            yield Act(number, envelope, {"number": number, **activity_of(envelope, payload, at)})


# The usage since midnight, from the journal.

HOUR = 3600.0
_DAY_LEDGER_COUNTED = (ResponseGeneration.subject, ModelUsed.subject)


def begin_of_day(at: float) -> float:
    """The last midnight of this machine's time zone, in seconds since 1970."""
    return datetime.fromtimestamp(at).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def end_of_day(at: float) -> float:
    """The next midnight of this machine's time zone, in seconds since 1970."""
    return begin_of_day(begin_of_day(at) + 36 * HOUR)  # days of 23 and 25 hours, too


class DayLedger:
    """The usage of today, from the journal; content deleted later stays counted. `clock` returns seconds since 1970."""

    def __init__(self, session: LoCALSession, clock: Callable[[], float] = time.time) -> None:
        self._session, self._clock = session, clock
        self._lock = asyncio.Lock()
        self._ledger, self._since, self._read_to = UsageLedger(), 0.0, 0

    async def read(self) -> UsageLedger:
        """Read up to now. Raises `RequestTimeout` while there is no journal, and `RecordUnreadable`."""
        async with self._lock:
            since = begin_of_day(self._clock())
            if since != self._since:
                self._ledger, self._since, self._read_to = UsageLedger(), since, 0
            await (self._go_on() if self._read_to else self._begin())
            return self._ledger

    async def _begin(self) -> None:
        """The latest first, up to midnight."""
        ledger, read_to = UsageLedger(), 0
        async for message in self._session.entries(JournalRead(subjects=_DAY_LEDGER_COUNTED, before=END, limit=PIECE)):
            if message.entry.committed_at < self._since:
                break
            read_to = max(read_to, message.entry.number)
            await self._count(message, ledger)
        self._ledger, self._read_to = ledger, read_to

    async def _go_on(self) -> None:
        async for message in self._session.entries(
            JournalRead(subjects=_DAY_LEDGER_COUNTED, after=self._read_to, limit=PIECE)
        ):
            await self._count(message, self._ledger)
            self._read_to = message.entry.number

    async def _count(self, message: RecordedMessage, ledger: UsageLedger) -> None:
        if not message.entry.redacted:
            ledger.receive(message.envelope, await self._session.payload(message), message.entry.committed_at)


Scope = Literal["all", "user", "session"]
Unit = Literal["tokens", "money"]
BY_WHOM: Final[Mapping[Scope, str]] = {"all": "by all", "user": "by this user", "session": "in this conversation"}


class Budget(Settings):
    """One budget for a day; None is no limit. `money` is in the currency of `prices` in models.yaml."""

    tokens: int | None = Field(None, gt=0)
    money: float | None = Field(None, gt=0)


class BudgetsConfig(Settings):
    """The budgets of all together, of each user, and of each conversation."""

    all: Budget = Budget()
    user: Budget = Budget()
    session: Budget = Budget()


class SpentBudget(NamedTuple):
    """One limit of a day, and its used part. `anew_at` is in seconds since 1970."""

    of: Scope
    unit: Unit
    spent: float
    limit: float
    anew_at: float


class BudgetSpent(LocalError):
    """The error for a question that is refused because a budget of the day is spent. `retry_seconds` is until the next
    day."""

    kind = "budget_spent"

    def __init__(self, budget: SpentBudget, now: float) -> None:
        self.details: dict[str, Any] = {"budget": budget._asdict()}
        self.retry_seconds = max(1, int(budget.anew_at - now) + 1)
        anew = datetime.fromtimestamp(budget.anew_at)
        used = f"{budget.spent:,.10g} of {budget.limit:,.10g}{' tokens' if budget.unit == 'tokens' else ''}"
        super().__init__(
            f"the budget of the day is spent: {used} {BY_WHOM[budget.of]}; it is renewed on {anew:%Y-%m-%d at %H:%M}"
        )


class DayBudgets:
    """The budgets of the day, checked before a question is accepted. `prices()` returns the prices of models, `clock`
    seconds since 1970; `guest_tokens` is a further limit for each user besides the owner.
    """

    def __init__(
        self, config: BudgetsConfig, session: LoCALSession, prices: Callable[[], Mapping[str, ModelPrice]],
        clock: Callable[[], float] = time.time, guest_tokens: int | None = None,
    ) -> None:  # fmt: skip
        self._session, self._prices, self._clock = session, prices, clock
        self._ledger, self._guest_tokens = DayLedger(session, clock), guest_tokens
        scopes: dict[Scope, Budget] = {"all": config.all, "user": config.user, "session": config.session}
        self._limits: dict[tuple[Scope, Unit], float] = {}
        for scope, budget in scopes.items():
            if budget.tokens is not None:
                self._limits[scope, "tokens"] = budget.tokens
            if budget.money is not None:
                self._limits[scope, "money"] = budget.money

    async def require(self, user_id: str | None, session_id: str | None = None, query_id: str | None = None) -> None:
        """Raise `BudgetSpent` if nothing is left for a question, unless it was asked before under that id; and as
        `DayLedger.read`. Running questions may exceed the budget.
        """
        spent = next((each for each in await self.of(user_id, session_id) if each.spent >= each.limit), None)
        if spent is not None and not await self._is_known(query_id):
            raise BudgetSpent(spent, self._clock())

    async def of(self, user_id: str | None, session_id: str | None = None) -> list[SpentBudget]:
        """Every limit that there is for a user and a conversation. Raises as `DayLedger.read`."""
        limits = self._limits_of(user_id)
        if not limits:
            return []
        ledger, prices = await self._ledger.read(), await asyncio.to_thread(self._prices)
        wanted = {"user": user_id, "session": session_id}
        return list(self._looked_at(limits, ledger, prices, wanted))

    def _limits_of(self, user_id: str | None) -> dict[tuple[Scope, Unit], float]:
        if self._guest_tokens is None or user_id in (None, OWNER):
            return self._limits
        tokens = min(self._limits.get(("user", "tokens"), math.inf), self._guest_tokens)
        return {**self._limits, ("user", "tokens"): tokens}

    def _looked_at(
        self,
        limits: Mapping[tuple[Scope, Unit], float],
        ledger: UsageLedger,
        prices: Mapping[str, ModelPrice],
        whose: Mapping[str, str | None],
    ) -> Iterator[SpentBudget]:
        anew_at = end_of_day(self._clock())
        for (scope, unit), limit in limits.items():
            if scope == "session" and whose[scope] is None:
                continue
            entries = ledger.entries(None)
            if scope == "user":
                own = (each for each in entries if each[0].session)  # background work belongs to no user
                entries = (each for each in own if each[0].user_id == whose["user"])
            elif scope == "session":
                entries = (each for each in entries if each[0].session == whose["session"])
            [total] = ledger.rows((), entries, prices) or [{}]
            tokens = total.get("prompt_tokens", 0) + total.get("completion_tokens", 0)
            yield SpentBudget(scope, unit, tokens if unit == "tokens" else total.get("money") or 0.0, limit, anew_at)

    async def _is_known(self, query_id: str | None) -> bool:
        if query_id is None:
            return False
        if self._session.live(query_id) is not None:
            return True
        with suppress(LocalError):
            await self._session.recall(query_id)
            return True
        return False

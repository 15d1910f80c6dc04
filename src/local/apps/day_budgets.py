"""What may be used in a day: a question that comes when it is spent is refused at the door."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from local.apps.day_ledger import DayLedger, end_of_day
from local.apps.session import LoCALSession
from local.config import Settings
from local.errors import LocalError
from local.queries.usage_ledger import ModelPrice, UsageLedger

Scope = Literal["all", "user", "session"]
Unit = Literal["tokens", "money"]
BY_WHOM: Final[Mapping[Scope, str]] = {"all": "by all", "user": "by this user", "session": "in this conversation"}


class Budget(Settings):
    """What may be used in a day; None is no limit. `money` is what `prices` in models.yaml say of it."""

    tokens: int | None = Field(None, gt=0)
    money: float | None = Field(None, gt=0)


class BudgetsConfig(Settings):
    """The budgets of all together, of each user, and of each conversation."""

    all: Budget = Budget()
    user: Budget = Budget()
    session: Budget = Budget()

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return any(each != Budget() for each in (self.all, self.user, self.session))


class SpentBudget(NamedTuple):
    """One limit of a day, and how much of it is used. `anew_at` is in seconds since 1970."""

    of: Scope
    unit: Unit
    spent: float
    limit: float
    anew_at: float


class BudgetSpent(LocalError):
    """A question was not taken on, because a budget of the day is spent. `retry_seconds` is until it begins anew."""

    kind = "budget_spent"

    def __init__(self, budget: SpentBudget, now: float) -> None:
        self.details: dict[str, Any] = {"budget": budget._asdict()}
        self.retry_seconds = max(1, int(budget.anew_at - now) + 1)
        anew = datetime.fromtimestamp(budget.anew_at)
        used = f"{budget.spent:,.10g} of {budget.limit:,.10g}{' tokens' if budget.unit == 'tokens' else ''}"
        super().__init__(
            f"the budget of the day is spent: {used} {BY_WHOM[budget.of]}; it begins anew on {anew:%Y-%m-%d at %H:%M}"
        )


class DayBudgets:
    """Looks at what was used before a question is taken on. `prices()` gives what models cost, `clock` seconds since
    1970."""

    def __init__(
        self, config: BudgetsConfig, session: LoCALSession, prices: Callable[[], Mapping[str, ModelPrice]],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._session, self._prices, self._clock = session, prices, clock
        self._ledger = DayLedger(session, clock)
        scopes: dict[Scope, Budget] = {"all": config.all, "user": config.user, "session": config.session}
        self._limits: dict[tuple[Scope, Unit], float] = {}
        for scope, budget in scopes.items():
            if budget.tokens is not None:
                self._limits[scope, "tokens"] = budget.tokens
            if budget.money is not None:
                self._limits[scope, "money"] = budget.money

    async def require(self, user_id: str | None, session_id: str | None = None, query_id: str | None = None) -> None:
        """Raises `BudgetSpent` if nothing is left for a question, unless it was asked before under that id; and as
        `DayLedger.read`. What is under way may use more."""
        spent = next((each for each in await self.of(user_id, session_id) if each.spent >= each.limit), None)
        if spent is not None and not await self._is_known(query_id):
            raise BudgetSpent(spent, self._clock())

    async def of(self, user_id: str | None, session_id: str | None = None) -> list[SpentBudget]:
        """Every limit that there is for a user and a conversation. Raises as `DayLedger.read`."""
        ledger, prices = await self._ledger.read(), await asyncio.to_thread(self._prices)
        wanted = {"user": user_id, "session": session_id}
        return list(self._looked_at(ledger, prices, wanted))

    def _looked_at(
        self, ledger: UsageLedger, prices: Mapping[str, ModelPrice], whose: Mapping[str, str | None]
    ) -> Iterator[SpentBudget]:
        anew_at = end_of_day(self._clock())
        for (scope, unit), limit in self._limits.items():
            if scope == "session" and whose[scope] is None:
                continue
            entries = ledger.entries(None)
            if scope == "user":
                own = (each for each in entries if each[0].session)  # what is done beside the answers is nobody's
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

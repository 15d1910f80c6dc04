"""Users who rate the answers that they get, change their minds, and take ratings back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from chaos_harness.client import Client
from chaos_harness.history import Asked
from chaos_harness.judge import ANSWERED

MINDS: tuple[tuple[int | None, ...], ...] = ((1,), (), (-1,), (1, -1), (1, None), (-1, 1, 1), (None, -1))


class Raters:
    """Use as `async with`: left when every rating is on record, or was given up. `given` are those on record, by query,
    in order; `refused` the queries whose ratings were not taken."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks = asyncio.TaskGroup()
        self.given: dict[str, list[int | None]] = {}
        self.refused: list[str] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.__aexit__(kind, error, trace)

    def hear(self, asked: Asked) -> None:
        """A query has ended: have its answer rated, if there is one, as the next of the users would."""
        if asked.outcome is None or asked.outcome.status != ANSWERED:
            return
        mind = MINDS[len(self.given) % len(MINDS)]
        self.given[asked.question.query_id] = []
        self._tasks.create_task(self._rate(asked.question.query_id, mind))

    async def _rate(self, query_id: str, mind: Iterable[int | None]) -> None:
        for rating in mind:
            if not await self._client.rate(query_id, rating):
                self.refused.append(query_id)
                return
            self.given[query_id].append(rating)


def changes(ratings: Iterable[int | None]) -> Iterator[int | None]:
    """Of one answer's ratings those that change what it is rated; at first it is not."""
    latest = None
    for rating in ratings:
        if rating != latest:
            yield rating
        latest = rating

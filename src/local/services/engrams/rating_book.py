"""The users' ratings in a memory's store, also of answers that are yet to come."""

from __future__ import annotations

from collections.abc import Callable

from local.services.engrams import early_ratings, record
from local.services.engrams.engram import AnswerRating
from local.services.engrams.store import EngramStore


class RatingBook:
    """Each change returns after its commit. Raises `StoreFailed`, `StoreFull`."""

    def __init__(self, store: EngramStore, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since 1970."""
        self._store, self._clock = store, clock

    async def rate(self, rating: AnswerRating) -> bool:
        """Note a rating at its engram, or keep it until that comes: False then, and if a later one is known."""
        return await self._store.write(lambda db: record.rate(db, rating, self._clock()))

    async def early(self, query_id: str, respondent_id: str) -> AnswerRating | None:
        """The rating that came before its engram, until it is settled."""
        return await self._store.read(lambda db: early_ratings.find(db, query_id, respondent_id))

    async def settle(self, query_id: str, respondent_id: str) -> None:
        """The engram has come, and that it is rated was told."""
        await self._store.write(lambda db: early_ratings.settle(db, query_id, respondent_id))

"""The queries that a door knows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from weakref import WeakSet, WeakValueDictionary

from local.apps.exchange import Exchange

KEPT_ENDED = 128


class Exchanges:
    """Those that are open, the last ones that ended, and older ones that are still followed, by query_id."""

    def __init__(self) -> None:
        self._open: dict[str, Exchange] = {}
        self._ended: OrderedDict[str, Exchange] = OrderedDict()
        self._followed: WeakValueDictionary[str, Exchange] = WeakValueDictionary()  # whoever follows one holds it
        self._by_id = (self._open, self._ended, self._followed)
        self._doomed: WeakSet[Exchange] = WeakSet()  # open ones of which nothing is to be kept

    def get(self, query_id: str) -> Exchange | None:
        """The exchange of a query, if it is known here."""
        return self._open.get(query_id) or self._ended.get(query_id) or self._followed.get(query_id)

    @property
    def open(self) -> Collection[Exchange]:
        """Those that were added and not put away yet."""
        return self._open.values()

    @property
    def known(self) -> list[Exchange]:
        """All of them."""
        return [exchange for known in self._by_id for exchange in known.values()]

    def add(self, exchange: Exchange) -> None:
        """One more is open."""
        self._open[exchange.query_id] = exchange

    def put_away(self, exchange: Exchange) -> None:
        """It has ended; the oldest ones beyond what is kept are dropped."""
        if self._open.get(exchange.query_id) is exchange:  # one that was refused may have been asked again already
            del self._open[exchange.query_id]
            if exchange in self._doomed:
                return
            self._ended[exchange.query_id] = exchange
            self._ended.move_to_end(exchange.query_id)
            while len(self._ended) > KEPT_ENDED:
                oldest_id, oldest = self._ended.popitem(last=False)
                self._followed[oldest_id] = oldest

    def forget(self, is_deleted: Callable[[Exchange], bool]) -> None:
        """Drop those that have ended and were deleted, and the open ones when they have ended."""
        for known in self._by_id:
            for query_id, exchange in list(known.items()):
                if not is_deleted(exchange):
                    continue
                if exchange.ended:
                    del known[query_id]
                else:
                    self._doomed.add(exchange)

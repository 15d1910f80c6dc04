"""The queries that a door knows, and forgets."""

from __future__ import annotations

import pytest

from local.apps.exchange import Exchange
from local.apps.exchanges import KEPT_ENDED, Exchanges
from local.errors import LocalError


@pytest.fixture
async def exchange() -> Exchange:
    return Exchange("q", "s", "why?", lambda: 0.0)


async def test_an_open_one_that_was_deleted_is_followed_to_its_end_and_not_kept(exchange: Exchange) -> None:
    known = Exchanges()
    known.add(exchange)
    known.forget(lambda each: each.query_id == "q")
    assert known.get("q") is exchange
    exchange.refuse(LocalError("no"))
    known.put_away(exchange)
    assert known.get("q") is None


async def test_one_that_is_followed_is_known_however_many_end_after_it(exchange: Exchange) -> None:
    known = Exchanges()
    for number in range(KEPT_ENDED + 1):
        each = exchange if number == 0 else Exchange(f"q{number}", "s", "why?", lambda: 0.0)
        known.add(each)
        each.refuse(LocalError("no"))
        known.put_away(each)
    assert known.get("q") is exchange and exchange in known.known
    known.forget(lambda each: each.query_id == "q")
    assert known.get("q") is None


async def test_one_that_was_not_deleted_is_kept(exchange: Exchange) -> None:
    known = Exchanges()
    known.add(exchange)
    known.forget(lambda each: each.query_id == "another")
    exchange.refuse(LocalError("no"))
    known.put_away(exchange)
    assert known.get("q") is exchange

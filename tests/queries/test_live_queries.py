"""The queries that a door knows, and forgets."""

from __future__ import annotations

import pytest

from local.core.errors import LocalError
from local.queries.asker import KEPT_ENDED, LiveQueries, LiveQuery
from local.queries.view import QueryView


@pytest.fixture
async def query() -> LiveQuery:
    return LiveQuery(QueryView("q", "why?", "s"), lambda: 0.0)


async def test_an_open_one_that_was_deleted_is_followed_to_its_end_and_not_kept(query: LiveQuery) -> None:
    known = LiveQueries()
    known.add(query)
    known.forget(lambda each: each.query_id == "q")
    assert known.get("q") is query
    query.refuse(LocalError("no"))
    known.put_away(query)
    assert known.get("q") is None


async def test_one_that_is_followed_is_known_however_many_end_after_it(query: LiveQuery) -> None:
    known = LiveQueries()
    for number in range(KEPT_ENDED + 1):
        each = query if number == 0 else LiveQuery(QueryView(f"q{number}", "why?", "s"), lambda: 0.0)
        known.add(each)
        each.refuse(LocalError("no"))
        known.put_away(each)
    assert known.get("q") is query and query in known.known
    known.forget(lambda each: each.query_id == "q")
    assert known.get("q") is None


async def test_one_that_was_not_deleted_is_kept(query: LiveQuery) -> None:
    known = LiveQueries()
    known.add(query)
    known.forget(lambda each: each.query_id == "another")
    query.refuse(LocalError("no"))
    known.put_away(query)
    assert known.get("q") is query

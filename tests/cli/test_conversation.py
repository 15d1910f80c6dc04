"""One question, seen through to its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from local.cli import conversation
from local.cli.conversation import FollowedQuery
from local.cli.renderer import JsonRenderer


def test_an_error_of_any_kind_ends_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(query: FollowedQuery) -> Iterator[Any]:
        raise ZeroDivisionError("oops")
        yield

    monkeypatch.setattr(FollowedQuery, "__iter__", breaks)
    with pytest.raises(ZeroDivisionError):
        conversation.ask(pytest.fail, {"query_id": "q", "query": "Hi"}, JsonRenderer(print), pytest.fail)

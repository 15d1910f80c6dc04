"""The `ddgs` package: reads the result pages of several search engines, without a key."""

from __future__ import annotations

import asyncio
import importlib
import math
from typing import Any

from local.errors import SearchUnavailable
from local.services.search.client import DETAIL_CHARS
from local.services.search.hit import Hit, hits_of, plain_text


class DdgsProvider:
    """Asks through `ddgs`, an optional package that is imported at the first search.

    `timeout_seconds` bounds what goes on in its thread, which no cancellation reaches.
    """

    name = "ddgs"

    def __init__(self, *, timeout_seconds: float = 15.0) -> None:
        self._timeout_seconds = timeout_seconds

    async def search(self, query: str, max_results: int) -> list[Hit]:
        """At most `max_results` hits, never none. Raises SearchUnavailable.

        ddgs says "No results found." both when nothing matches and when every engine turned it away. The two cannot be
        told apart, so that is an error here: it must not pass for knowledge that nothing exists.
        """
        try:
            results = await asyncio.to_thread(self._look, query, max_results)
        except ImportError as error:
            reason = f"the package ddgs is missing ({error}); install it with: pip install 'local2[search]'"
            raise SearchUnavailable(self.name, reason) from None
        except Exception as error:  # it scrapes pages: any error of a parser or an HTTP client may come out
            raise SearchUnavailable(self.name, plain_text(str(error), DETAIL_CHARS) or type(error).__name__) from error
        return hits_of(self.name, results, max_results, snippet="body", url="href")

    def _look(self, query: str, max_results: int) -> Any:
        package = importlib.import_module("ddgs")
        # Its timeout is for each of the engines, which it asks one after another.
        return package.DDGS(timeout=math.ceil(self._timeout_seconds / 3)).text(query, max_results=max_results)

    async def close(self) -> None:
        """Nothing is kept open between searches."""

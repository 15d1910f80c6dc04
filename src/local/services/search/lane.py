"""One provider's lane: one query at a time, and none while it asks to be left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from local.errors import SearchUnavailable
from local.services.search.hit import Hit
from local.services.search.provider import SearchProvider


class Lane:
    """Leads queries to one provider. `clock` is monotonic, in seconds."""

    def __init__(self, provider: SearchProvider, clock: Callable[[], float]) -> None:
        self.name = provider.name
        self._provider, self._clock = provider, clock
        self._turn = asyncio.Lock()
        self._paused_until = clock()

    async def search(self, query: str, max_results: int, seconds: float) -> list[Hit]:
        """Ask, at most `seconds` long, waiting in line included. Raises SearchUnavailable."""
        try:
            async with asyncio.timeout(seconds), self._turn:
                self._refuse_while_paused()
                return await self._provider.search(query, max_results)
        except TimeoutError:
            raise SearchUnavailable(self.name, f"no answer within {seconds:.1f} s") from None
        except SearchUnavailable as failure:
            self._paused_until = self._clock() + (failure.retry_after or 0.0)
            raise

    async def close(self) -> None:
        """Close the provider."""
        await self._provider.close()

    def _refuse_while_paused(self) -> None:
        left = self._paused_until - self._clock()
        if left > 0:
            raise SearchUnavailable(self.name, f"it asked not to be asked again for another {left:.0f} s", left)

"""What the owner has talked about lately, but for what was said beside words of strangers."""

from __future__ import annotations

from dataclasses import dataclass

from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace, new_id
from local.protocol.memory_messages import MemoryRequest, MemoryResult
from local.services.reflecting.told_exchange import ToldExchange

MEMORY_SECONDS = 20.0


class MemoryUnread(LocalError):
    """A memory that did not tell what it has."""

    kind = "unavailable"


@dataclass(frozen=True, slots=True)
class RecentExchanges:
    """The exchanges that may be read, oldest first, up to which time that is (seconds since 1970), and how many were
    left out because words of strangers were before the model."""

    exchanges: tuple[ToldExchange, ...]
    until: float
    left_out: int = 0

    @property
    def engram_ids(self) -> tuple[str, ...]:
        """The ids of the exchanges that may be read."""
        return tuple(each.engram_id for each in self.exchanges)


async def recent_exchanges(bus: Bus, since: float, most: int) -> RecentExchanges:
    """The exchanges after a time, the latest at most. Raises `MemoryUnread` and `RequestTimeout`."""
    request = MemoryRequest(verb="list", limit=most)
    result = await bus.request(request, MemoryResult, MEMORY_SECONDS, Trace(new_id()))
    if result.error is not None:
        raise MemoryUnread(result.error.message)
    fresh = [each for each in result.engrams if each.asked_at > since and each.note_of is None]
    read = [each for each in reversed(fresh) if not each.tainted]
    until = max((each.asked_at for each in fresh), default=since)
    told = tuple(ToldExchange(each.engram_id, each.query, each.answer) for each in read)
    return RecentExchanges(told, until, len(fresh) - len(read))

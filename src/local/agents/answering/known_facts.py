"""What users have pinned of what they told: the lines that stand in the system prompt."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence

from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace, new_id
from local.protocol.memory_messages import OWNER, MemoryRequest, MemoryResult, UserFacts
from local.protocol.messages import ParticipantStatus
from local.runtime.presence import Presence
from local.services.engrams.pinned import presentable

log = logging.getLogger(__name__)

MEMORY = "memory"
ANSWER_SECONDS = 0.5  # that a user's first turn waits for the memory at most
RETRY_SECONDS = 10.0  # before a memory that did not answer is asked again: each time a turn waits for it


class KnownFacts:
    """Each user's lines as the memory last said them. It is asked at a user's first turn, and if it may have said
    something since that was not heard; a turn never waits for a memory that does not live."""

    def __init__(
        self, ask: Callable[[str], Awaitable[Sequence[str] | None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`ask(user)` has the lines from the memory, None if it does not say before a user would notice the wait."""
        self._ask, self._clock = ask, clock
        self._lines: dict[str, tuple[str, ...]] = {}
        self._ask_at: dict[str, float] = {}  # when a user's lines are to be had anew, infinite where they are current
        self._presence, self._memory = Presence(MEMORY, clock), ""

    def told(self, facts: UserFacts) -> None:
        """The memory says what a user has pinned now."""
        self._take(facts.of_user, facts.lines)

    def heard(self, status: ParticipantStatus) -> None:
        """A participant lives. A memory that was started anew is asked again."""
        if self._presence.heard(status) and status.instance != self._memory:
            self._memory = status.instance
            self.ask_again()

    def ask_again(self) -> None:
        """Something may not have been heard. What is known counts until there is an answer."""
        self._ask_at.clear()

    def known(self, user_id: str | None) -> tuple[str, ...]:
        """A user's lines without asking."""
        return self._lines.get(user_id or OWNER, ())

    def are_current(self, user_id: str | None) -> bool:
        """Whether nobody has to be asked for a user's lines."""
        return self._clock() < self._ask_at.get(user_id or OWNER, -math.inf) or not self._presence.lives

    async def current(self, user_id: str | None) -> tuple[str, ...]:
        """A user's lines; what is known, or nothing, where the memory does not say."""
        user = user_id or OWNER
        if not self.are_current(user):
            await self._ask_for(user)
        return self.known(user)

    async def _ask_for(self, user: str) -> None:
        lines = await self._ask(user)
        if self._ask_at.get(user) == math.inf:  # meanwhile it has said something newer by itself
            return
        if lines is None:
            self._ask_at[user] = self._clock() + RETRY_SECONDS
        else:
            self._take(user, lines)

    def _take(self, user: str, lines: Sequence[str]) -> None:
        self._lines[user] = presentable(lines)
        self._ask_at[user] = math.inf


async def ask_memory(bus: Bus, user: str) -> Sequence[str] | None:
    """What the memory says that a user has pinned; None if it does not say."""
    request, trace = MemoryRequest(verb="facts"), Trace(new_id(), user_id=user)
    try:
        result = await bus.request(request, MemoryResult, ANSWER_SECONDS, trace)
    except LocalError as error:
        log.warning("what the user has pinned is not known now: %s", error)
        return None
    return None if result.error else result.lines

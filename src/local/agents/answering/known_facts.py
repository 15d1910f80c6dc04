"""What users have pinned of what they told: the lines that stand in the system prompt."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence

from local.protocol.memory_messages import OWNER, UserFacts
from local.protocol.messages import ParticipantStatus
from local.runtime.presence import Presence

MEMORY = "memory"
RETRY_SECONDS = 10.0  # before a memory that did not answer is asked again: each time a turn waits for it
MAX_LINES, MAX_LINE_CHARACTERS, MAX_CHARACTERS = 30, 300, 2_000
_JOINERS = "\u200c\u200d"  # invisible as control characters are, but some scripts and emoji need them
_MARKUP = re.compile(r"(?:-{2,}|[-+•](?=\s)|[#>*=_~`|\s])+")


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

    async def current(self, user_id: str | None) -> tuple[str, ...]:
        """A user's lines; what is known, or nothing, where the memory does not say."""
        user = user_id or OWNER
        if self._presence.lives and self._clock() >= self._ask_at.get(user, -math.inf):
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


def presentable(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines that can neither pass for a heading nor crowd out the rest: each is one line of plain text of at most 300
    characters; at most 30 of them, of 2,000 characters together."""
    kept: list[str] = []
    room = MAX_CHARACTERS
    for line in filter(None, map(_plain, lines)):
        if len(kept) == MAX_LINES or len(line) > room:
            break
        kept.append(line)
        room -= len(line)
    return tuple(kept)


def _plain(line: str) -> str:
    line = " ".join("".join(" " if _is_invisible(character) else character for character in line).split())
    line = line[leading.end() :] if (leading := _MARKUP.match(line)) else line
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[: MAX_LINE_CHARACTERS - 1]}…"


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and character not in _JOINERS

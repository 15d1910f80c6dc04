"""Which skills the model is told of: names and descriptions, as whoever holds them last answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from local.agents.answering.prompt.prompt_inputs import SkillLine
from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace, new_id
from local.protocol.memory_messages import OWNER
from local.protocol.messages import ToolSchema
from local.protocol.skill_messages import READ_SKILL, SkillRecord, SkillRequest, SkillResult

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
WAIT_SECONDS = 0.5  # of a turn, for skills that are being asked for
MOST_TOLD = 100  # skills
ROOM = 8000  # characters of the prompt, for all of them
LEAST_DESCRIPTION = 60

Ask = Callable[[], Awaitable[Sequence[SkillRecord] | None]]
SkillLines = tuple[SkillLine, ...]


class KnownSkills:
    """The skills that are ready, asked for whenever they may have changed, at once and not when a turn needs them: a
    turn waits only for an answer that is on its way. `ask` has them from whoever holds them, None if nobody says."""

    publishes = ("skills.request.ready",)

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lines: SkillLines = ()
        self._asking: asyncio.Task[None] | None = None
        self._changed = False

    @asynccontextmanager
    async def is_open(self) -> AsyncIterator[None]:
        """Ask no more in the end."""
        try:
            yield
        finally:
            if self._asking is not None:
                self._asking.cancel()
                await asyncio.gather(self._asking, return_exceptions=True)

    @property
    def are_current(self) -> bool:
        """Whether nobody is being asked."""
        return self._asking is None or self._asking.done()

    def learn(self, schema: ToolSchema) -> None:
        """A tool is there. The one that reads skills says so when their holder begins, too."""
        if schema.tool == READ_SKILL:
            self.ask_again()

    def ask_again(self) -> None:
        """Ask for the skills: they may have changed."""
        self._changed = True
        if self.are_current:
            self._asking = asyncio.create_task(self._look(), name="ask for skills")

    def known(self, user_id: str | None) -> SkillLines:
        """A line of each, without asking. Skills are the owner's: others have none."""
        return self._lines if user_id in (None, OWNER) else ()

    async def settled(self) -> None:
        """Until the answer that is on its way has come, if it comes soon."""
        if self._asking is not None and not self._asking.done():
            await asyncio.wait({self._asking}, timeout=WAIT_SECONDS)

    async def _look(self) -> None:
        while self._changed:  # an answer that a change has overtaken is none
            self._changed = False
            skills = await self._ask()
            if skills is not None:
                self._lines = told(skills)


def told(skills: Sequence[SkillRecord]) -> SkillLines:
    """What the prompt says of each skill: all descriptions together have `ROOM`, in equal shares."""
    named = skills[:MOST_TOLD]
    share = max(LEAST_DESCRIPTION, ROOM // max(1, len(named)))
    return tuple(SkillLine(skill.name, _cut(" ".join(skill.description.split()), share)) for skill in named)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


async def ask_for_skills(bus: Bus) -> Sequence[SkillRecord] | None:
    """The skills that are ready; None if nobody says."""
    try:
        result = await bus.request(SkillRequest(verb="ready"), SkillResult, ANSWER_SECONDS, Trace(new_id()))
    except LocalError as error:
        log.warning("which skills there are is not known now: %s", error)
        return None
    return None if result.error else result.skills

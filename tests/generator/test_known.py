"""What users have pinned, as it gets into the system prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, cast

import pytest

from local.bus.messages import ChildStatus, ParticipantStatus, ResponseGeneration
from local.generator import known_facts
from local.generator.known_facts import RETRY_SECONDS, FactLines, FactsCache, ask_memory
from local.generator.steps import NOT_TOLD
from local.memory.messages import OWNER, UNCONFIRMED, FactRecord, MemoryResult
from local.runtime.runner import SILENT_SECONDS


class Memory:
    """What the memory says, and whom it was asked about."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: Sequence[str] | None = ("likes tea",)
        self.asked: list[str] = []
        self.facts = FactsCache(self._answer, lambda: self.now)

    async def _answer(self, user: str) -> FactLines | None:
        self.asked.append(user)
        return None if self.lines is None else FactLines(tuple(self.lines))

    def beats(
        self, instance: str = "1", name: str = "memory", state: Literal["starting", "ready", "stopping"] = "ready"
    ) -> None:
        self.facts.update(ParticipantStatus(name=name, kind="agent", pid=1, instance=instance, state=state))

    async def changes(self, *lines: str, user: str = OWNER) -> None:
        """What a user has pinned is something else now."""
        self.lines = lines
        await self.facts.changed(user)


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.beats()
    return memory


async def test_the_memory_is_asked_once_for_each_user(memory: Memory) -> None:
    assert (await memory.facts.current("ann")).lines == ("likes tea",)
    memory.lines = ("likes coffee",)
    assert (await memory.facts.current("ann")).lines == ("likes tea",)
    assert (await memory.facts.current("bob")).lines == ("likes coffee",)
    assert memory.asked == ["ann", "bob"]


def supervised(state: str) -> ParticipantStatus:
    """What the supervisor says of the memory."""
    child = ChildStatus(name="memory", kind="participant", state=state)
    return ParticipantStatus(
        name="supervisor", kind="supervisor", pid=1, instance="s", state="ready", children=(child,)
    )


async def test_a_first_turn_waits_for_a_memory_that_is_starting() -> None:
    memory = Memory()
    memory.facts.update(supervised("starting"))
    assert not memory.facts.are_current("ann") and memory.facts.are_missing("ann")
    turn = asyncio.create_task(memory.facts.current("ann"))
    await asyncio.sleep(0)
    assert memory.asked == []
    memory.beats()
    assert (await asyncio.wait_for(turn, 90)).lines == ("likes tea",)
    assert memory.facts.are_current("ann") and not memory.facts.are_missing("ann")


async def test_a_memory_that_does_not_come_is_waited_for_once_and_what_is_missing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_facts, "START_SECONDS", 0.01)
    memory = Memory()
    memory.lines = None
    memory.facts.update(supervised("restarting"))
    assert (await memory.facts.current("ann")).lines == () and memory.facts.are_missing("ann")
    assert memory.facts.are_current("ann")  # for as long as it is left alone
    memory.facts.update(supervised("failed"))  # then the turn waits for nobody and leaves out nothing it could have
    assert memory.facts.are_current("bob") and not memory.facts.are_missing("ann")


async def test_an_answer_that_was_made_without_what_is_pinned_says_so(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_facts, "START_SECONDS", 0.01)
    monkeypatch.setattr(known_facts, "ANSWER_SECONDS", 0.01)
    generator = await stage.generator()
    await stage.frontend.bus.publish(supervised("starting"))
    await stage.frontend.until(lambda: generator.participant._facts.are_missing(None))
    for number, degraded in (("q1", (NOT_TOLD,)), ("q2", ())):
        stage.model.will_say("Hello.")
        await stage.frontend.ask("Hello?", number, session=None)
        response = await stage.frontend.hears(ResponseGeneration, query_id=number)
        assert response.degraded == degraded
        await stage.frontend.bus.publish(supervised("failed"))  # of whom nothing can be had, and everybody knows
        await stage.frontend.until(lambda: not generator.participant._facts.are_missing(None))


async def test_what_was_known_before_a_memory_is_started_again_counts_without_a_wait(memory: Memory) -> None:
    await memory.facts.current("ann")
    memory.facts.update(supervised("restarting"))
    memory.beats(state="stopping")
    assert memory.facts.are_current("ann") and (await memory.facts.current("ann")).lines == ("likes tea",)


@pytest.mark.parametrize("sign", ["none", "long ago", "of another", "starting", "stopping"])
async def test_a_memory_that_does_not_live_is_not_asked(sign: str) -> None:
    memory = Memory()
    if sign == "long ago":
        memory.beats()
        memory.now = SILENT_SECONDS + 0.1
    elif sign == "of another":
        memory.beats(name="critic")
    elif sign in ("starting", "stopping"):
        memory.beats(state=sign)
    assert (await memory.facts.current("ann")).lines == ()
    assert memory.asked == []


async def test_what_has_changed_is_asked_for_before_a_turn_needs_it(memory: Memory) -> None:
    await memory.facts.current("ann")
    await memory.changes("likes coffee", user="ann")
    assert memory.facts.known("ann").lines == ("likes coffee",) and memory.facts.are_current("ann")
    await memory.changes(user="ann")
    assert (await memory.facts.current("ann")).lines == ()
    assert memory.asked == ["ann"] * 3


async def test_what_was_known_yesterday_is_asked_for_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.beats()
    assert (await memory.facts.current("ann")).lines == ("likes tea",)
    memory.lines = ()
    assert (await memory.facts.current("ann")).lines == ("likes tea",)
    monkeypatch.setattr("local.generator.known_facts._today", lambda: "2999-01-01")
    assert (await memory.facts.current("ann")).lines == ()


async def test_an_answer_that_was_overtaken_does_not_count(memory: Memory) -> None:
    asked: list[str] = []

    async def answer(user: str) -> FactLines:
        asked.append(user)
        if len(asked) > 1:
            return FactLines(("newer",))
        await facts.changed(user)
        return FactLines(("older",))

    facts = FactsCache(answer, lambda: 0.0)
    facts.update(ParticipantStatus(name="memory", kind="agent", pid=1, instance="1", state="ready"))
    assert (await facts.current("ann")) == facts.known("ann") == FactLines(("newer",))


async def test_a_memory_that_does_not_answer_is_left_alone_for_a_while(memory: Memory) -> None:
    memory.lines = None
    for now, times in ((0.0, 1), (RETRY_SECONDS - 0.1, 1), (RETRY_SECONDS, 2), (RETRY_SECONDS + 1, 2)):
        memory.now = now
        memory.beats()
        assert (await memory.facts.current("ann")).lines == ()
        assert len(memory.asked) == times


async def test_an_unconfirmed_fact_about_health_is_told_with_its_source() -> None:
    class Bus:
        """A memory that knows one such fact, and another one that is not about health."""

        async def request(self, *_: object) -> MemoryResult:
            made = {"stated_at": 1.0, "confirmed": False}
            health = FactRecord(slot="health", value="nuts make me sick", engram_id="e1", of_health=True, **made)
            line = f"health: nuts make me sick ({UNCONFIRMED}, said 2026-11-20)"
            other = FactRecord(slot="tea", value="green", engram_id="e2", **made)
            return MemoryResult(verb="facts", unconfirmed=(health, other), lines=(line,))

    lines = await ask_memory(cast(Any, Bus()), "ann")
    assert lines is not None
    (item,) = lines.as_items()
    assert item.engram_ids == ("e1",) and 'by their own words: "health: nuts make me sick"' in item.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "allergies: hazelnuts (said 2026-11-20)",
            "The user is allergic to hazelnuts. Never suggest anything with hazelnuts. (said 2026-11-20)",
        ),
        ("intolerances: lactose", "The user is intolerant of lactose. Never suggest anything with lactose."),
        (
            "diet: vegan (said 2026-11-20)",
            "The user's diet: vegan. Never suggest anything that goes against this. (said 2026-11-20)",
        ),
        (
            "allergies: nuts (not confirmed, said 2026-11-20)",
            "What the user must avoid (or take, if it is a medicine), by their own words:"
            ' "allergies: nuts" Suggest something else. (not confirmed, said 2026-11-20)',
        ),
        (
            "said about health: Nuts (all kinds) give me hives. (not confirmed, said 2026-11-20)",
            "What the user must avoid (or take, if it is a medicine), by their own words:"
            ' "Nuts (all kinds) give me hives." Suggest something else. (not confirmed, said 2026-11-20)',
        ),
    ],
)
def test_a_fact_about_health_is_told_as_what_follows_from_it(line: str, said: str) -> None:
    slot = line.partition(":")[0]
    lines = FactLines((line, "pets: a cat"), {slot: ("e1",)}, frozenset({slot}))
    health, other = lines.as_items()
    assert (health.key, health.text, health.engram_ids) == (slot, said, ("e1",))
    assert other.text == "pets: a cat"

"""One turn over HTTP on a model that takes no time: the system with its default participants, beside the bare loop that
makes the same model calls and, if asked for, beside a durable peer."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks.cpu_cost import cost_of_a_turn
from benchmarks.durable_peer import durable_peer
from benchmarks.figure import Figure, alternate
from benchmarks.time_line import time_line
from benchmarks.whole_system import INSTANT_TOOL, WholeSystem, order, whole_system
from benchmarks.witness import LAST_OF_OBSERVERS, Witness, witness
from local.bus.envelope import new_id

BLOCK = 15  # turns of one contestant, before the next one's
RHYTHMS = {"back to back": 0.0, "every 0.2 s": 0.2}  # seconds between an answer and the next query
SETTINGS = {
    "system": {"more_participants": [INSTANT_TOOL, "benchmarks.instant_tool:InstantChangeTool"]},
    "gatekeeper": {"allowed_tools": ["instant_change"]},
}
NOTES = "notes.md"

Ask = Callable[[str], Awaitable[object]]
Block = Callable[[], Awaitable[list[float]]]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured: blocks of each contestant in each rhythm and with a tool, turns for CPU and time line."""

    blocks: int
    turns: int


FULL, QUICK = Extent(8, 150), Extent(2, 30)


@dataclass(frozen=True, slots=True)
class Ours:
    """The system; its observers are done with a block's turns before the next contestant's begins."""

    system: WholeSystem
    witness: Witness
    to_model: list[float] = field(default_factory=list)  # seconds from a POST to its model server
    words: Iterator[str] = field(default_factory=lambda: iter(new_id, ""))  # new ones: nothing is recalled

    def block(self, pause: float, **what: str) -> Block:
        """Seconds of each turn of one block."""

        async def measure() -> list[float]:
            asked = {}
            for _ in range(BLOCK):
                query = order(tokens=8, word=next(self.words), **what)
                asked[query] = await self.system.timed(query)
                await asyncio.sleep(pause)
            reached = await self.system.model_log()
            self.to_model.extend(reached[query] - turn.posted for query, turn in asked.items())
            await self.witness.observers_are_done(turn.query_id for turn in asked.values())
            return [turn.answered - turn.posted for turn in asked.values()]

        return measure


async def run(options: Namespace) -> list[Figure]:
    """Contestants take turns, block by block. The time line goes to standard error."""
    extent = QUICK if options.quick else FULL
    async with AsyncExitStack() as stack:
        system = await stack.enter_async_context(whole_system(SETTINGS))
        peer = await stack.enter_async_context(durable_peer(system.model_url)) if options.peer else None
        heard = await stack.enter_async_context(witness(system.system.facts, *LAST_OF_OBSERVERS))
        await _warm_up(system, heard, peer)
        figures = []
        for rhythm, pause in RHYTHMS.items():
            figures += await _plain(Ours(system, heard), peer, extent.blocks, rhythm, pause)
        figures += await _with_recall(Ours(system, heard), extent.blocks)
        figures += await _with_tool(Ours(system, heard), extent.blocks)
        await _with_leave(Ours(system, heard), extent.blocks)  # or the memory would look longer for what is new to it
        figures += await _with_leave(Ours(system, heard), extent.blocks)
        figures += await _with_file(Ours(system, heard), extent.blocks)
        for rhythm, pause in RHYTHMS.items():
            costs, later = await cost_of_a_turn(system, extent.turns, pause)
            figures.append(Figure(f"turn: CPU of a plain one, {rhythm}", sum(costs.values()), "ms", limit=18))
            figures += [Figure(f"turn:   {name}", cost, "ms") for name, cost in costs.items()]
            figures.append(Figure("turn:   memory, embedding it when nobody asks", later, "ms"))
        print(await time_line(system, extent.turns), file=sys.stderr)
    return figures


async def _warm_up(system: WholeSystem, heard: Witness, peer: Ask | None) -> None:
    ours = Ours(system, heard)
    await alternate(2, ours.block(0.0), ours.block(0.0, call="instant"), _timed(peer or system.bare.ask, 0.0))


async def _plain(ours: Ours, peer: Ask | None, blocks: int, rhythm: str, pause: float) -> list[Figure]:
    others = [_timed(ask, pause) for ask in (ours.system.bare.ask, peer) if ask]
    measured = await alternate(blocks, ours.block(pause), *others)
    mine, bare, *peers = (median(itertools.chain(*each)) * 1e3 for each in measured)
    name = f"turn: plain, {rhythm}"
    return [
        *(Figure(f"{name}, p50 beside the durable peer", mine, "ms", theirs, ratio_limit=1) for theirs in peers),
        Figure(f"{name}, p50 beside the bare loop", mine, "ms", bare),
        Figure(f"{name}, the model server has the request", median(ours.to_model) * 1e3, "ms", limit=4),
    ]


async def _with_recall(ours: Ours, blocks: int) -> list[Figure]:
    """Questions in which the one word that is rare is that of a stored exchange, beside new ones."""
    words = [new_id() for _ in range(blocks * BLOCK)]
    new, known = (replace(ours, words=iter(words)).block(0.2, kind=kind) for kind in ("new", "known"))
    new_ms, known_ms = (median(itertools.chain(*each)) * 1e3 for each in await alternate(blocks, new, known))
    return [Figure("turn: plain, with something to recall, p50 beside nothing", known_ms, "ms", new_ms)]


async def _with_tool(ours: Ours, blocks: int) -> list[Figure]:
    bare = _timed(ours.system.bare.ask, 0.0, call="instant")
    mine, theirs = await alternate(blocks, ours.block(0.0, call="instant"), bare)
    ours_ms, bare_ms = (median(itertools.chain(*each)) * 1e3 for each in (mine, theirs))
    return [Figure("turn: with one tool call, p50", ours_ms, "ms", bare_ms, ratio_limit=4.5)]


async def _with_leave(ours: Ours, blocks: int) -> list[Figure]:
    """The same tool twice: once it only reads, once the gatekeeper allows the call and the tool checks the grant."""
    measured = await alternate(blocks, *(ours.block(0.0, call=name) for name in ("instant_change", "instant")))
    asked, unasked = (median(itertools.chain(*each)) * 1e3 for each in measured)
    return [Figure("turn: with a call that is allowed at once, added", asked - unasked, "ms", limit=1)]


async def _with_file(ours: Ours, blocks: int) -> list[Figure]:
    notes = Path(ours.system.system.facts.workspace, NOTES)
    await asyncio.to_thread(notes.write_text, "# Notes\n\nThe kettle is blue.\n")
    reading = ours.block(0.0, call="read_file", argument=f"path:{NOTES}")
    recalling = ours.block(0.0, call="search_memory", argument="query:kettle")
    measured = await alternate(blocks, reading, recalling)
    read_ms, recalled_ms = (median(itertools.chain(*each)) * 1e3 for each in measured)
    return [Figure("turn: with read_file, p50 beside search_memory", read_ms, "ms", recalled_ms, ratio_limit=1.3)]


def _timed(ask: Ask, pause: float, **what: str) -> Block:
    async def measure() -> list[float]:
        seconds = []
        for _ in range(BLOCK):
            started = time.perf_counter()
            await ask(order(tokens=8, **what))
            seconds.append(time.perf_counter() - started)
            await asyncio.sleep(pause)
        return seconds

    return measure

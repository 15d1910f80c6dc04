"""When what is said in a plain turn, counted from its POST: by `sent_at` of the messages and the model server's log."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from benchmarks.whole_system import Asked, WholeSystem, order
from benchmarks.witness import witness
from local.bus.envelope import Envelope, new_id
from local.bus.message import AGENT_TRANSITION

PAUSE_SECONDS = 0.2
EVERYTHING = ""

Times = dict[str, float]


async def time_line(system: WholeSystem, turns: int) -> str:
    """One line for each thing that was said in at least half of the turns, with the median of its milliseconds."""
    seen: defaultdict[str, list[float]] = defaultdict(list)
    async with witness(system.system.facts, EVERYTHING) as here:
        for _ in range(turns):
            query = order(tokens=8, line=new_id())
            here.heard.clear()
            asked = await system.timed(query)
            await asyncio.sleep(PAUSE_SECONDS)
            reached = (await system.model_log())[query]
            for what, at in _times(asked, reached, here.heard).items():
                seen[what].append((at - asked.posted) * 1e3)
    medians = {what: median(times) for what, times in seen.items() if len(times) >= turns / 2}
    return "\n".join(f"{ms:8.1f} ms  {what}" for what, ms in sorted(medians.items(), key=lambda item: item[1]))


def _times(asked: Asked, reached: float, heard: list[Envelope]) -> Times:
    times = {"the model server has the request": reached, "the answer is there over HTTP": asked.answered}
    for envelope in heard:
        if envelope.correlation_id == asked.query_id:
            for what in _told(envelope):
                times.setdefault(what, envelope.sent_at)
    return times


def _told(envelope: Envelope) -> Iterator[str]:
    said = f"{envelope.sender}: {envelope.subject}"
    if envelope.subject != AGENT_TRANSITION:
        yield said
        return
    change = json.loads(envelope.payload)
    for state in (change["to"], *(then["to"] for then in change.get("then", ()))):
        yield f"{said} {change['agent']} {state}"

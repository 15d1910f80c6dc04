"""`local2 journal redeliver`: the journal of a running system gives dead letters to their consumers again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from local.apps.tap.connection import READY_SECONDS, client_bus, find_bus
from local.bus.sender_guard import Declaration
from local.environment import data_dir as find_data_dir
from local.errors import LocalError, NotOnRecord, RequestTimeout
from local.protocol.journal_messages import JournalRedeliver, JournalRedelivered

SENDER = "redelivery"
ANSWER_SECONDS = 20.0


class NotRedelivered(LocalError):
    """Why no dead letter is given again; the text is the journal's own where it has answered."""

    kind = "not_redelivered"


def redeliver(
    numbers: Sequence[int], consumer: str | None, *, data_dir: Path | None, addresses: str | None
) -> Iterator[str]:
    """Have dead letters given again; a line for each consumer that gets some.

    `addresses` is "PUB,SUB"; without it, the system that runs on the data directory. Raises `LocalError`: no such
    system, no such consumer, a number that is no dead letter (the others are given again).
    """
    request = JournalRedeliver(consumer=consumer, numbers=tuple(numbers))
    given = asyncio.run(_ask(request, find_data_dir(data_dir), addresses))
    for name, of_it in given.items():
        yield f"given to {name} again: {', '.join(map(str, of_it))}"
    missing = set(numbers) - {number for of_it in given.values() for number in of_it}
    if missing or not given:
        what = ", ".join(map(str, sorted(missing))) or "nothing"
        raise NotOnRecord(
            f"{what}: no dead letter of {consumer or 'anybody'}; `local2 journal dead` lists those there are"
        )


async def _ask(request: JournalRedeliver, data_dir: Path, addresses: str | None) -> Mapping[str, tuple[int, ...]]:
    says = Declaration(frozenset({JournalRedeliver.subject}))
    async with client_bus(find_bus(data_dir, addresses), SENDER, says) as bus:
        await bus.ready(READY_SECONDS)
        try:
            answer = await bus.request(request, JournalRedelivered, ANSWER_SECONDS)
        except RequestTimeout:
            why = f"the journal has not answered within {ANSWER_SECONDS:.0f} s; is it running?"
            raise NotRedelivered(why) from None
    if answer.error is not None:
        raise NotRedelivered(answer.error.message)
    return answer.numbers

"""An owner of a journal, to be killed: commits each batch of envelopes that it reads, and prints their numbers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from local.bus.envelope import decode
from local.core.errors import StoreFenced
from local.journal.jetstream import JetStreamLog, LogAddress
from local.journal.replicated import ReplicatedJournalStore
from local.journal.writer import _entry_of


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def own(folder: str, address: str) -> None:
    log = JetStreamLog(LogAddress.parse(address))
    try:
        async with ReplicatedJournalStore(Path(folder) / "journal.db", log) as store:
            say("ready")
            reader = asyncio.StreamReader(limit=2**24)
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            while line := await reader.readline():
                batch = [_entry_of(decode(frame.encode())) for frame in json.loads(line)]
                numbers = [appended.number for appended in await store.commit(batch)]
                say(numbers)
    except StoreFenced:
        say("fenced")


if __name__ == "__main__":
    asyncio.run(own(*sys.argv[1:]))

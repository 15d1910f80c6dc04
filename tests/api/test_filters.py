"""One filter language: the tap, the journal's file, /events, /journal and the page's stream give the same messages."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import httpx

from local.bus.blobs import BlobStore
from local.bus.filter import Filter
from local.cli.tap import Printer, chosen, watch
from local.journal.commands import JournalSource
from local.journal.store import JournalView
from tests.bus.test_filter import EXPRESSIONS, MESSAGES, UNRECORDED, message

System = Any  # of conftest.py
Read = Any
END = "end"  # the id of the last message
TEXTS = [f"({text}) or id={END}" if text else f"size>=0 or id={END}" for text in EXPRESSIONS]


class Shown(Printer[Any]):
    """The ids of the messages that a tap would print."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.is_listening, self.stop = asyncio.Event(), asyncio.Event()

    def note(self, text: str) -> None:
        self.is_listening.set()

    def lost(self, losses: object) -> None:
        """Nothing is lost here."""

    def offer(self, item: Any, size: int) -> None:
        self.ids.append(item.id)
        if item.id == END:
            self.stop.set()


async def test_every_reader_gives_the_same_messages(system: System, client: httpx.AsyncClient, events_of: Read) -> None:
    taps = [Shown() for _ in TEXTS]
    found = defaultdict[str, dict[str, set[str]]](dict)
    listening = [asyncio.Event() for _ in TEXTS]

    async def follow(text: str, ready: asyncio.Event) -> None:
        async with system.client() as own, own.stream("GET", "/events", params={"filter": text}) as response:
            ready.set()
            ids = found["events"][text] = set[str]()
            async for _, number, _ in events_of(response):
                ids.add(number)
                if number == END:
                    return

    async def follow_as_page(stream_id: str, texts: list[str]) -> None:
        ids = {text: set[str]() for text in texts}
        found["stream"].update(ids)
        async with client.stream("GET", f"/stream?id={stream_id}") as response:
            async for name, _, data in events_of(response):
                for text in data.get("matches", ()) if name == "message" else ():
                    ids[text].add(data["id"])
                if data.get("id") == END:
                    return

    async with asyncio.timeout(90), asyncio.TaskGroup() as readers:
        for text, tap in zip(TEXTS, taps, strict=True):
            bus = system.bus("tap")
            readers.create_task(watch(bus, chosen(text.split(" ")), tap, tap.stop))
        for text, ready in zip(TEXTS, listening, strict=True):
            readers.create_task(follow(text, ready))
        for number, texts in enumerate(TEXTS[at : at + 16] for at in range(0, len(TEXTS), 16)):
            body = {"bus": {"subjects": [""], "filters": texts}}
            (await client.post(f"/stream/the-stream-of-a-page-{number}", json=body)).raise_for_status()
            readers.create_task(follow_as_page(f"the-stream-of-a-page-{number}", texts))
        for event in (*(tap.is_listening for tap in taps), *listening):
            await event.wait()
        for each in (*MESSAGES, message(END, "bus.gap", "somebody", {}, "")):
            system.hub.forward(each.encode())
    found["tap"] = {text: set(tap.ids) for text, tap in zip(TEXTS, taps, strict=True)}
    while not await journalled(client, f"id={END}"):
        pass
    for text in TEXTS:
        found["journal"][text] = await journalled(client, text)
    with JournalView(system.journal_file) as view:
        source = JournalSource(view, BlobStore(system.journal_file.parent / "blobs"))
        for text in TEXTS:
            found["file"][text] = {record.envelope.id for record in source.select(Filter(text))}
    known = {each.id for each in MESSAGES}
    for text, expected in zip(TEXTS, EXPRESSIONS.values(), strict=True):
        for reader, of_reader in found.items():
            wanted = expected - UNRECORDED if reader in ("journal", "file") else expected
            assert of_reader[text] & known == wanted, f"{reader}: {text}"


async def journalled(client: httpx.AsyncClient, text: str) -> set[str]:
    entries = (await client.get("/journal", params={"filter": text})).json()["entries"]
    return {entry["id"] for entry in entries}


async def test_a_filter_is_checked_and_completed_while_it_is_typed(client: httpx.AsyncClient) -> None:
    while "api" not in [row["name"] for row in (await client.get("/participants")).json()["participants"]]:
        pass  # its first status is on its way

    async def check(text: str) -> Any:
        return (await client.get("/events/filter", params={"filter": text})).json()

    told = await check("sender:a")
    assert (told["error"], told["position"]) == (None, None)
    assert "sender:api" in [each["text"] for each in told["completions"]]
    told = await check("sender:a sendr:b")
    assert told["position"] == 9 and "no field 'sendr'" in told["error"]
    for path in ("/events", "/journal", "/journal/export"):
        refused = await client.get(path, params={"filter": "sendr:b"})
        error = refused.json()["error"]
        assert (refused.status_code, error["kind"], "use sender" in error["message"]) == (422, "invalid", True)
    assert await journalled(client, "sender:nobody") == set()

"""Participants on other machines: a client with a key of the bus and no access to the data directory declares itself,
and reads and stores blobs over the bus; it gets no more than the owner has permitted."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.elsewhere import (
    HOST_SAYS,
    RANGE_BYTES,
    BlobRights,
    NotPermitted,
    RemoteBlobs,
    declare,
    speaking_for,
)
from local.bus.envelope import Envelope, Trace
from local.bus.messages import (
    BlobKept,
    BlobPart,
    BlobPut,
    BlobRequest,
    BusDeclare,
    BusDeclared,
    ToolRequest,
    ToolResult,
)
from local.bus.proxy import PROXY, Proxy
from local.bus.security import Declaration, Declarations, Keyring, SenderGuard, unseal, with_keys
from local.bus.zeromq import open_transport
from local.core.bus_address import BusAddress
from local.core.errors import BlobNotStored, BusNotReady, MalformedFrame, RequestTimeout
from local.run.processes import remote_desk
from local.runtime.participant import declaration_of, what_everybody_says
from local.tools.tool import Tool, tool_elsewhere

LARGE = "8 MB of text, " * (8 * 1024 * 1024 // 14)


class DiceTool(Tool):
    """Roll a die."""

    name = "dice"
    effect = "write"

    async def run(self) -> str:
        return "6"


class Machines:
    """Two machines on one bus: `here` has the data directory, `there` a folder with the keys of dice alone."""

    def __init__(self, folder: Path, publish_to: str, subscribe_to: str) -> None:
        self.here, self.there = folder / "here", folder / "there"
        self.address = BusAddress(publish_to, subscribe_to, keyring=self.here / "keys", senders=self.here / "senders")
        self.declarations, self.blobs = Declarations(self.here / "senders"), BlobStore(self.here / "blobs")
        self.clients = {"dice": tool_elsewhere("dice")}
        self.rights = BlobRights(self.here / "elsewhere", self.clients)
        for name in ("dice", "other"):
            self.declare(name, what_everybody_says().says | speaking_for(name))
        self.declare(PROXY, what_everybody_says().says | HOST_SAYS)
        self.declare("generator", {"tool.request.", "bus.probe.", "tool.result."})
        self.stack, self.host = AsyncExitStack(), AsyncExitStack()

    def declare(self, name: str, says: Any) -> None:
        self.declarations.write(name, Declaration(frozenset(says)))
        Keyring(self.here / "keys").of(name)

    async def begin(self) -> None:
        self.proxy = Proxy(self.address, self.rights)
        await self.host.enter_async_context(remote_desk(self.address, self.clients, self.rights))

    async def end(self) -> None:
        await self.host.aclose()
        await asyncio.to_thread(self.proxy.close)

    async def bus(self, name: str, **given: Any) -> Bus:
        """A bus on the machine that has the data directory."""
        guard = SenderGuard(self.declarations.read)
        bus = Bus(name, open_transport(with_keys(self.address, name)), guard=guard, **given)
        await self.stack.enter_async_context(bus)
        await bus.ready(20)
        return bus

    async def remote(self, name: str = "dice") -> Bus:
        """A bus on the other machine, in the name that it has the keys of."""
        folder = self.there / "keys"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.keys").write_bytes((self.here / "keys" / f"{name}.keys").read_bytes())
        own = with_keys(BusAddress(self.address.publish_to, self.address.subscribe_to, keyring=folder), name)
        assert own.is_elsewhere and own.keys is not None
        blobs = RemoteBlobs(own.keys)
        blobs.bus = Bus(name, open_transport(own), blobs=blobs)
        await self.stack.enter_async_context(blobs.bus)
        await blobs.bus.ready(20)
        return blobs.bus

    async def declared(self) -> Bus:
        """The bus of dice after it has declared itself."""
        await declare(await self.remote(), declaration_of(DiceTool), 20)
        return await self.remote()

    @property
    def refused(self) -> int:
        return self.proxy.statistics()["refused"]


@pytest.fixture
async def machines(tmp_path: Path, free_port: Callable[[], int]) -> AsyncIterator[Machines]:
    machines = Machines(tmp_path, *(f"tcp://127.0.0.1:{free_port()}" for _ in "ab"))
    await machines.begin()
    yield machines
    await machines.stack.aclose()
    await machines.end()


def call(text: str) -> ToolRequest:
    return ToolRequest(query_id="q", call_id="q:0:0", tool="dice", args={"text": text})


def result(**fields: Any) -> ToolResult:
    return ToolResult(query_id="q", call_id="q:0:0", tool="dice", **fields)


async def heard(bus: Bus, subject: str) -> asyncio.Queue[Envelope]:
    """What arrives on a subject from now on."""
    queue: asyncio.Queue[Envelope] = asyncio.Queue()
    bus.subscribe(subject, queue.put_nowait)
    await bus.ready(20)
    return queue


async def test_a_tool_elsewhere_declares_what_its_class_says_and_then_says_it(machines: Machines) -> None:
    dice = await machines.declared()
    known = machines.declarations.read("dice")
    assert known is not None
    assert known.says == declaration_of(DiceTool).says | speaking_for("dice") and known.serves == {"tool_dice"}
    results = await heard(await machines.bus("generator"), "tool.result.dice")
    await dice.publish(result(result="6"))
    assert (await asyncio.wait_for(results.get(), 20)).sender == "dice"


@pytest.mark.parametrize(
    ("says", "serves", "what"),
    [
        ({"tool.result.web_search"}, (), "tool.result.web_search"),
        ({"tool.result."}, (), "tool.result."),
        ({"permission.result.grant", "tool.schema"}, (), "permission.result.grant"),
        ({"bus.declared.other"}, (), "bus.declared.other"),
        ({"blob.request.other"}, (), "blob.request.other"),
        ({"tool.schema"}, ("memory",), "the consumer memory"),
    ],
)
async def test_nobody_declares_more_than_the_owner_permits(
    machines: Machines, says: set[str], serves: tuple[str, ...], what: str
) -> None:
    before = machines.declarations.read("dice")
    with pytest.raises(NotPermitted, match=f"dice declares {what}, which its line under `bus_clients`"):
        await declare(await machines.remote(), Declaration(frozenset(says), frozenset(serves)), 20)
    assert machines.declarations.read("dice") == before


async def test_nobody_declares_himself_as_another_or_without_the_owners_line(machines: Machines) -> None:
    other = await machines.remote("other")
    with pytest.raises(NotPermitted, match="other is not listed as a tool under `bus_clients`"):
        await declare(other, Declaration(frozenset({"tool.schema"})), 20)
    before = machines.declarations.read("dice")
    with pytest.raises(RequestTimeout):
        await other.request(BusDeclare(client="dice", says=("tool.schema",)), BusDeclared, 0.3)
    assert machines.refused >= 1 and machines.declarations.read("dice") == before
    (machines.there / "keys" / "dice.keys").write_text("\n".join(_own_pair(machines.there)))
    with pytest.raises(BusNotReady):
        await asyncio.wait_for(_ready(machines), 20)


def _own_pair(folder: Path) -> tuple[str, str, str]:
    made = Keyring(folder / "made").of("dice")
    return made.public, made.secret, Keyring(folder / "keys").of("other").server_public


async def _ready(machines: Machines) -> None:
    keyring = machines.there / "keys"
    address = BusAddress(machines.address.publish_to, machines.address.subscribe_to, keyring=keyring)
    async with Bus("dice", open_transport(with_keys(address, "dice"))) as stranger:
        await stranger.ready(0.5)


async def test_8_megabytes_reach_a_tool_elsewhere_and_come_back(machines: Machines) -> None:
    dice, generator = await machines.declared(), await machines.bus("generator", blobs=machines.blobs)
    requests, results = await heard(dice, "tool.request.dice"), await heard(generator, "tool.result.dice")
    frames: list[int] = []
    spy = await machines.bus("generator")
    for subject in ("blob.part.dice", "blob.put.dice"):
        spy.subscribe(subject, lambda envelope: frames.append(len(envelope.encode())))
    await spy.ready(20)
    await generator.publish(call(LARGE))
    envelope = await asyncio.wait_for(requests.get(), 20)
    assert len(envelope.payload) < 1000  # a reference travels
    request = await dice.decode(ToolRequest, envelope)
    assert request.args == {"text": LARGE}
    await dice.publish(result(result=LARGE + "!"), envelope.trace(), in_reply_to=envelope.id)
    assert (await generator.decode(ToolResult, await asyncio.wait_for(results.get(), 20))).result == LARGE + "!"
    ranges = -(-len(LARGE) // RANGE_BYTES)
    assert 2 * ranges <= len(frames) <= 2 * ranges + 20 and max(frames) < 64 * 1024
    assert [path.name for path in machines.there.rglob("*") if path.is_file()] == ["dice.keys"]


async def test_a_blob_of_others_is_neither_read_nor_referred_to(machines: Machines) -> None:
    dice, generator = await machines.declared(), await machines.bus("generator")
    results = await heard(generator, "tool.result.dice")
    foreign = machines.blobs.put(b'"a letter of another user"')
    reference = {"$blob": foreign, "size": 26}
    with pytest.raises(MalformedFrame, match=f"dice may not read the blob {foreign}"):
        await dice.unpack(_frame("tool.request.dice", "x", reference))
    whole = {**reference, "characters": 26, "shown": 0}
    forged = [
        result(result="see").encode().replace(b'"see"', f'{{"$blob":"{foreign}","size":26}}'.encode()),
        result(result="see").encode().replace(b'"see"', f'{{"\\u0024blob":"{foreign}","size":26}}'.encode()),
        result(whole=whole).encode(),
        result(result="see").encode().replace(b'"see"', f'{{"$blob":"{foreign}"}}'.encode()),
    ]
    for number, payload in enumerate(forged, 1):
        await dice.send(Envelope("tool.result.dice", f"{number}", "dice", dice.instance, number, "q", payload))
    await dice.send(Envelope("tool.result.dice", "5", "dice", dice.instance, 5, "q", result(result="6").encode()))
    assert (await asyncio.wait_for(results.get(), 20)).id == "5" and results.empty()
    assert machines.refused == len(forged)
    theirs = _frame("tool.request.web_fetch", "generator", reference)
    await generator.send(theirs)  # it is not for dice
    await generator.ready(20)
    assert not machines.rights.has("dice", foreign)


def _frame(subject: str, sender: str, reference: dict[str, Any]) -> Envelope:
    return Envelope(subject, "6", sender, "i", 1, "q", to_json({"args": reference}))


async def test_what_is_read_over_the_bus_can_be_read_by_its_receiver_alone(machines: Machines) -> None:
    dice, generator = await machines.declared(), await machines.bus("generator", blobs=machines.blobs)
    parts = await heard(generator, "blob.part.dice")
    requests = await heard(dice, "tool.request.dice")
    await generator.publish(call("for dice alone " * 10_000))
    await dice.decode(ToolRequest, await asyncio.wait_for(requests.get(), 20))
    part = BlobPart.decode((await asyncio.wait_for(parts.get(), 20)).payload)
    keys = Keyring(machines.here / "keys")
    with pytest.raises(MalformedFrame):
        unseal(part.sealed, keys.of("generator").secret, keys.server().public)
    assert unseal(part.sealed, keys.of("dice").secret, keys.server().public)


async def test_what_a_client_stores_gives_no_other_client_the_right_to_read_it(machines: Machines) -> None:
    """Every holder of a key hears the encrypted ranges: one who sends them again in its own name gets nothing."""
    machines.clients["toss"] = tool_elsewhere("toss")
    machines.declare("toss", machines.clients["toss"].may.says)
    dice, toss = await machines.declared(), await machines.remote("toss")
    puts = await heard(toss, "blob.put.dice")
    assert isinstance(dice.blobs, RemoteBlobs)
    letter = b'"a letter that dice has read"'
    name = dice.blobs.put(letter)
    await dice.blobs._upload(name, letter)
    stolen = BlobPut.decode((await asyncio.wait_for(puts.get(), 20)).payload).model_copy(update={"client": "toss"})
    answer = await toss.request(stolen, BlobKept, 20)
    assert answer.error is not None and not machines.rights.has("toss", name)


async def test_a_blob_with_another_content_is_not_stored(machines: Machines) -> None:
    dice = await machines.declared()
    assert isinstance(dice.blobs, RemoteBlobs)
    name = hashlib.sha256(b"what it says it is").hexdigest()
    with pytest.raises(BlobNotStored, match="has another digest"):
        await dice.blobs._upload(name, b"what it is")
    assert machines.blobs.find(name) is None and not machines.rights.has("dice", name)


async def test_a_client_does_not_fill_the_disk(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.bus.elsewhere.STORED_BYTES", 10_000)
    dice = await machines.declared()
    assert isinstance(dice.blobs, RemoteBlobs)
    for data in (b"1" * 5000, b"2"):
        await dice.blobs._upload(hashlib.sha256(data).hexdigest(), data)
    with pytest.raises(BlobNotStored, match="dice may store 10000 bytes"):
        await dice.blobs._upload(hashlib.sha256(b"3").hexdigest(), b"3")


async def test_the_requests_of_one_client_take_no_place_of_another_one(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.clients["toss"] = tool_elsewhere("toss")
    machines.declare("toss", machines.clients["toss"].may.says)
    dice, toss = await machines.declared(), await machines.remote("toss")
    blob, begun, goes_on, part = machines.blobs.put(b'"a"'), asyncio.Event(), threading.Event(), BlobStore.part
    for name in ("dice", "toss"):
        machines.rights.give(name, blob)
    loop, waits = asyncio.get_running_loop(), iter([True, False])

    def slow(store: BlobStore, *which: Any) -> bytes:
        if next(waits, False):
            loop.call_soon_threadsafe(begun.set)
            goes_on.wait(20)
        return part(store, *which)

    monkeypatch.setattr(BlobStore, "part", slow)
    monkeypatch.setattr("local.bus.elsewhere.TASKS_AT_MOST", 1)
    first = asyncio.create_task(dice.request(BlobRequest(client="dice", blob=blob, start=0), BlobPart, 20))
    await begun.wait()
    try:
        answer = await toss.request(BlobRequest(client="toss", blob=blob, start=0), BlobPart, 5)
    finally:
        goes_on.set()
    assert answer.error is None and (await first).error is None


async def test_a_blob_survives_the_start_of_another_proxy_in_between(machines: Machines) -> None:
    dice = await machines.declared()
    assert isinstance(dice.blobs, RemoteBlobs)
    data = os.urandom(100 * RANGE_BYTES + 1)
    name = dice.blobs.put(data)
    kept = await heard(dice, "blob.kept.dice")
    uploading = asyncio.create_task(dice.blobs._upload(name, data))
    await asyncio.wait_for(kept.get(), 20)
    await machines.end()
    assert not uploading.done()
    machines.host = AsyncExitStack()
    await machines.begin()
    await asyncio.wait_for(uploading, 60)
    assert machines.blobs.get(name) == data
    generator = await machines.bus("generator")
    results = await heard(generator, "tool.result.dice")
    await machines.end()
    machines.rights = BlobRights(machines.here / "elsewhere", machines.clients)
    machines.host = AsyncExitStack()
    await machines.begin()
    await asyncio.gather(dice.ready(20), generator.ready(20))
    whole = {"$blob": name, "size": len(data), "characters": 1, "shown": 0}
    await dice.publish(result(whole=whole), Trace("q"))  # it was stored before the last start
    assert (await asyncio.wait_for(results.get(), 20)).sender == "dice"


def test_a_client_that_is_permitted_no_more_loses_its_rights(tmp_path: Path) -> None:
    clients = {name: tool_elsewhere(name) for name in ("dice", "other")}
    rights = BlobRights(tmp_path, clients)
    rights.give("dice", "blob:1")
    rights.give("other", "blob:1")
    del clients["dice"]
    BlobRights(tmp_path, clients).drop_old()
    assert not rights.has("dice", "blob:1")
    assert rights.has("other", "blob:1")

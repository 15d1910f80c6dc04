"""The bus over any transport; on both of them if the transport makes a difference."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from local.bus import bus as bus_module
from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, new_id
from local.bus.messages import (
    AnswerDialog,
    BusGap,
    GenerationToken,
    ParticipantStatus,
    QueryReceived,
    ToolRequest,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.bus.receiving import RejectLog
from local.core.errors import (
    BusClosed,
    BusNotReady,
    FrameTooLarge,
    MalformedFrame,
    RequestTimeout,
    UnsendableMessage,
)
from local.runtime.participant import Inbox
from tests.wires import MemoryWire, Wire, ZeroMQWire

both_wires = pytest.mark.parametrize("make_wire", [MemoryWire, ZeroMQWire], ids=["memory", "zeromq"])
HEADERS = [
    *[b"", b"{}", b"[]", b"null", b"\xff", b"[" * 5000, b"{" * 5000, b" " * 9000 + b"{}", bytes(range(1, 256)) * 30],
    *[b'{"v":1e999}', b'{"v":NaN}', b'{"v":' + b"9" * 5000 + b"}", b'{"v":2}', b'{"v":"1"}', b'{"v":1,"v":1}'],
    *[b'{"v":1,"id":"\\ud800"}', b'{"v":1,"subject":"generation.token"}'],
]
STATUSES = [b"", b"[]", b"{}", b'{"last_seq":{"a":"b"}}', b'{"last_seq":[]}', b'{"name":"\\udc00"}']


def sealed(subject: str, payload: bytes = b"{}", seq: int = 1) -> bytes:
    """A frame as a stranger may make it."""
    return Envelope(subject, new_id(), "stranger", "instance", seq, "q", payload).encode()


HOSTILE = [
    *[b"", b"\0", b"\0\0", b"\0\0\0", b"generation.token", b"generation.token\0", b"generation.token\0{}\0{}\0"],
    *[b"generation.token\0" + header + b"\0{}" for header in HEADERS],
    *[sealed("participant.status", payload) for payload in STATUSES],
    b"generation.token" + sealed("query.received").removeprefix(b"query.received"),
]


class Room:
    """Buses on one wire, closed together. What they refuse goes to one file, their large fields into one store."""

    def __init__(self, wire: Any, directory: Path) -> None:
        self.wire, self.rejects_file = wire, directory / "rejects"
        self._blobs = BlobStore(directory / "blobs")
        self._stack = AsyncExitStack()
        self._serving: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        """Close everything, in reverse."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._stack.aclose()

    async def bus(self, name: str = "bus") -> Bus:
        """A new bus, not yet ready."""
        rejects = RejectLog(self.rejects_file)
        return await self._stack.enter_async_context(
            Bus(name, self.wire.transport(), rejects=rejects, blobs=self._blobs)
        )

    async def listener(self, *subjects: str, inbox: Inbox | None = None) -> Listener:
        """A bus that collects what arrives on these subjects."""
        listener = Listener(await self.bus("listener"), Inbox() if inbox is None else inbox, subjects)
        await listener.bus.ready()
        return listener

    async def talker(self, name: str = "talker") -> Bus:
        """A bus that is ready to publish."""
        bus = await self.bus(name)
        await bus.ready()
        return bus

    async def responder(self, answer: Callable[[Bus, Envelope], Awaitable[object]]) -> Bus:
        """A bus whose task answers `tool.request.echo`, one request after the other."""
        listener = await self.listener("tool.request.echo")

        async def serve() -> None:
            async for envelope in listener.inbox:
                await answer(listener.bus, envelope)

        self._serving.append(asyncio.create_task(serve()))
        return listener.bus


class Listener:
    """A bus and what it has received."""

    def __init__(self, bus: Bus, inbox: Inbox, subjects: tuple[str, ...]) -> None:
        self.bus, self.inbox = bus, inbox
        for subject in subjects:
            bus.subscribe(subject, self._receive, repeats=True)

    def _receive(self, envelope: Envelope) -> None:
        if not self.inbox.offer(envelope):
            self.bus.overflowed(envelope)

    async def take(self, number: int = 1) -> list[Envelope]:
        """The next envelopes."""
        return [await self.inbox.take() for _ in range(number)]


@pytest.fixture
def make_wire() -> Callable[[Path], Wire]:
    return MemoryWire


@pytest.fixture
async def room(wire: Any, tmp_path: Path) -> AsyncIterator[Room]:
    """A room on each kind of wire in turn."""
    room = Room(wire, tmp_path)
    yield room
    await room.close()


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until something has happened; the test's timeout is the limit."""
    while not condition():  # noqa: ASYNC110 what is waited for are counters, which set no event
        await asyncio.sleep(0)


def token(index: int, text: str = "") -> GenerationToken:
    """One small message."""
    return GenerationToken(query_id="q", index=index, text=text)


def echo(text: str) -> ToolRequest:
    """A request to the responder."""
    return ToolRequest(query_id="q", call_id="q:1:0", tool="echo", args={"text": text})


def status(bus: Bus) -> ParticipantStatus:
    """A bus's status beat."""
    return ParticipantStatus(
        name=bus.sender, kind="tool", pid=1, instance=bus.instance, state="ready", last_seq=bus.last_seq
    )


async def answer_at_once(bus: Bus, envelope: Envelope) -> None:
    """Send the text of a request back."""
    request = await bus.decode(ToolRequest, envelope)
    result = ToolResult(query_id="q", call_id=request.call_id, tool="echo", result=request.args["text"])
    await bus.publish(result, envelope.trace(), in_reply_to=envelope.id)


# Ready


@both_wires
async def test_the_first_message_after_ready_is_never_lost(room: Room) -> None:
    for _ in range(3):
        listeners = [await room.listener("generation.token") for _ in range(2)]
        talkers = await asyncio.gather(*(room.talker() for _ in range(3)))
        await asyncio.gather(*(talker.publish(token(1)) for talker in talkers))
        for listener in listeners:
            heard = await listener.take(3)
            assert {(envelope.instance, envelope.seq) for envelope in heard} == {(bus.instance, 1) for bus in talkers}


@both_wires
async def test_no_bus_publishes_before_it_is_ready(room: Room) -> None:
    listener = await room.listener("generation.token")
    talker = await room.bus()
    assert not talker.post(token(1))
    publishing = asyncio.create_task(talker.publish(token(2)))
    await until(lambda: talker.counters["waited"])
    assert talker.counters["published"] == 0
    await talker.ready()
    await publishing
    assert [GenerationToken.decode(envelope.payload).index for envelope in await listener.take()] == [2]
    assert talker.counters["dropped"] == 1


@both_wires
async def test_a_bus_without_a_proxy_says_so_with_address_and_seconds(room: Room) -> None:
    room.wire.down()
    bus = await room.bus()
    with pytest.raises(BusNotReady, match=r"the bus at (ipc|memory):.* did not answer within 0\.02 s"):
        await bus.ready(0.02)
    room.wire.up()
    await bus.ready()


# Subscriptions


@both_wires
async def test_a_subscription_gets_its_subject_or_family_and_nothing_else(room: Room) -> None:
    exact, everything = await room.listener("tool.schema"), await room.listener("")
    family, twice = await room.listener("tool.result."), await room.listener("tool.request.", "tool.request.echo")
    talker = await room.talker()
    await talker.publish(ToolSchemaRequest())
    await talker.publish(ToolSchema(tool="t", description="d", parameters={}))
    await talker.publish(echo("x"))
    for tool in ("web_search", "web_fetch"):
        await talker.publish(ToolResult(query_id="q", call_id="c", tool=tool))
    results = ["tool.result.web_search", "tool.result.web_fetch"]
    assert [envelope.subject for envelope in await family.take(2)] == results
    assert [envelope.subject for envelope in await exact.take()] == ["tool.schema"]
    everything_else = ["tool.schema.request", "tool.schema", "tool.request.echo"]
    assert [envelope.subject for envelope in await everything.take(5)] == [*everything_else, *results]
    first, second = await twice.take(2)
    assert first == second and twice.bus.counters["repeated"] == 0
    assert len(exact.inbox) == 0 and exact.bus.counters["malformed"] == 0


@both_wires
async def test_a_subscription_that_has_ended_gets_nothing_and_costs_nothing(room: Room) -> None:
    listener = await room.listener("query.received")
    end = listener.bus.subscribe("generation.token", listener._receive)
    await listener.bus.ready()
    talker = await room.talker()
    for index in range(20):
        await talker.publish(token(index))
    end()  # while they are on their way
    end()
    await talker.publish(QueryReceived(query_id="q", query="?"))
    assert [envelope.subject for envelope in await listener.take()] == ["query.received"]
    talker.post(status(talker))
    await listener.bus.ready()
    assert listener.bus.counters["malformed"] == listener.bus.counters["missed"] == 0


@both_wires
async def test_messages_of_one_publisher_arrive_in_order_over_all_subjects(room: Room) -> None:
    listener = await room.listener("")
    talker = await room.talker()
    sent = []
    for index in range(200):
        message = token(index) if index % 3 else ToolResult(query_id="q", call_id="c", tool=f"t{index % 7}")
        sent.append(talker.publish(message))
    ids = [envelope.id for envelope in await asyncio.gather(*sent)]
    assert [envelope.id for envelope in await listener.take(200)] == ids


async def test_a_receiver_that_raises_does_not_stop_the_others(room: Room) -> None:
    raised: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    listener = await room.listener("generation.token")
    listener.bus.subscribe("query.received", lambda envelope: 1 / 0)
    await listener.bus.ready()
    talker = await room.talker()
    for _ in range(3):
        await talker.publish(QueryReceived(query_id="q", query="?"))
        await talker.publish(token(1))
    await listener.take(3)
    assert [type(context["exception"]) for context in raised] == [ZeroDivisionError] * 3


# Tracing


async def test_an_envelope_says_where_it_belongs(room: Room) -> None:
    listener = await room.listener("generation.token")
    talker = await room.talker("generator")
    sent = await talker.publish(token(1), Trace("q1", "cause", "session", "user"), ttl_ms=500, envelope_id="chosen")
    (heard,) = await listener.take()
    assert heard == sent
    assert (first := await talker.publish(token(1))).correlation_id == first.id
    assert (heard.id, heard.sender, heard.instance, heard.ttl_ms) == ("chosen", "generator", talker.instance, 500)
    assert heard.trace() == Trace("q1", "chosen", "session", "user")


# Requests


@both_wires
async def test_each_of_many_requests_gets_its_own_answer_whatever_the_order(room: Room) -> None:
    waiting: list[Envelope] = []

    async def answer_backwards(bus: Bus, envelope: Envelope) -> None:
        waiting.append(envelope)
        if len(waiting) == 20:
            for request in reversed(waiting):
                await answer_at_once(bus, request)

    await room.responder(answer_backwards)
    asker = await room.talker()
    answers = await asyncio.gather(*(asker.request(echo(str(n)), ToolResult, timeout=90) for n in range(20)))
    assert [answer.result for answer in answers] == [str(n) for n in range(20)]


async def test_on_silence_the_same_envelope_goes_again(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "FIRST_RESEND_SECONDS", 0.01)
    heard: list[Envelope] = []

    async def answer_the_third(bus: Bus, envelope: Envelope) -> None:
        heard.append(envelope)
        if len(heard) == 3:
            await answer_at_once(bus, envelope)

    responder = await room.responder(answer_the_third)
    asker = await room.talker()
    assert (await asker.request(echo("x"), ToolResult, timeout=90)).result == "x"
    assert heard[0] == heard[1] == heard[2]
    assert asker.counters["resent"] >= 2
    assert responder.counters["repeated"] >= 2 and responder.counters["missed"] == 0


async def test_a_request_that_nobody_answers_says_who_was_asked_and_keeps_its_subject(room: Room) -> None:
    asker = await room.talker()
    with pytest.raises(RequestTimeout, match=r"^echo did not answer within 0\.02 s; `local2 status`") as silent:
        await asker.request(echo("x"), ToolResult, timeout=0.02)
    assert silent.value.details == {"subject": "tool.request.echo"}


async def test_a_late_answer_is_counted_and_never_given_to_the_next_request(room: Room) -> None:
    kept: list[Envelope] = []

    async def answer_the_first_too_late(bus: Bus, envelope: Envelope) -> None:
        if b"first" in envelope.payload:
            kept.append(envelope)
            return
        for late in kept:
            await answer_at_once(bus, late)
        await answer_at_once(bus, envelope)

    await room.responder(answer_the_first_too_late)
    asker = await room.talker()
    await asker.request(echo("zeroth"), ToolResult, timeout=90)
    with pytest.raises(RequestTimeout):
        await asker.request(echo("first"), ToolResult, timeout=0.02)
    await until(lambda: kept)
    assert (await asker.request(echo("second"), ToolResult, timeout=90)).result == "second"
    assert asker.counters["late_replies"] == 1


async def test_a_malformed_answer_is_an_error_at_the_requester(room: Room) -> None:
    async def answer_with_nonsense(bus: Bus, envelope: Envelope) -> None:
        await bus.send(envelope._replace(subject="tool.result.echo", payload=b"{}", in_reply_to=envelope.id))

    await room.responder(answer_with_nonsense)
    with pytest.raises(MalformedFrame, match="query_id"):
        await (await room.talker()).request(echo("x"), ToolResult, timeout=90)


# The proxy goes and comes back


@both_wires
async def test_what_is_published_while_the_proxy_is_down_waits_and_arrives_or_is_counted(room: Room) -> None:
    listener = await room.listener("generation.token")
    talker = await room.talker()
    await talker.publish(token(0))
    await listener.take()
    room.wire.down()
    await until(lambda: not talker._handshake.is_ready)
    publishing = [asyncio.create_task(talker.publish(token(n))) for n in (1, 2, 3)]
    await until(lambda: talker.counters["waited"] == 3)
    assert not talker.post(token(4))
    room.wire.up()
    await asyncio.gather(*publishing)
    await until(lambda: listener.bus.counters["reconnects"])
    await talker.publish(token(5))
    heard: list[int] = []
    while heard[-1:] != [5]:
        heard += [GenerationToken.decode(envelope.payload).index for envelope in await listener.take()]
    # what the talker, back first, said before the listener was back is lost; the listener knows how much that was
    assert heard == [1, 2, 3, 5][-len(heard) :]
    assert listener.bus.counters["missed"] == 5 - len(heard)
    assert talker.counters["reconnects"] == listener.bus.counters["reconnects"] == 1


@both_wires
async def test_a_request_in_flight_survives_the_proxy(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "FIRST_RESEND_SECONDS", 60.0)  # so that only the reconnection can bring it back
    heard: list[Envelope] = []

    async def answer_the_second(bus: Bus, envelope: Envelope) -> None:
        heard.append(envelope)
        if len(heard) > 1:
            await answer_at_once(bus, envelope)

    responder = await room.responder(answer_the_second)
    asker = await room.talker()
    asking = asyncio.create_task(asker.request(echo("x"), ToolResult, timeout=90))
    await until(lambda: heard)
    room.wire.down()
    await until(lambda: not asker._handshake.is_ready)
    waiting = asyncio.create_task(asker.publish(token(1)))  # what waits must not keep the request back
    await until(lambda: asker.counters["waited"])
    room.wire.up()
    await waiting
    assert asker.counters["resent"] == 1
    await until(lambda: responder.counters["reconnects"])
    if len(heard) == 1:  # the asker was back before the responder
        asker._reconnected()
    assert (await asking).result == "x"
    assert heard[0] == heard[1]


async def test_an_outage_longer_than_a_publish_may_wait_ends_no_request(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "PUBLISH_SECONDS", 0.01)
    monkeypatch.setattr(bus_module, "FIRST_RESEND_SECONDS", 0.01)
    asker = await room.talker()
    room.wire.down()
    await until(lambda: not asker._handshake.is_ready)
    with pytest.raises(RequestTimeout):
        await asker.request(echo("x"), ToolResult, timeout=0.2)
    room.wire.up()


# Losses


async def test_losses_in_the_middle_and_at_the_end_are_counted_and_reported(room: Room) -> None:
    listener = await room.listener("generation.token", "participant.status")
    talker = await room.talker()
    talker.post(status(talker))
    await talker.publish(token(1))
    talker.last_seq["generation.token"] += 5
    await talker.publish(token(2))
    talker.last_seq["generation.token"] += 7
    talker.post(status(talker))
    await listener.take(4)
    assert listener.bus.counters["missed"] == 12
    expected = BusGap(
        observer="listener", sender="talker", instance=talker.instance, missed_subject="generation.token", missed=12
    )
    assert listener.bus.take_gaps() == [expected]
    assert listener.bus.take_gaps() == []


@both_wires
async def test_what_was_never_subscribed_to_and_what_the_bus_says_to_itself_is_no_loss(room: Room) -> None:
    everything, one = await room.listener(""), await room.listener("query.received")
    talker = await room.talker()
    for index in range(3):
        talker.post(status(talker))
        await talker.publish(token(index))
        await talker.ready()
        await one.bus.ready()
        one.bus.post(status(one.bus))
    one.bus.subscribe("generation.token", one._receive)
    talker.post(status(talker))
    await one.bus.ready()
    await talker.publish(token(3))
    talker.post(status(talker))
    await one.take()
    await talker.publish(QueryReceived(query_id="q", query="?"))
    await one.take()
    await everything.take(12)
    assert everything.bus.counters["missed"] == one.bus.counters["missed"] == talker.counters["missed"] == 0


async def test_a_message_that_was_refused_at_the_sender_leaves_no_gap(room: Room) -> None:
    listener = await room.listener("generation.token", "answer.dialog")
    talker = await room.talker()
    await talker.publish(token(1))
    with pytest.raises(
        FrameTooLarge,
        match=r"a message generation\.token of [\d,]+ bytes .* takes 1,048,576 at most; split it into smaller",
    ):
        talker.post(token(2, "x" * 1024 * 1024))
    with pytest.raises(UnsendableMessage):
        talker.post(token(2, "\ud800"))
    with pytest.raises(UnsendableMessage, match=r"'tool\.request\.no such\\x00tool' is not a subject"):
        await talker.publish(ToolRequest(query_id="q", call_id="c", tool="no such\0tool", args={}))
    await talker.publish(token(3))
    assert [envelope.seq for envelope in await listener.take(2)] == [1, 2]
    assert listener.bus.counters["missed"] == listener.bus.counters["malformed"] == 0


@both_wires
@pytest.mark.parametrize("slow", [False, True], ids=["keeps up", "does not"])
async def test_in_a_burst_every_message_is_received_or_counted_as_missed(room: Room, slow: bool) -> None:
    total = 2000
    listener = await room.listener("generation.token", inbox=Inbox(max_envelopes=500 if slow else total))
    talker = await room.talker()
    talker.post(status(talker))
    for index in range(total):
        await talker.publish(token(index))
        if index % 100 == 0:
            await asyncio.sleep(0)
    bus = listener.bus
    await until(lambda: len(listener.inbox) + bus.counters["missed"] == total)
    assert bus.counters["missed"] == bus.counters["overflow"] == (total - 500 if slow else 0)
    assert sum(gap.missed for gap in bus.take_gaps()) == bus.counters["missed"]


# Large and hostile


@both_wires
async def test_an_answer_of_300_kilobytes_travels_beside_the_frame(room: Room) -> None:
    listener = await room.listener("answer.dialog")
    message = AnswerDialog(query_id="q", query='{"$blob":"0","size":1}', answer="ä" * 150_000)
    envelope = await (await room.talker()).publish(message)
    assert len(envelope.payload) < 1000
    (heard,) = await listener.take()
    assert await listener.bus.decode(AnswerDialog, heard) == message


@both_wires
async def test_malformed_frames_are_counted_sampled_and_survived(room: Room) -> None:
    listener = await room.listener("")
    narrow = await room.listener("generation.token")
    narrow.bus._transport.subscribe(b"surprise")
    await narrow.bus.ready()
    last = sealed("query.received")
    await room.wire.inject([*(HOSTILE[n % len(HOSTILE)] for n in range(400)), sealed("surprise.party"), last])
    assert [envelope.subject for envelope in await listener.take(2)] == ["surprise.party", "query.received"]
    assert listener.bus.counters["malformed"] == 400
    await until(lambda: narrow.bus.counters["malformed"])
    samples = room.rejects_file.read_text().splitlines()
    assert 20 <= len(samples) < 60
    await (await room.talker()).publish(token(1))
    assert [envelope.subject for envelope in await listener.take()] == ["generation.token"]


# Closing


async def test_closing_ends_every_wait_with_bus_closed(room: Room) -> None:
    raised: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    async with Bus("asker", room.wire.transport()) as bus:
        end = bus.subscribe("generation.token", lambda envelope: None)
        await bus.ready()
        asking = asyncio.create_task(bus.request(echo("x"), ToolResult, timeout=90))
        await until(lambda: len(bus._requests._open))
        room.wire.down()
        await until(lambda: not bus._handshake.is_ready)
        publishing = asyncio.create_task(bus.publish(token(1)))
        asking_again = asyncio.create_task(bus.request(echo("y"), ToolResult, timeout=90))
        becoming_ready = asyncio.create_task(bus.ready(40))
        first_request = asyncio.create_task(bus.request(ToolSchemaRequest(), ToolSchema, timeout=90))
        await until(lambda: bus.counters["waited"] == 2)
    waiting = (asking, publishing, asking_again, becoming_ready, first_request)
    waits = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(wait) for wait in waits] == [BusClosed] * 5
    end()
    assert not bus.post(token(1))
    for use in (bus.publish(token(1)), bus.ready(), bus.request(echo("x"), ToolResult, timeout=1)):
        with pytest.raises(BusClosed):
            await use
    del waits, waiting, asking, publishing, asking_again, becoming_ready, first_request
    await asyncio.sleep(0)  # so that the loop, too, lets go of them
    gc.collect(1)  # the young ones: what has just been let go of
    assert raised == []  # no "exception was never retrieved" in anybody's log

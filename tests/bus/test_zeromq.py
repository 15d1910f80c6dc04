"""What only ZeroMQ can get wrong: processes that are killed or stopped, foreign keys, bursts, high-water marks."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zmq

from local.bus import proxy as proxy_module
from local.bus import zeromq
from local.bus.bus import Bus
from local.bus.envelope import MAX_FRAME, Envelope
from local.bus.messages import GenerationToken, ParticipantStatus, ToolRequest, ToolResult
from local.bus.proxy import Proxy, ProxyFailed
from local.bus.security import Keyring, with_keys
from local.bus.sending import Handshake, SendQueue
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.core.errors import BadBusAddress, BusClosed, BusNotReady, PublishTimeout
from local.runtime.participant import Inbox

COUNT = """
import asyncio, sys
from local.core.bus_address import BusAddress
from local.bus.bus import Bus
from local.bus.zeromq import ZeroMQTransport

async def main():
    received = missed = 0
    complete = asyncio.Event()

    def count(envelope):
        nonlocal received
        received += 1

    def beat(envelope):
        nonlocal missed
        missed += sum(gap.missed for gap in bus.take_gaps() if gap.missed_subject == "generation.token")
        if received + missed >= int(sys.argv[3]):
            complete.set()

    async with Bus("counter", ZeroMQTransport(BusAddress(*sys.argv[1:3]))) as bus:
        bus.subscribe("generation.token", count)
        bus.subscribe("participant.status", beat)
        await bus.ready()
        print("ready", flush=True)
        await complete.wait()
        print(received, missed, flush=True)

asyncio.run(main())
"""


@pytest.fixture
async def address(ipc: BusAddress) -> AsyncIterator[BusAddress]:
    """A bus whose proxy is a thread of this process."""
    proxy = Proxy(ipc)
    yield ipc
    proxy.close()


@pytest.fixture
def tcp(free_port: Callable[[], int], tmp_path: Path) -> BusAddress:
    """A bus address over TCP, with keys."""
    where = [f"tcp://127.0.0.1:{free_port()}" for _ in range(2)]
    return with_keys(BusAddress(*where, keyring=tmp_path), "client")


def bus(address: BusAddress, name: str = "bus") -> Bus:
    """A bus over ZeroMQ."""
    return Bus(name, ZeroMQTransport(address))


def token(index: int, text: str = "") -> GenerationToken:
    """One message."""
    return GenerationToken(query_id="q", index=index, text=text)


def status(bus: Bus) -> ParticipantStatus:
    """A bus's status beat."""
    return ParticipantStatus(
        name=bus.sender, kind="tool", pid=1, instance=bus.instance, state="ready", last_seq=bus.last_seq
    )


def collect(bus: Bus, *subjects: str) -> Inbox:
    """Everything that arrives on these subjects, in an inbox."""
    inbox = Inbox()
    for subject in subjects:
        bus.subscribe(subject, inbox.offer)
    return inbox


def modes_in(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_no_start_loses_a_first_message(ipc: BusAddress, run_dir: Path) -> None:
    for _ in range(5):
        proxy = Proxy(ipc)
        assert modes_in(run_dir) == {0o600}
        assert proxy.statistics() == {"frames_in": 0, "bytes_in": 0, "frames_out": 0, "bytes_out": 0}
        async with bus(ipc) as listener, bus(ipc) as talker:
            inbox = collect(listener, "generation.token")
            await asyncio.gather(listener.ready(), talker.ready())
            assert talker.post(token(1))
            assert (await inbox.take()).seq == 1
        proxy.close()


async def test_participants_may_start_before_the_proxy(ipc: BusAddress) -> None:
    async with bus(ipc) as listener, bus(ipc) as talker, asyncio.TaskGroup() as tasks:
        inbox = collect(listener, "generation.token")
        tasks.create_task(listener.ready())
        publishing = tasks.create_task(talker.publish(token(1)))
        proxy = await asyncio.to_thread(Proxy, ipc)
        await listener.ready()
        await talker.ready()
        await publishing
        assert (await inbox.take()).seq == 1
    proxy.close()


async def test_everybody_is_back_after_the_proxy_was_killed_and_restarted(ipc: BusAddress, proxy_process: Any) -> None:
    async with bus(ipc, "listener") as listener, bus(ipc, "talker") as talker:
        inbox, requests = collect(listener, "generation.token"), collect(listener, "tool.request.echo")
        await asyncio.gather(listener.ready(), talker.ready())
        asking = asyncio.create_task(
            talker.request(ToolRequest(query_id="q", call_id="c", tool="echo", args={}), ToolResult, timeout=90)
        )
        await requests.take()  # it is never answered
        both_back = [asyncio.Event(), asyncio.Event()]
        for one, back in zip((listener, talker), both_back, strict=True):
            one.on_reconnect.append(back.set)
        await asyncio.to_thread(proxy_process.kill)
        await asyncio.to_thread(proxy_process.start)
        async with asyncio.timeout(90):
            await asyncio.gather(*(back.wait() for back in both_back))
        await talker.publish(token(2))
        assert GenerationToken.decode((await inbox.take()).payload).index == 2
        assert listener.counters["reconnects"] == talker.counters["reconnects"] == 1
        assert talker.counters["resent"] >= 1
        assert listener.counters["missed"] == 0
        asking.cancel()
        await asyncio.wait({asking})


async def test_a_stopped_subscriber_loses_only_its_own_messages_and_counts_them(
    ipc: BusAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_module, "SEND_HIGH_WATER_MARK", 500)
    total = 4000
    proxy = Proxy(ipc)
    command = [sys.executable, "-c", COUNT, ipc.publish_to, ipc.subscribe_to, str(total)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    async with bus(ipc, "listener") as listener, bus(ipc, "talker") as talker:
        inbox = collect(listener, "generation.token")
        await asyncio.gather(listener.ready(), talker.ready())
        assert await process.stdout.readline() == b"ready\n"
        talker.post(status(talker))
        process.send_signal(signal.SIGSTOP)
        for index in range(total):
            await talker.publish(token(index, "x" * 1000))
            if index % 250 == 249:  # so that the listener, which has the same low mark, keeps up
                for _ in range(250):
                    await inbox.take()
        assert listener.counters["missed"] == 0
        process.send_signal(signal.SIGCONT)
        counted = asyncio.create_task(process.stdout.readline())
        while not counted.done():  # beats may be lost too until the subscriber has caught up
            talker.post(status(talker))
            await asyncio.wait({counted}, timeout=0.05)
        received, missed = map(int, counted.result().split())
    await process.wait()
    proxy.close()
    assert received + missed == total
    assert missed > 0


async def test_over_tcp_with_keys_requests_and_the_largest_frame_pass(tcp: BusAddress) -> None:
    proxy = Proxy(tcp)
    async with bus(tcp) as one, bus(tcp) as other:
        inbox = collect(one, "tool.request.", "generation.token")
        await asyncio.gather(one.ready(), other.ready())
        asking = asyncio.create_task(
            other.request(ToolRequest(query_id="q", call_id="c", tool="echo", args={}), ToolResult, timeout=10)
        )
        request = await inbox.take()
        await one.publish(ToolResult(query_id="q", call_id="c", tool="echo"), in_reply_to=request.id)
        assert (await asking).call_id == "c"
        envelope = Envelope("generation.token", "e", "s", "i", 1, "q", b"")
        largest = envelope._replace(payload=b"x" * (MAX_FRAME - len(envelope.encode())))
        await other.send(largest)
        assert await inbox.take() == largest
    proxy.close()


async def test_over_tcp_without_the_right_key_nothing_is_heard_and_nothing_said(
    tcp: BusAddress, tmp_path: Path
) -> None:
    proxy, ours = Proxy(tcp), tcp.keys
    assert ours is not None
    foreign = Keyring(tmp_path / "foreign").of("client")
    async with bus(tcp) as listener:
        inbox = collect(listener, "generation.token")
        await listener.ready()
        for wrong in (None, replace(foreign, server_public=ours.server_public), foreign):
            async with bus(replace(tcp, keys=wrong)) as stranger:
                overheard = collect(stranger, "")
                with pytest.raises(BusNotReady):
                    await stranger.ready(0.1)
                stranger._transport.send(Envelope("generation.token", "e", "s", "i", 1, "q", b"").encode())
                await listener.publish(token(1))
                assert (await inbox.take()).instance == listener.instance
                assert len(overheard) == len(inbox) == 0
    proxy.close()


async def test_a_burst_is_read_in_turns_that_leave_the_loop_to_others(address: BusAddress) -> None:
    async with bus(address) as listener, bus(address) as talker:
        heard = 0
        turns: list[int] = []

        def count(envelope: Envelope) -> None:
            nonlocal heard
            heard += 1

        listener.subscribe("generation.token", count)
        await asyncio.gather(listener.ready(), talker.ready())
        while heard < 1500:
            before = heard
            for index in range(500):
                talker.post(token(index))
            await asyncio.sleep(0)
            turns.append(heard - before)
        assert max(turns) <= 2 * zeromq.DRAIN_AT_A_TURN


async def test_at_the_high_water_mark_nothing_is_lost_and_order_is_kept(
    address: BusAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zeromq, "SEND_HIGH_WATER_MARK", 10)
    async with bus(address) as listener, bus(address) as talker:
        inbox = collect(listener, "generation.token")
        await asyncio.gather(listener.ready(), talker.ready())
        await asyncio.gather(*(talker.publish(token(index, "x" * 5000)) for index in range(600)))
        assert [(await inbox.take()).seq for _ in range(600)] == list(range(1, 601))
        assert talker.counters["waited"] > 0


class Full:
    """A transport whose socket accepts no more, because nothing reads at the other end."""

    def __init__(self, address: BusAddress) -> None:
        self._context = zmq.Context()
        self._slow, self._mute = self._context.socket(zmq.XSUB), self._context.socket(zmq.XPUB)
        self._slow.setsockopt(zmq.RCVHWM, 1)
        self._slow.send(b"\1")
        self._slow.bind(address.publish_to)
        self._mute.bind(address.subscribe_to)
        self.transport = ZeroMQTransport(address)

    async def fill(self) -> None:
        """Connect, and send until there is no room."""
        linked = asyncio.Event()
        self.transport.open(lambda frame: None, lambda up: linked.set())
        first_frame = asyncio.create_task(asyncio.to_thread(self._slow.poll, 10_000))  # links only while it is polled
        await linked.wait()
        assert self.transport.send(b"x" * 100_000)
        await first_frame
        while self.transport.send(b"x" * 100_000):
            pass

    def read(self) -> None:
        """Read one frame at the other end."""
        self._slow.recv()

    async def close(self) -> None:
        """Release both ends."""
        await self.transport.close()
        self._context.destroy(0)


@pytest.fixture
async def full(ipc: BusAddress, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Full]:
    """A full socket."""
    monkeypatch.setattr(zeromq, "LINGER_MS", 0)
    monkeypatch.setattr(zeromq, "SEND_HIGH_WATER_MARK", 10)
    full = Full(ipc)
    await full.fill()
    yield full
    await full.close()


async def test_while_the_socket_is_full_the_loop_goes_on(full: Full) -> None:
    counters: Counter[str] = Counter()
    handshake = Handshake(lambda number: handshake.returned(number), lambda: None, lambda: None)
    handshake.link(True)
    await handshake.shake("ipc:", 10)
    send_queue = SendQueue(full.transport, handshake, counters)
    with pytest.raises(PublishTimeout):
        await send_queue.send(b"x", "s", 0.05)
    sending = asyncio.create_task(send_queue.send(b"x", "s", 10))
    while not sending.done():
        await asyncio.to_thread(full.read)
    assert counters == {"waited": 2, "dropped": 1, "published": 1}


async def test_closing_while_the_socket_is_full_ends_the_wait(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeromq, "ASK_AGAIN_SECONDS", 60)
    waiting, cancelled = (asyncio.create_task(full.transport.writable()) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    await full.transport.close()
    with pytest.raises(BusClosed):
        await waiting


async def test_room_is_told_of_without_asking_again(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeromq, "ASK_AGAIN_SECONDS", 60)
    waiting = asyncio.create_task(full.transport.writable())
    await asyncio.sleep(0)
    while not waiting.done():
        await asyncio.to_thread(full.read)
    assert full.transport.send(b"x")


async def test_an_address_that_cannot_be_used_is_named() -> None:
    for where in ("nonsense", "", "tcp://", "ipc://" + "x" * 200):
        with pytest.raises(BadBusAddress, match="cannot connect to the bus at "):
            async with bus(BusAddress(where, where)):
                pass
    for where in ("nonsense", "tcp://127.0.0.1:99999", "ipc:///does/not/exist", "ipc://" + "x" * 200):
        with pytest.raises(ProxyFailed, match="cannot bind the bus to"):
            Proxy(BusAddress(where, where))


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_second_proxy_on_the_same_tcp_address_fails_by_name(
    has_keys: bool, free_port: Callable[[], int], tmp_path: Path
) -> None:
    where = [f"tcp://127.0.0.1:{free_port()}" for _ in range(2)]
    address = BusAddress(*where, keyring=tmp_path if has_keys else None)
    proxy = Proxy(address)
    with pytest.raises(ProxyFailed, match=f"cannot bind the bus to {where[0]}: Address already in use"):
        Proxy(address)
    assert proxy.statistics()["frames_in"] == 0
    proxy.close()
    Proxy(address).close()

"""The desktop window under load, with the conversation, a panel and the bus in sight: 10,000 messages a minute, then a
burst of 100,000. All figures are counts and the
process's own CPU time, so that other processes disturb them little; the lag of a timer is for information.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from benchmarks.figure import Figure
from benchmarks.peer import Peer, Pipe
from benchmarks.talk import forward
from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import (
    AgentTransition,
    GenerationThinking,
    GenerationToken,
    ParticipantStatus,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.bus.security import Declaration, Declarations, SenderGuard
from local.bus.zeromq import open_transport
from local.core.bus_address import BusAddress

A_MINUTE, BURST = 10_000, 100_000
CHUNK = 100  # messages that a talker hands over before it looks at the clock
TICK_MS, LAG_MS, RSS_MB, GUI_PERCENT = 16.0, 50.0, 200.0, 15.0
SESSION = "bench"
MIX = 20  # messages, of which 15 are words of an answer
A_TURN = 4_000  # messages, from the question to the answer
KINDS = (
    QueryReceived, GenerationThinking, GenerationToken, AgentTransition, ToolRequest, ToolResult, ResponseGeneration,
)  # fmt: skip


async def run(options: argparse.Namespace) -> list[Figure]:
    """The window, the proxy and the talker each have a process of their own."""
    minutes = 1 if options.quick else 5
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        address = BusAddress(f"ipc://{folder / 'pub'}", f"ipc://{folder / 'sub'}", senders=folder / "senders")
        says = frozenset({*(kind.subject for kind in KINDS), ParticipantStatus.subject, "bus.probe."})
        Declarations(folder / "senders").write("generator", Declaration(says))
        await stack.enter_async_context(Peer(forward, address))
        window = await stack.enter_async_context(Peer(show, address, folder))
        talker = await stack.enter_async_context(Peer(talk, address))
        figures: list[Figure] = []
        for name, count, per_second in (
            (f"{A_MINUTE:,} a minute", minutes * A_MINUTE, A_MINUTE / 60), (f"burst of {BURST:,}", BURST, 0.0),
        ):  # fmt: skip
            window.tell(("begin", count))
            await window.hear()
            talker.tell((count, per_second))
            while (told := await window.hear()) == "still busy":
                pass
            figures += _figures(f"desktop, {name}", count, told, is_steady=per_second > 0)
    return figures


def _figures(name: str, sent: int, told: dict[str, float], *, is_steady: bool) -> list[Figure]:
    unaccounted = told["heard"] - told["shown"] - told["dropped"]
    return [
        Figure(f"{name}: heard", told["arrived"], "messages", sent, ratio_limit=1.0, at_least=True),
        Figure(f"{name}: dropped and counted", told["dropped"], "messages", limit=0.0 if is_steady else None),
        Figure(f"{name}: neither shown nor counted", unaccounted, "messages", limit=0.0),
        Figure(f"{name}: CPU of a tick p99", told["p99"], "ms"),
        Figure(f"{name}: CPU of a tick at most", told["most"], "ms", limit=TICK_MS),
        Figure(f"{name}: CPU of the window's thread", told["gui"], "%", limit=GUI_PERCENT if is_steady else None),
        Figure(f"{name}: CPU of the process", told["process"], "%"),
        Figure(f"{name}: lag of a 10 ms timer p99", told["lag"], "ms", limit=LAG_MS if is_steady else None),
        Figure(f"{name}: memory at most", told["rss"], "MB", limit=RSS_MB),
        Figure(f"{name}: memory gained in the second half", told["gained"], "MB"),
    ]


def show(pipe: Pipe, address: BusAddress, folder: Path) -> None:
    """The window's process: report what one load costs, once all of it was heard and shown."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QEventLoop, Qt, QTimer
    from PySide6.QtWidgets import QApplication, QWidget

    from local.desktop.application import settle_memory
    from local.desktop.bus_feed import BusFeed
    from local.desktop.style import LIGHT, apply_style
    from local.desktop.window import ParticipantLogWidget

    application = QApplication([])
    apply_style(application, LIGHT)
    feed = BusFeed(folder, find=lambda: address)
    window = ParticipantLogWidget(feed)
    window.conversation.session_id = SESSION

    class Counter(QWidget):
        shown = 0

        def receive(self, batch: Sequence[Envelope]) -> None:
            self.shown += len(batch)

    counter, lags, last = Counter(), list[float](), [time.perf_counter()]
    window.add_dock("counter", "Counter", counter, shown=False)
    beat = QTimer(interval=10, timerType=Qt.TimerType.PreciseTimer)

    def note_lag() -> None:
        now = time.perf_counter()
        lags.append(now - last[0] - 0.010)
        last[0] = now

    beat.timeout.connect(note_lag)
    feed.start()
    window.show()
    settle_memory()
    process = psutil.Process()
    wait = QEventLoop.ProcessEventsFlag.AllEvents | QEventLoop.ProcessEventsFlag.WaitForMoreEvents
    while not feed.link.is_live:
        application.processEvents(wait)
    others = [0]  # messages of the talker that have arrived

    def note_arrival(envelope: Envelope) -> None:
        others[0] += envelope.sender == "generator"

    async def listen() -> None:
        assert feed.bus is not None
        feed.bus.subscribe("", note_arrival)
        await feed.bus.ready()

    asyncio.run_coroutine_threadsafe(listen(), feed.loop).result()
    beat.start()
    pipe.send("ready")
    while True:
        while not pipe.poll():
            application.processEvents(wait)
        try:
            _, count = pipe.recv()
        except EOFError:
            os._exit(0)
        window.open_panel("generator")
        window.show_dock("bus")
        window.pace.ticks, counter.shown = [], 0
        lags.clear()
        heard, dropped, rss = feed.heard, feed.dropped, list[int]()
        waiting, others[0] = feed.waiting, 0
        began, gui, whole = time.perf_counter(), time.thread_time(), time.process_time()
        told_at = rss_at = began
        pipe.send("begun")

        while others[0] < count or feed.waiting:
            application.processEvents(wait)
            now = time.perf_counter()
            if now - rss_at > 0.5:
                rss.append(process.memory_info().rss)
                rss_at = now
            if now - told_at > 10.0:
                pipe.send("still busy")
                told_at = now
        seconds = time.perf_counter() - began
        ticks, late = sorted(window.pace.ticks), sorted(lags)
        half = rss[len(rss) // 2 :] or [process.memory_info().rss]
        pipe.send(
            {
                "arrived": others[0],
                "heard": feed.heard - heard + waiting,
                "shown": counter.shown + feed.waiting,
                "dropped": feed.dropped - dropped,
                "p99": ticks[int(len(ticks) * 0.99)] * 1e3,
                "most": ticks[-1] * 1e3,
                "gui": (time.thread_time() - gui) / seconds * 100,
                "process": (time.process_time() - whole) / seconds * 100,
                "lag": late[int(len(late) * 0.99)] * 1e3,
                "rss": max([*rss, process.memory_info().rss]) / 1e6,
                "gained": (half[-1] - half[0]) / 1e6,
            }
        )


def talk(pipe: Pipe, address: BusAddress) -> None:
    """The talker's process: publish so many messages at so many a second, or as fast as it can."""
    asyncio.run(_talk(pipe, address))


async def _talk(pipe: Pipe, address: BusAddress) -> None:
    assert address.senders is not None
    guard = SenderGuard(Declarations(address.senders).read)
    async with Bus("generator", open_transport(address), guard=guard) as bus:
        await bus.ready()
        pipe.send("ready")
        number = 0
        while True:
            count, per_second = await asyncio.to_thread(pipe.recv)
            began = time.perf_counter()
            for index in range(count):
                number += 1
                query_id = f"query-{number // A_TURN}"
                await bus.publish(_message(number, query_id, bus.instance), Trace(query_id, None, SESSION))
                if per_second and (ahead := index / per_second - (time.perf_counter() - began)) > 0.005:
                    await asyncio.sleep(ahead)


def _message(number: int, query_id: str, instance: str) -> Message:
    """One message of the mix: answers that are thought about and written, with calls of a tool and beats."""
    place, step = number % MIX, number % A_TURN
    call = {"query_id": query_id, "call_id": f"c{step // MIX // 10}", "tool": "web_search"}
    if step == 0:
        return QueryReceived(query_id=query_id, query="How is the weather?", session_id=SESSION)
    if step == A_TURN - 1:
        answer = "".join(_word(each) for each in range(A_TURN) if each % MIX not in (0, 1, 3, 4, 5))
        return ResponseGeneration(query_id=query_id, status="answered", query="How is the weather?", answer=answer)
    if place == 0:
        return ParticipantStatus(name="generator", kind="agent", pid=1, instance=instance, state="ready", inflight=1)
    if place == 1:
        state = {"from": "GENERATING", "action": "call", "to": "DISPATCHING_TOOL"}
        return AgentTransition.model_validate({"agent": "generator", "query_id": query_id, **state})
    if place == 3:
        return ToolRequest(**call, args={"query": "weather in Ulm"})
    if place == 4:
        return ToolResult(**call, result="sunny, 20 degrees. " * 20, duration_ms=20.0)
    if place == 5:
        return GenerationThinking(query_id=query_id, index=step, text="The user wants the weather. ")
    return GenerationToken(query_id=query_id, index=step, text=_word(step))


def _word(step: int) -> str:
    return "word " if step % 31 else "\n\n"

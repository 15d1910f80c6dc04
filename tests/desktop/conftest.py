"""The desktop window on a real bus with a real journal. The test plays everybody else on that bus."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton, QTextBrowser, QWidget
from pytestqt.qtbot import QtBot

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import ChildStatus, ParticipantStatus
from local.bus.zeromq import transport_at
from local.core.bus_address import BusAddress
from local.core.errors import LocalError
from local.desktop.bus_feed import BusFeed
from local.desktop.style import LIGHT, apply_style
from local.desktop.window import ParticipantLogWidget
from tests.wires import Scene, ZeroMQWire

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SECONDS = 60.0
SESSION = "s1"
T = TypeVar("T")
Json = dict[str, Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one process: the others have no QApplication."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("desktop")
            item.add_marker(pytest.mark.xdist_group("desktop"))


class NamedMemoryWire:
    """The in-process hub of one name."""

    def __init__(self, run_dir: Path) -> None:
        self.address = BusAddress(f"memory:{run_dir}", f"memory:{run_dir}")

    def transport(self) -> Any:
        return transport_at(self.address)

    def close(self) -> None: ...


class Settings:
    """Settings that are read and changed here, in the place of the API."""

    def __init__(self) -> None:
        self.values: Json = {"model": None, "provider": "auto", "max_results": 5, "grade": True, "rubrics": {"a": [1]}}
        self.changes: list[tuple[str, Json, list[str]]] = []
        self.trouble: LocalError | None = None

    def files(self) -> list[Json]:
        if self.trouble is not None:
            raise self.trouble
        return [{"name": "critic", "read_by": ["critic"]}]

    def show(self, name: str) -> Json:
        defaults = {"model": None, "provider": "auto", "max_results": 5, "grade": False, "rubrics": {}}
        properties = {
            "model": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "provider": {"type": "string", "enum": ["auto", "brave"]},
            "max_results": {"type": "integer", "minimum": 1, "maximum": 20},
            "grade": {"type": "boolean"},
            "rubrics": {"type": "object"},
        }
        return {
            "name": name, "schema": {"properties": properties}, "about": ["About it."], "keys": {"grade": ["Why."]},
            "values": dict(self.values), "defaults": defaults, "sources": {}, "problem": None, "file": "critic.yaml",
            "restart_needed": ["critic"],
        }  # fmt: skip

    def change(self, name: str, values: Mapping[str, Any], reset: Sequence[str]) -> Json:
        self.changes.append((name, dict(values), list(reset)))
        self.values.update(values)
        return self.show(name)


class Stage:
    """A window, its bus with a journal, and the participants that a test plays."""

    def __init__(self, bot: QtBot, wire: Any, folder: Path) -> None:
        self.bot, self.wire, self.settings = bot, wire, Settings()
        self.feed = BusFeed(folder, find=lambda: wire.address)
        self.feed.start()
        self.heard: list[Envelope] = []
        self._scene = Scene(wire, folder)
        self._buses: dict[str, Bus] = {}
        self.run(self._set_up())

    def open(self) -> ParticipantLogWidget:
        """Show the window; `window` from then on."""
        self.window = ParticipantLogWidget(self.feed, self.settings)
        self.window.show()
        self.until(lambda: self.feed.link.is_live and self.window._connections)
        return self.window

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the bus."""
        return asyncio.run_coroutine_threadsafe(work, self.feed.loop).result(SECONDS)

    def until(self, holds: Callable[[], object]) -> None:
        """Let the window live until something holds."""
        self.bot.waitUntil(lambda: bool(holds()), timeout=int(SECONDS * 1000))

    def say(self, sender: str, *messages: Message, query: str = "q1", session: str = SESSION) -> None:
        """Publish messages about a query."""

        async def work() -> None:
            bus = await self._bus(sender)
            for message in messages:
                await bus.publish(message, Trace(query, None, session))

        self.run(work())

    def answers(self, sender: str, request: type[Message], answer: Callable[[Envelope], Message]) -> None:
        """Let somebody answer requests."""

        async def work() -> None:
            bus = await self._bus(sender)

            def receive(envelope: Envelope) -> None:
                asyncio.get_running_loop().create_task(reply(envelope))

            async def reply(envelope: Envelope) -> None:
                await bus.publish(answer(envelope), envelope.trace(), in_reply_to=envelope.id)

            bus.subscribe(request.subject, receive)
            await bus.ready()

        self.run(work())

    def take_part(self, *names: str, state: str = "ready", detail: str = "") -> None:
        """Have the supervisor report these participants in a state."""
        children = tuple(
            ChildStatus(name=name, kind="participant", state=state, pid=1, restarts=0, detail=detail) for name in names
        )
        status = ParticipantStatus(
            name="supervisor", kind="supervisor", pid=1, instance="i", state="ready", children=children
        )
        self.say("supervisor", status)

    def published(self, kind: type[Message]) -> list[Any]:
        """What the window has published of a kind."""
        mine = [each for each in self.heard if each.sender == "desktop" and each.subject.startswith(kind.subject)]
        return [kind.decode(each.payload) for each in mine]

    def close(self) -> None:
        self.run(self._scene.close())
        if hasattr(self, "window"):
            self.window.close()
            self.window.deleteLater()
        self.feed.close()

    async def _set_up(self) -> None:
        await self._scene.journal()
        witness = await self._bus("witness")
        witness.subscribe("", self.heard.append)
        await witness.ready()

    async def _bus(self, sender: str) -> Bus:
        if sender not in self._buses:
            self._buses[sender] = await self._scene.bus(sender, journaled=sender != "witness")
        return self._buses[sender]


@pytest.fixture(params=["memory", "zeromq"])
def any_wire(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Every kind of bus in turn."""
    yield from _wire(request.param)


@pytest.fixture
def stage(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Stage]:
    """A window's surroundings on a bus in this process."""
    apply_style(qapp, LIGHT)
    for wire in _wire("memory"):
        stage = Stage(qtbot, wire, tmp_path)
        yield stage
        stage.close()


@pytest.fixture
def make_stage(qtbot: QtBot, qapp: QApplication) -> type[Stage]:
    """Makes the surroundings on a given bus."""
    apply_style(qapp, LIGHT)
    return Stage


@pytest.fixture
def texts() -> Callable[[QWidget], str]:
    """What a person reads in a widget."""
    return _texts


@pytest.fixture
def unnamed() -> Callable[[QWidget], list[str]]:
    """The widgets that the keyboard reaches and a screen reader has no name for."""

    def unnamed(window: QWidget) -> list[str]:
        return [repr(each) for each in _reachable(window) if not each.accessibleName()]

    return unnamed


@pytest.fixture
def unreached(qtbot: QtBot) -> Callable[[QWidget], set[str]]:
    """The widgets that Tab does not come to, though they take the focus."""

    def unreached(window: QWidget) -> set[str]:
        wanted = {id(each): each.accessibleName() for each in _reachable(window) if each.isEnabled()}
        for _ in range(3 * len(wanted)):
            focused = QApplication.focusWidget()
            if focused is not None:
                wanted.pop(id(focused), None)
            window.focusNextPrevChild(True)  # as Tab does
        return set(wanted.values())

    return unreached


def _reachable(window: QWidget) -> list[QWidget]:
    every = window.findChildren(QWidget)
    takes_focus = (each for each in every if each.focusPolicy() & Qt.FocusPolicy.TabFocus and not each.focusProxy())
    return [each for each in takes_focus if each.isVisible()]


def _texts(widget: QWidget) -> str:
    found = []
    for each in [widget, *widget.findChildren(QWidget)]:
        if each.isHidden():
            continue
        if isinstance(each, QLabel | QPushButton):
            found.append(each.text())
        elif isinstance(each, QPlainTextEdit | QTextBrowser):
            found.append(each.toPlainText())
    return "\n".join(found)


def _wire(kind: str) -> Iterator[Any]:
    run_dir = Path(tempfile.mkdtemp(prefix="bus-"))  # short enough for a socket's path
    wire = ZeroMQWire(run_dir) if kind == "zeromq" else NamedMemoryWire(run_dir)
    yield wire
    wire.close()
    shutil.rmtree(run_dir)

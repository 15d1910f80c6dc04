"""What an addition costs, in files and lines: each is made in a folder of its own, used, and counted."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import local.protocol
from local.apps.participant import find_class
from local.bus import transport
from local.bus.address import BusAddress
from local.bus.bus import Bus
from local.bus.transport import open_transport
from local.config import load, load_system
from local.environment import Environment
from local.errors import BadBusAddress, ConfigError
from local.protocol.delivery_classes import delivery_of, kept_subjects, message_classes
from local.protocol.message import Delivery
from local.protocol.messages import GenerationToken, ParticipantStatus
from local.protocol.subjects import __getattr__ as constant
from local.runtime.participant import Kind, Resources
from local.runtime.participant_runner import ParticipantRunner
from tests.test_docs import ARCHITECTURE, table

PARTS = {
    "tool": """
        from local.tools.tool import Tool

        class Addition(Tool):
            '''Say how many letters a word has.'''
            name = "addition"

            async def run(self, word: str) -> str:
                return str(len(word))
    """,
    "agent": """
        from local.protocol.envelope import Envelope
        from local.protocol.messages import ResponseGeneration
        from local.runtime.participant import Kind, Participant, on

        class Addition(Participant):
            '''Reads every answer, with a model.'''
            name = "addition"
            kind = Kind.AGENT

            @on(ResponseGeneration)
            async def read(self, message: ResponseGeneration, envelope: Envelope) -> None: ...
    """,
    "observer": """
        from local.protocol.envelope import Envelope
        from local.protocol.messages import QueryReceived
        from local.runtime.participant import Participant, on

        class Addition(Participant):
            '''Counts the questions.'''
            name = "addition"

            @on(QueryReceived)
            async def count(self, message: QueryReceived, envelope: Envelope) -> None: ...
    """,
}
MESSAGE = """
    from local.protocol.message import Delivery, Message

    class WeatherChanged(Message):
        '''The weather service, when it begins to rain.'''
        subject = "weather.changed"
        delivery = Delivery.CONFIRMED
        place: str
"""
TRANSPORT = """
    from local.bus.memory import MemoryHub, MemoryTransport

    HUB = MemoryHub()

    class PigeonTransport(MemoryTransport):
        '''Carries frames on foot.'''
        def __init__(self, address):
            super().__init__(HUB)
"""
ADDRESS = BusAddress("pigeon:loft", "pigeon:loft")


def costs() -> dict[str, tuple[str, str]]:
    return {what: (files, lines) for what, files, lines, _ in table(ARCHITECTURE, "a new")}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder to import from, and nothing stays imported."""
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    for cached in (message_classes, delivery_of):
        cached.cache_clear()


async def kind_on_the_bus(folder: Path) -> str:
    """Serve who stands in system.yaml beside the others, and hear of which kind it says it is."""
    system = load_system([folder], {}, Environment())
    (entry,) = system.participants
    part = find_class(entry.target, system.python_path)
    address = BusAddress("memory:cost", "memory:cost")
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    async with Bus("listener", open_transport(address)) as bus:
        bus.subscribe(ParticipantStatus.subject, lambda envelope: _tell(heard, envelope.payload))
        await bus.ready()
        participant = part.build(load(part.name, part.Config, [folder]), Resources(folder))
        serving = asyncio.create_task(ParticipantRunner(participant, Bus(part.name, open_transport(address))).run(stop))
        kind = await asyncio.wait_for(heard, 20)
        stop.set()
        await serving
    return kind


def _tell(heard: asyncio.Future[str], payload: bytes) -> None:
    if not heard.done():
        heard.set_result(ParticipantStatus.decode(payload).kind)


@pytest.mark.parametrize("what", PARTS)
async def test_a_participant_is_one_file_and_one_line(what: str, folder: Path) -> None:
    (folder / "additions.py").write_text(dedent(PARTS[what]), "utf-8")
    line = "more_participants: [additions:Addition]\n"
    (folder / "system.yaml").write_text(line, "utf-8")
    assert await kind_on_the_bus(folder) == Kind(what)
    assert costs()[what] == ("1", "1")


def test_a_message_is_one_class_in_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "weather.py").write_text(dedent(MESSAGE), "utf-8")
    monkeypatch.setattr(local.protocol, "__path__", [*local.protocol.__path__, str(folder)])
    message_classes.cache_clear()
    delivery_of.cache_clear()
    assert "weather.changed" in kept_subjects()  # so the journal subscribes to it and keeps it
    assert delivery_of("weather.changed") is Delivery.CONFIRMED
    assert constant("WEATHER_CHANGED") == "weather.changed"
    documented = {row[0] for row in table(Path("docs/protocol.md").read_text("utf-8"), "subject")}
    assert "`weather.changed`" not in documented, "so that tests/test_docs.py fails until its row is written"
    assert costs()["message"] == ("1", "1")


async def test_a_transport_is_one_module_and_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pigeons.py").write_text(dedent(TRANSPORT), "utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(transport.SCHEMES, "pigeon", "pigeons:PigeonTransport")
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with Bus("a", open_transport(ADDRESS)) as listener, Bus("b", open_transport(ADDRESS)) as talker:
        listener.subscribe(GenerationToken.subject, lambda envelope: heard.set_result(envelope.payload))
        await listener.ready()
        await talker.ready()
        await talker.publish(GenerationToken(query_id="q", index=0, text="coo"))
        assert GenerationToken.decode(await asyncio.wait_for(heard, 20)).text == "coo"
    assert costs()["transport"] == ("1", "2")


def test_an_address_of_no_known_scheme_is_refused() -> None:
    with pytest.raises(BadBusAddress, match="no transport takes 'pigeon:loft'; there are ipc, tcp, memory"):
        open_transport(ADDRESS)


@pytest.mark.parametrize("head", ["async def count(self, message):", "def count(self, message, envelope):"])
def test_a_handler_that_cannot_be_called_is_refused_when_its_class_is_made(head: str, folder: Path) -> None:
    code = dedent(PARTS["observer"]).replace(
        "async def count(self, message: QueryReceived, envelope: Envelope) -> None:", head
    )
    (folder / "wrong.py").write_text(code, "utf-8")
    with pytest.raises(ConfigError, match=r"the handler Addition\.count has to be written as: async def count\(self, "):
        find_class("wrong:Addition", (folder,))

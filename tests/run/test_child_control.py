"""What the supervisor does for those who ask it over the bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from local.api.clients import ParticipantRefused, SystemControl
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import ParticipantRequest, ParticipantResult
from local.bus.zeromq import MemoryHub
from local.core.config import ParticipantEntry, SystemConfig
from local.core.errors import ConfigError, UnknownParticipant
from local.run.run import ChildControl, ParticipantReloader
from local.runtime.child import ChildSpec
from local.runtime.supervisor import ChildPhase, ChildState, Supervisor

PHASES = {"web_search": ChildPhase.READY, "api": ChildPhase.READY, "journal": ChildPhase.READY}


class Children:
    """A supervisor whose children are no processes; each change waits for `may_go_on`."""

    def __init__(self) -> None:
        self.phases = dict(PHASES)
        self.begun: list[str] = []
        self.done: list[str] = []
        self.announced: list[dict[str, ChildPhase]] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    @property
    def children(self) -> tuple[ChildState, ...]:
        return tuple(ChildState(name, "participant", 7, phase, 0, "", 0.0) for name, phase in self.phases.items())

    async def start(self, name: str) -> None:
        await self._change("start", name, ChildPhase.READY)

    async def stop(self, name: str) -> None:
        await self._change("stop", name, ChildPhase.STOPPED)

    async def restart(self, name: str) -> None:
        await self._change("restart", name, ChildPhase.READY)

    async def remove(self, name: str) -> None:
        await self._change("remove", name, ChildPhase.STOPPED)
        del self.phases[name]

    def announce(self) -> None:
        self.announced.append(dict(self.phases))

    def add(self, spec: ChildSpec) -> None:
        self.done.append(f"add {spec.name}")
        self.phases.setdefault(spec.name, ChildPhase.STOPPED)

    async def _change(self, verb: str, name: str, phase: ChildPhase) -> None:
        if name not in self.phases:
            raise UnknownParticipant(name, self.phases)
        self.begun.append(name)
        await self.may_go_on.wait()
        self.done.append(f"{verb} {name}")
        self.phases[name] = phase


@pytest.fixture
def children() -> Children:
    return Children()


class SettingsRead:
    """What `system.yaml` says, as it is read: who takes part, or why it is no good."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.fault = ""

    def __call__(self) -> SystemConfig:
        if self.fault:
            raise ConfigError(self.fault)
        return SystemConfig(participants=tuple(ParticipantEntry(target=target) for target in self.targets))


@pytest.fixture
def settings() -> SettingsRead:
    return SettingsRead()


@pytest.fixture
def hub() -> MemoryHub:
    return MemoryHub()


@pytest.fixture
async def frontend(hub: MemoryHub, children: Children, settings: SettingsRead) -> AsyncIterator[Bus]:
    """The bus of one who asks; the supervisor listens."""
    async with Bus("supervisor", hub.transport()) as own, Bus("api", hub.transport()) as frontend:
        newcomers = ParticipantReloader(
            settings, lambda system, entry: ChildSpec(entry.name, "participant", entry.target)
        )
        control = ChildControl(own, cast(Supervisor, children), newcomers, announce=children.announce)
        await own.ready()
        await frontend.ready()
        yield frontend
        control.close()


async def test_a_participant_is_stopped_started_and_restarted(frontend: Bus, children: Children) -> None:
    control = SystemControl(frontend)
    for verb, state in (("stop", "stopped"), ("start", "ready"), ("start", "ready"), ("restart", "ready")):
        child = await control.participant(cast(Any, verb), "web_search")
        assert child is not None and (child.name, child.state) == ("web_search", state)
    assert children.done == ["stop web_search", "start web_search", "restart web_search"]  # it ran already


async def test_who_is_not_there_or_is_needed_is_refused(frontend: Bus, children: Children) -> None:
    control = SystemControl(frontend)
    with pytest.raises(ParticipantRefused, match="there is no participant nobody; there are api, journal") as refused:
        await control.participant("restart", "nobody")
    assert refused.value.kind == "not_found"
    for name in ("api", "journal", "proxy"):
        with pytest.raises(ParticipantRefused, match="it could not be started again") as refused:
            await control.participant("stop", name)
        assert refused.value.kind == "conflict"
    assert children.done == []


async def test_who_is_in_the_settings_since_the_start_is_started_once(
    frontend: Bus, children: Children, settings: SettingsRead
) -> None:
    control = SystemControl(frontend)
    settings.targets = ["my_tools:dice", "critic"]
    starts = await asyncio.gather(*(control.participant("start", "dice") for _ in range(2)))
    assert [child and child.state for child in starts] == ["ready", "ready"]
    await control.participant("restart", "critic")
    assert children.done == ["add dice", "start dice", "add critic", "restart critic"]


async def test_what_users_have_added_begins_with_what_the_settings_say_by_now_and_our_own_as_it_did(
    frontend: Bus, children: Children, settings: SettingsRead
) -> None:
    control = SystemControl(frontend)
    settings.targets = ["my_tools:dice"]
    children.phases["dice"] = ChildPhase.READY
    await control.participant("restart", "dice")
    assert children.done == ["add dice", "restart dice"]

    settings.fault, children.done = "system.yaml:1: nonsense: unknown key", []
    for verb, name in (("restart", "dice"), ("start", "coin")):
        with pytest.raises(ParticipantRefused, match="nonsense: unknown key") as refused:
            await control.participant(cast(Any, verb), name)
        assert refused.value.kind == "config"
    assert children.done == []
    for name in ("web_search", "journal"):
        await control.participant("restart", name)
    assert children.done == ["restart web_search", "restart journal"]


async def test_who_was_taken_out_of_the_settings_is_removed_and_our_own_are_not(
    frontend: Bus, children: Children, settings: SettingsRead
) -> None:
    control = SystemControl(frontend)
    children.phases |= {"dice": ChildPhase.READY, "coin": ChildPhase.STOPPED}
    for verb, name in (("start", "dice"), ("restart", "dice"), ("start", "coin"), ("restart", "web_search")):
        child = await control.participant(cast(Any, verb), name)
        assert child is not None
        is_kept = (verb, name) in (("start", "dice"), ("restart", "web_search"))  # the first ran, and nothing was to do
        assert (child.name, child.state) == (name, "ready" if is_kept else "gone")
    assert children.done == ["remove dice", "remove coin", "restart web_search"]
    with pytest.raises(ParticipantRefused, match="there is no participant dice"):
        await control.participant("restart", "dice")


async def test_a_request_that_comes_twice_is_done_once_and_answered_again(
    hub: MemoryHub, frontend: Bus, children: Children
) -> None:
    answers: asyncio.Queue[Envelope] = asyncio.Queue()
    frontend.subscribe(ParticipantResult.subject, answers.put_nowait, repeats=True)
    await frontend.ready()
    envelope = frontend.seal(ParticipantRequest(verb="restart", name="web_search"))
    children.may_go_on.clear()
    await frontend.send(envelope)
    await frontend.send(envelope)
    children.may_go_on.set()
    first = await asyncio.wait_for(answers.get(), 90)
    await frontend.send(envelope)
    again = await asyncio.wait_for(answers.get(), 90)
    assert (first.in_reply_to, again.in_reply_to) == (envelope.id, envelope.id)
    assert first.payload == again.payload and children.done == ["restart web_search"]


async def test_the_api_is_answered_before_its_own_restart(frontend: Bus, children: Children) -> None:
    children.may_go_on.clear()
    child = await asyncio.wait_for(SystemControl(frontend).participant("restart", "api"), 5)
    assert child is not None and children.done == []
    children.may_go_on.set()
    await SystemControl(frontend).participant("restart", "web_search")
    assert children.done == ["restart api", "restart web_search"]

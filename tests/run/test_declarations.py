"""What the supervisor and clients of other kinds may say is written down, if need be later than the start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from local.bus.elsewhere import speaking_for
from local.bus.messages import SUPERVISOR
from local.bus.security import Declaration, Declarations
from local.core.bus_address import BusAddress
from local.core.config import SystemConfig
from local.core.data_dir import SENDERS
from local.run import run as system_declarations
from local.run.run import SystemDeclarations, what_supervisor_says
from local.runtime.participant import what_everybody_says
from local.tools.tool import tool_elsewhere

SYSTEM = SystemConfig.model_validate({"participants": [], "bus_clients": {"robot": ["tool."]}})


async def test_what_cannot_be_written_at_the_start_is_written_as_soon_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(system_declarations, "ROOM_SECONDS", 0.01)
    in_the_way = tmp_path / SENDERS
    in_the_way.touch()
    made = SystemDeclarations(tmp_path, BusAddress("ipc://pub", "ipc://sub"), SYSTEM)
    made.begin()
    assert "the declaration of robot cannot be written" in caplog.text
    waiting = asyncio.create_task(made.written())
    in_the_way.unlink()
    await asyncio.wait_for(waiting, 90)
    kept = Declarations(in_the_way)
    assert kept.read("robot") == Declaration(frozenset({"tool."}))
    assert kept.read(SUPERVISOR) == what_supervisor_says()


def test_what_a_tool_elsewhere_has_declared_stays_as_long_as_the_settings_permit_it(tmp_path: Path) -> None:
    address = BusAddress("tcp://127.0.0.1:1", "tcp://127.0.0.1:2", keyring=tmp_path / "keys")
    tcp = {"bus_pub_address": address.publish_to, "bus_sub_address": address.subscribe_to}
    declared = Declarations(tmp_path / SENDERS)

    def start(**clients: list[str]) -> Declaration | None:
        system = SystemConfig.model_validate({"participants": [], "bus_clients": clients, **tcp})
        SystemDeclarations(tmp_path, address, system).write()
        return declared.read("dice")

    before = Declaration(what_everybody_says().says | speaking_for("dice"))
    assert start(dice=["tool"]) == before  # it may declare itself, and has not
    whole = tool_elsewhere("dice", ["memory.request.search"]).may
    declared.write("dice", whole)
    assert start(dice=["tool", "memory.request.search"]) == whole
    assert start(dice=["tool"]) == before  # the owner permits less than before
    assert start() == Declaration(frozenset())
    assert (tmp_path / "keys" / "dice.keys").exists()

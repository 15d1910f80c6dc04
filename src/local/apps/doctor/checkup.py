"""Runs every check, side by side, and never lets one of them raise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

from local.apps.doctor import damage, door, machine, memory, model_server, search
from local.apps.doctor.finding import Finding, Status, fail
from local.apps.doctor.report import as_json as to_json
from local.apps.doctor.report import as_text, worst
from local.apps.doctor.situation import examine
from local.config import data_dir as find_data_dir
from local.config import environment

ASK_FOR_HELP = "please report this, it is a fault of the doctor"

Outcome = Finding | list[Finding]


def run(*, config_dir: Path | None = None, data_dir: Path | None = None, as_json: bool = False) -> int:
    """Examine everything and print what was found. Returns the exit status: 1 if something fails, else 0."""
    findings = asyncio.run(check_up(config_dir, find_data_dir(data_dir)))
    print(to_json(findings) if as_json else as_text(findings))  # noqa: T201
    return int(worst(findings) is Status.FAIL)


async def check_up(config_dir: Path | None, data_dir: Path) -> list[Finding]:
    """All findings, in a fixed order. Takes little longer than the slowest check."""
    situation, settings = await asyncio.to_thread(examine, config_dir, data_dir, environment())
    outcomes = await asyncio.gather(
        _safely("python", asyncio.to_thread(machine.check_python)),
        _safely("packages", asyncio.to_thread(machine.check_packages)),
        _safely("data directory", asyncio.to_thread(machine.check_data_dir, data_dir)),
        _safely("disk", asyncio.to_thread(machine.check_disk, data_dir)),
        _safely("damage", asyncio.to_thread(damage.check_damage, data_dir)),
        _safely("run directory", asyncio.to_thread(machine.check_run_directory, data_dir)),
        _safely("api port", asyncio.to_thread(door.check_port, situation.system, situation.running)),
        _safely("running system", door.check_health(situation.running)),
        _safely("model server", model_server.check_model_servers(situation)),
        _safely("memory", memory.check_memory(situation)),
        _safely("search", search.check_search(situation.web_search)),
    )
    return settings + [finding for outcome in outcomes for finding in outcome]


async def _safely(name: str, check: Awaitable[Outcome]) -> list[Finding]:
    try:
        outcome = await check
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a machine, the other checks go on
        return [fail(name, f"the check broke: {type(error).__name__}: {error}", ASK_FOR_HELP)]
    return outcome if isinstance(outcome, list) else [outcome]

"""Runs every check, side by side, and never lets one of them raise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

from local.apps.doctor import machine, participants
from local.apps.doctor.doctor_finding import DoctorFinding, FindingStatus, as_text, fail, worst
from local.apps.doctor.doctor_finding import as_json as to_json
from local.apps.doctor.installation import examine
from local.apps.doctor.model_server import check_model_servers
from local.environment import data_dir as find_data_dir
from local.environment import environment
from local.secrets.secret_store import SecretStore

ASK_FOR_HELP = "please report this, it is a fault of the doctor"

Findings = DoctorFinding | list[DoctorFinding]


def run(*, config_dir: Path | None = None, data_dir: Path | None = None, as_json: bool = False) -> int:
    """Examine everything and print what was found. Returns the exit status: 1 if something fails, else 0."""
    findings = asyncio.run(check_up(config_dir, find_data_dir(data_dir)))
    print(to_json(findings) if as_json else as_text(findings))  # noqa: T201
    return int(worst(findings) is FindingStatus.FAIL)


async def check_up(config_dir: Path | None, data_dir: Path) -> list[DoctorFinding]:
    """All findings, in a fixed order. Takes little longer than the slowest check."""
    installation, settings = await asyncio.to_thread(examine, config_dir, data_dir, environment())
    found = await asyncio.gather(
        _safely("python", asyncio.to_thread(machine.check_python)),
        _safely("packages", asyncio.to_thread(machine.check_packages)),
        _safely("data directory", asyncio.to_thread(machine.check_data_dir, data_dir)),
        _safely("disk", asyncio.to_thread(machine.check_disk, data_dir)),
        _safely("damage", asyncio.to_thread(machine.check_damage, data_dir)),
        _safely("run directory", asyncio.to_thread(machine.check_run_directory, data_dir)),
        _safely("api port", asyncio.to_thread(machine.check_port, installation.system, installation.running)),
        _safely("running system", participants.check_health(installation.running, data_dir)),
        _safely(
            "model server",
            check_model_servers(
                installation.system,
                installation.generator,
                installation.models,
                installation.observers,
                SecretStore(data_dir).get,
            ),
        ),
        _safely("secrets", asyncio.to_thread(machine.check_secrets, data_dir, installation.secrets)),
        _safely("memory", participants.check_memory(installation)),
        _safely("search", participants.check_search(installation.web_search)),
        _safely("commands", asyncio.to_thread(participants.check_commands, installation.runs_commands)),
    )
    return settings + [finding for some in found for finding in some]


async def _safely(name: str, check: Awaitable[Findings]) -> list[DoctorFinding]:
    try:
        found = await check
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a machine, the other checks go on
        return [fail(name, f"the check broke: {type(error).__name__}: {error}", ASK_FOR_HELP)]
    return found if isinstance(found, list) else [found]

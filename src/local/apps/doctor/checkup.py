"""Runs every check, side by side, tells what each has found, and never lets one of them raise."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from local.apps.doctor import machine, participants
from local.apps.doctor.doctor_finding import DoctorFinding, FindingStatus, as_line, as_total, fail, worst
from local.apps.doctor.doctor_finding import as_json as to_json
from local.apps.doctor.installation import Installation, examine
from local.apps.doctor.model_server import check_model_servers
from local.environment import data_dir as find_data_dir
from local.environment import environment
from local.secrets.secret_store import SecretStore

EXIT_INTERRUPTED = 130
ASK_FOR_HELP = "please report this, it is a fault of the doctor"

Findings = DoctorFinding | list[DoctorFinding]
Tell = Callable[[Sequence[DoctorFinding]], None]


def run(*, config_dir: Path | None = None, data_dir: Path | None = None, as_json: bool = False) -> int:
    """Examine everything and print each finding as soon as it is known, as JSON all of them at the end. Returns the
    exit status: 1 if something fails, else 0."""
    tell = _in_silence if as_json else _print
    findings = asyncio.run(_until_interrupted(check_up(config_dir, find_data_dir(data_dir), tell)))
    print(to_json(findings) if as_json else as_total(findings))  # noqa: T201
    return int(worst(findings) is FindingStatus.FAIL)


async def _until_interrupted(examination: Awaitable[list[DoctorFinding]]) -> list[DoctorFinding]:
    """Ctrl-C ends it at once: a check in a thread would be waited for, and none has anything in hand."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, os._exit, EXIT_INTERRUPTED)
    return await examination


async def check_up(config_dir: Path | None, data_dir: Path, tell: Tell) -> list[DoctorFinding]:
    """All findings, in a fixed order, each of which was told before as soon as it was known. Takes little longer than
    the slowest check."""
    installation, settings = await asyncio.to_thread(examine, config_dir, data_dir, environment())
    tell(settings)
    checks = _checks(installation, data_dir)
    found = await asyncio.gather(*(_safely(name, check, tell) for name, check in checks.items()))
    return settings + [finding for some in found for finding in some]


def _checks(installation: Installation, data_dir: Path) -> dict[str, Awaitable[Findings]]:
    models = check_model_servers(
        installation.system,
        installation.generator,
        installation.models,
        installation.observers,
        SecretStore(data_dir).get,
    )
    return {
        "python": asyncio.to_thread(machine.check_python),
        "packages": asyncio.to_thread(machine.check_packages),
        "data directory": asyncio.to_thread(machine.check_data_dir, data_dir),
        "disk": asyncio.to_thread(machine.check_disk, data_dir),
        "damage": asyncio.to_thread(machine.check_damage, data_dir),
        "run directory": asyncio.to_thread(machine.check_run_directory, data_dir),
        "api port": asyncio.to_thread(machine.check_port, installation.system, installation.running),
        "running system": participants.check_health(installation.running, data_dir),
        "model server": models,
        "secrets": asyncio.to_thread(machine.check_secrets, data_dir, installation.secrets),
        "memory": participants.check_memory(installation),
        "search": participants.check_search(installation.web_search),
        "commands": asyncio.to_thread(participants.check_commands, installation.runs_commands),
    }


async def _safely(name: str, check: Awaitable[Findings], tell: Tell) -> list[DoctorFinding]:
    try:
        found = await check
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a machine, the other checks go on
        found = fail(name, f"the check broke: {type(error).__name__}: {error}", ASK_FOR_HELP)
    findings = found if isinstance(found, list) else [found]
    tell(findings)
    return findings


def _print(findings: Sequence[DoctorFinding]) -> None:
    for finding in findings:
        print(as_line(finding), flush=True)  # noqa: T201


def _in_silence(findings: Sequence[DoctorFinding]) -> None:
    """All of them come at the end."""

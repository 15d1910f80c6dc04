"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.figure import BenchmarkFailed, Figure, table

NAMES = ("start", "idle", "turn", "tokens", "sessions", "bus", "burst", "journal", "recovery", "frozen", "model")
TURN, CHAOS, MEMORY, OBSERVERS, PAGE, WINDOWS = "turn", "chaos", "memory", "observers", "page", "windows"
DESKTOP = "desktop"
# beside NAMES
BY_NAME = ("overload", "servers", "reading", CHAOS, MEMORY, "memory-kills", OBSERVERS, "mind", PAGE, DESKTOP, WINDOWS)
CHOICES = (*NAMES, *BY_NAME)
WITH_OPTIONS = (TURN, CHAOS, MEMORY, OBSERVERS, PAGE, DESKTOP, WINDOWS)
CORES = 2
BUSY_PERCENT = 10


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks that are named; 1 if a limit is missed, 2 if one could not be carried out."""
    parser = argparse.ArgumentParser(prog="bench.py", description="Measure LoCAL2 beside its baselines on two cores.")
    parser.add_argument("names", nargs="*", default=["all"], choices=[*CHOICES, "all"], metavar="|".join(CHOICES))
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    turn = parser.add_argument_group(f"{TURN}, {DESKTOP}")
    turn.add_argument("--quick", action="store_true", help="a minute instead of five")
    turn.add_argument("--peer", action="store_true", help="beside LangGraph, too; installs it on first use")
    _add_chaos(parser.add_argument_group(CHAOS))
    observers = parser.add_argument_group(OBSERVERS)
    observers.add_argument("--respondent-b", action="store_true", help="have a second respondent answer too")
    memory = parser.add_argument_group(MEMORY)
    memory.add_argument(
        "--dialogue", type=Path, nargs="+", metavar="FILE", help="quality on public talk: see public_set"
    )
    memory.add_argument("--small", action="store_true", help="only the smallest set, in seconds")
    page = parser.add_argument_group(PAGE)
    page.add_argument("--faults", action="store_true", help="reloads and kills at 30 points of an answer instead")
    windows = parser.add_argument_group(WINDOWS)
    windows.add_argument("--conversation", type=Path, metavar="FILE", help="a JSON list of texts, beside our own")
    options = parser.parse_args(arguments)
    names = NAMES if "all" in options.names else options.names
    _settle()
    figures: list[Figure] = []
    conditions: dict[str, str] = {}
    for name in names:
        conditions[name] = _conditions()
        print(f"{name}: {conditions[name]}", file=sys.stderr)
        try:
            module = importlib.import_module(f"benchmarks.{name.replace('-', '_')}")
            figures += asyncio.run(module.run(options) if name in WITH_OPTIONS else module.run())
        except BenchmarkFailed as error:
            print(f"bench: {name}: {error}", file=sys.stderr)
            return 2
    record = {"conditions": conditions, "figures": [figure.record() for figure in figures]}
    print(json.dumps(record, indent=2) if options.json else table(figures))
    return 1 if any(figure.met is False for figure in figures) else 0


def _add_chaos(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--seed", type=int, default=1, help="whom it hits, and how")
    group.add_argument("--sessions", type=int, default=200)
    group.add_argument("--queries", type=int, default=10_000, help="in all sessions together")
    group.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="between two faults")
    group.add_argument("--observers", action="store_true", help="memory, critic, reward and respondent B are hit too")
    group.add_argument("--agents", action="store_true", help="users have tasks done by agents, for so many --seconds")
    group.add_argument("--seconds", type=float, default=120.0, help="of --agents")
    group.add_argument("--takeovers", type=int, default=0, help="a cell on NATS servers loses so many machines instead")
    group.add_argument("--cells", action="store_true", help="the matrix of failpoints instead of the random run")


def _settle() -> None:
    """Two cores, and compiled modules kept on disk as an installation has them; the processes we start inherit both."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _conditions() -> str:
    """What the machine does besides: the load, and a warning if that spoils the figures."""
    busy = psutil.cpu_percent(interval=0.5)
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    told = f"cores {len(os.sched_getaffinity(0))} of {os.cpu_count()}, load average {load}, {busy:.0f} % busy"
    return told + (" - WARNING: other processes disturb these figures" if busy > BUSY_PERCENT else "")

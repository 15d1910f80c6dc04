"""The memory's process is killed again and again while it stores answers and is searched: is all of it there, once?"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.figure import BenchmarkFailed, Figure
from local.core.errors import LocalError

SUITE = Path(__file__).resolve().parents[2] / "tests" / "chaos"
KILLS, ANSWERS = 50, 2_000


async def run() -> list[Figure]:
    """50 kills, 2,000 answers. What was found in detail is written to the error output."""
    sys.path.insert(0, str(SUITE))
    suite = importlib.import_module("chaos_harness.memory_kills")
    faults = importlib.import_module("chaos_harness.memory_judge").Fault
    try:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            result = await suite.memory_kills(Path(folder), kills=KILLS, answers=ANSWERS)
    except* (LocalError, suite.MemoryGone) as group:
        raise BenchmarkFailed(f"the memory did not come back: {group.exceptions[0]}") from None
    for violation in result.violations:
        print("memory-kills:", *violation, file=sys.stderr)
    found = Counter(violation.fault for violation in result.violations)
    silent = sum(search.result is None for search in result.searches)
    degraded = sum(bool(search.result and search.result.degraded) for search in result.searches)
    return [
        Figure("memory-kills: answers", ANSWERS, "", limit=ANSWERS, at_least=True),
        Figure("memory-kills: kills that the supervisor has seen", result.restarts, "", limit=KILLS, at_least=True),
        *(Figure(f"memory-kills: {fault}", found[fault], "", limit=0) for fault in faults),
        Figure("memory-kills: searches meanwhile", len(result.searches), ""),
        Figure("memory-kills:   of them without an answer in time", silent, ""),
        Figure("memory-kills:   of them by words alone", degraded, ""),
        Figure("memory-kills: from the last kill until nothing is pending", result.settled_seconds, "s"),
    ]

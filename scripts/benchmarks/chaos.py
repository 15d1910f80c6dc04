"""Users ask while processes are killed and frozen: the long run of the chaos suite, and every cell of its matrix."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from pathlib import Path

from benchmarks.figure import Figure

AGENTS_SESSIONS = 4  # at most: each has five agents at once
SUITE = Path(__file__).resolve().parents[2] / "tests" / "chaos"


async def run(options: Namespace) -> list[Figure]:
    """`cells`: the matrix. Else the random run of `seed`: so many `queries` in `sessions`, a fault `every` seconds.

    With `observers` those take part, are hit and are judged, too; with `agents` users have tasks done by them instead,
    for so many `seconds`. With `takeovers` a cell on three NATS servers loses so many machines.

    What was found in detail is logged.
    """
    sys.path[:0] = [str(SUITE), str(SUITE.parents[1])]
    suite = importlib.import_module("chaos_harness.measure")
    if options.cells:
        measured = await suite.full_matrix()
    elif options.takeovers:
        measured = await suite.cell_run(
            seed=options.seed,
            sessions=options.sessions,
            queries=options.queries,
            every=options.every,
            takeovers=options.takeovers,
        )
    elif options.agents:
        measured = await suite.agents_run(
            seed=options.seed,
            sessions=min(options.sessions, AGENTS_SESSIONS),
            seconds=options.seconds,
            every=options.every,
        )
    else:
        print(f"chaos: seed {options.seed}", file=sys.stderr)
        run = suite.observers_run if options.observers else suite.long_run
        measured = await run(seed=options.seed, sessions=options.sessions, queries=options.queries, every=options.every)
    return [Figure(name, value, unit, limit=limit) for name, value, unit, limit in measured]

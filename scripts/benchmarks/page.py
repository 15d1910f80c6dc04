"""The page in a real browser on the whole system: the first visit, a long answer, a long conversation, many tabs."""

from __future__ import annotations

import argparse
import sys

from benchmarks.figure import Figure, table
from benchmarks.page_browser import paged_system
from benchmarks.page_faults import fault_figures
from benchmarks.page_history import history_figures, prepare
from benchmarks.page_load import load_figures
from benchmarks.page_streaming import streaming_figures
from benchmarks.page_tabs import tab_figures


async def run(options: argparse.Namespace) -> list[Figure]:
    """All of them, or with `--faults` only what it makes of reloads and kills."""
    if options.faults:
        async with paged_system() as paged:
            return await fault_figures(paged)
    figures: list[Figure] = []
    async with paged_system(prepare) as paged:
        for measure in (load_figures, history_figures, streaming_figures, tab_figures):
            figures += (found := await measure(paged))
            print(table(found), file=sys.stderr)  # it takes minutes until all are there
    return figures

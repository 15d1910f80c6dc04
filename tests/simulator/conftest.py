"""`pytest tests/simulator --seeds N` runs N schedules; `--first-seed S` begins with S, to see one again."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the package `simulated` beside this file

SEEDS = 60  # the rarest of the planted faults shows in one schedule of 150: run more after a change of delivery
PARTS = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Only there when this folder is named on the command line."""
    parser.addoption("--seeds", type=int, default=SEEDS, help="how many schedules the simulator runs")
    parser.addoption("--first-seed", type=int, default=0, help="the seed of the first one")


@pytest.fixture(params=range(PARTS))
def seeds(request: pytest.FixtureRequest) -> range:
    """The seeds to run, in parts for workers to share."""
    first: int = request.config.getoption("--first-seed", 0)
    return range(first + request.param, first + request.config.getoption("--seeds", SEEDS), PARTS)

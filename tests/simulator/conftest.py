"""`pytest tests/simulator --seeds N` runs N schedules; `--first-seed S` begins with S, to see one again."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the package `simulated` beside this file


def pytest_addoption(parser: pytest.Parser) -> None:
    """Only there when this folder is named on the command line."""
    parser.addoption("--seeds", type=int, default=2500, help="how many schedules the simulator runs")
    parser.addoption("--first-seed", type=int, default=0, help="the seed of the first one")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    """The seeds to run."""
    first: int = request.config.getoption("--first-seed", 0)
    return range(first, first + request.config.getoption("--seeds", 2500))

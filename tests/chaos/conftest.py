"""`pytest tests/chaos --chaos-seed N` hits other processes in another order."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Only there when this folder is named on the command line."""
    parser.addoption("--chaos-seed", type=int, default=1, help="whom the random run hits, and how")


@pytest.fixture
def chaos_seed(request: pytest.FixtureRequest) -> int:
    """The seed of the random run."""
    seed: int = request.config.getoption("--chaos-seed", 1)
    return seed

"""`pytest tests/chaos --chaos-seed N` hits other processes in another order."""

from collections.abc import Iterator

import pytest

from tests.warm.warm_system import WarmSystem


def pytest_addoption(parser: pytest.Parser) -> None:
    """Only there when this folder is named on the command line."""
    parser.addoption("--chaos-seed", type=int, default=1, help="whom the random run hits, and how")


@pytest.fixture
def chaos_seed(request: pytest.FixtureRequest) -> int:
    """The seed of the random run."""
    seed: int = request.config.getoption("--chaos-seed", 1)
    return seed


@pytest.fixture(scope="module", autouse=True)
def _warm() -> Iterator[None]:
    """Here the harness has its systems forked; where it measures, they are started anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chaos_harness.system.TemporarySystem", WarmSystem)
        patch.setattr("chaos_harness.memory_kills.TemporarySystem", WarmSystem)
        yield

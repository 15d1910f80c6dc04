"""Rows of a file are those of its map, and nothing of them stays in memory."""

from pathlib import Path

import numpy as np
import pytest

from local.core.errors import ModelError
from local.memory.rows_on_disk import RowsOnDisk

OFFSET, SHAPE = 24, (50, 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(bytes(OFFSET) + np.arange(SHAPE[0] * SHAPE[1], dtype=np.float32).tobytes())
    return path


def mapped(path: Path) -> np.memmap:
    return np.memmap(path, np.float32, "r", OFFSET, SHAPE)


@pytest.mark.parametrize("numbers", [[[3, 0, 3], [49, 7, 0]], [[5]], [[]]])
def test_rows_are_those_of_the_map_in_any_order_and_number(path: Path, numbers: list[list[int]]) -> None:
    wanted = np.array(numbers, dtype=np.int64)
    assert np.array_equal(RowsOnDisk(mapped(path))[wanted], mapped(path)[wanted])


def test_the_file_is_not_mapped_any_more(path: Path) -> None:
    rows = RowsOnDisk(mapped(path))
    rows[np.array([[1, 2]])]
    maps = Path("/proc/self/maps")
    assert not maps.exists() or str(path) not in maps.read_text()


def test_a_file_that_has_become_shorter_is_told(path: Path) -> None:
    rows = RowsOnDisk(mapped(path))
    path.write_bytes(path.read_bytes()[: OFFSET + 40])
    with pytest.raises(ModelError, match=r"weights: ends before its last row of 50"):
        rows[np.array([[0, 1]])]

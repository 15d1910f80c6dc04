"""A matrix in a file, of which single rows are read."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from local.core.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

_FLOAT_BYTES = 4


class RowsOnDisk:
    """A matrix in a file, of which single float32 rows are read when needed: a memory map would keep every page that
    was ever read, and those around it, which is most of the file after a day.
    """

    def __init__(self, mapped: np.memmap[tuple[int, int], np.dtype[np.float32]]) -> None:
        self._path, self._start = Path(str(mapped.filename)), mapped.offset
        self._count, self._width = mapped.shape
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)

    def __getitem__(self, numbers: Ints) -> Floats:
        """The rows of these numbers: shape (*numbers.shape, width). Raises `ModelError` where the file has ended."""
        import numpy as np

        wanted, places = np.unique(numbers, return_inverse=True)
        size = self._width * _FLOAT_BYTES
        read = b"".join(os.pread(self._file, size, self._start + number * size) for number in wanted.tolist())
        if len(read) != len(wanted) * size:
            raise ModelError(f"{self._path}: ends before its last row of {self._count}")
        return np.frombuffer(read, np.float32).reshape(-1, self._width)[places.reshape(numbers.shape)]

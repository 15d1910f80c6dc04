"""A vector index that compares with every vector: nothing is missed, nothing is built, and no file is its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from local.services.engrams.vectors import VectorEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_FIRST_ROOM = 256


class ExactIndex:
    """One array of float32, with room for more. See `VectorIndex`."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._keys: dict[str, None] = {}  # in the order of the rows
        self._rows: Vectors | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """See `VectorIndex`."""
        import numpy as np

        with self._free:
            fresh = {entry.key: entry.vector for entry in entries if entry.key not in self._keys}
            if fresh:
                stored = np.frombuffer(b"".join(fresh.values()), np.float16).reshape(len(fresh), -1)
                begin = len(self._keys)
                self._with_room(begin + len(fresh), stored.shape[1])[begin : begin + len(fresh)] = stored
                self._keys |= dict.fromkeys(fresh)

    def search(self, vector: Any, limit: int) -> list[str]:
        """See `VectorIndex`."""
        import numpy as np

        with self._free:
            keys, rows = list(self._keys), self._rows
        if rows is None:
            return []
        cosines = rows[: len(keys)] @ vector
        closest = np.argpartition(-cosines, min(limit, len(keys)) - 1)[:limit]
        return [keys[number] for number in closest[np.argsort(-cosines[closest], kind="stable")]]

    def keys(self) -> set[str]:
        """See `VectorIndex`."""
        with self._free:
            return set(self._keys)

    def close(self) -> None:
        """See `VectorIndex`: it goes with whoever still searches it."""

    def _with_room(self, count: int, width: int) -> Vectors:
        import numpy as np

        rows = self._rows
        if rows is None or len(rows) < count:
            room = np.empty((max(_FIRST_ROOM, count, len(self._keys) * 5 // 4), width), np.float32)
            if rows is not None:
                room[: len(self._keys)] = rows[: len(self._keys)]
            self._rows = rows = room
        return rows

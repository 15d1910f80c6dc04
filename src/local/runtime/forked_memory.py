"""The memory of a process as it is to be when others are forked from it: so that they go on sharing it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

_LARGEST, _STEP = 512, 16  # bytes: what Python's allocator gives out itself, one size to a pool
_HEADER = sys.getsizeof(b"")
_IN_A_ROW = 16  # blocks at the addresses after each other: a pool from which nothing was taken before
_MOST = 5_000  # blocks, whatever their addresses
_fillings: list[object] = []


def settle() -> None:
    """Let go of caches, fill the holes between objects, and have no collection of garbage look at what is there now.

    A process that is forked later then writes what is its own onto pages of its own, and not one by one into those that
    it shares with the others, each of which would be copied for it.
    """
    # The cache of attributes refers to names all over the memory: who replaces one would copy its page.
    (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
    gc.freeze()
    gc.collect()  # of nothing: it empties the lists of blocks that Python keeps to use again
    for size in range(_STEP, _LARGEST + 1, _STEP):
        _fillings.extend(_filled(size))
    gc.freeze()


def _filled(size: int) -> Iterator[object]:
    """Objects of `size` bytes in every hole of that size."""
    make, last, in_a_row = _maker(size), 0, 0
    for number in range(_MOST):
        made = make(number)
        yield made
        in_a_row = in_a_row + 1 if id(made) == last + size else 0
        last = id(made)
        if in_a_row == _IN_A_ROW:
            return


def _maker(size: int) -> Callable[[int], object]:
    if size == _STEP:
        return lambda _: object()
    if size < _HEADER:
        return lambda number: complex(number, 1)
    return lambda _: bytes(size - _HEADER)

"""The order of the tests where several processes run them: those that wait for systems begin first, everywhere.

xdist gives each worker one piece of the list, and whoever is done takes from the ends of the others' pieces. So each
piece begins with its share of the modules that take long, the longest first, and ends with tests that take
milliseconds. Tests that share
what takes long to start or to read, which `xdist_group` says, stay together, wherever they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

LONG = 10  # tests that drive a real system take as long as one that is marked so


def shared_out(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The same tests, those of a module or group that takes long still one after the other; for one worker as they
    are."""
    if workers < 2:
        return list(items)
    together: dict[object, list[pytest.Item]] = {}
    for item in items:
        together.setdefault(_together(item), []).append(item)
    modules = list(together.values())
    long = sorted((module for module in modules if _takes_long(module)), key=_weight, reverse=True)
    short = [item for module in modules if not _takes_long(module) for item in module]
    pieces: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for module in long:
        min(pieces, key=_weight).extend(module)
    for index, piece in enumerate(pieces):  # xdist gives the first worker the smallest piece
        room = (len(items) - sum(map(len, pieces[:index]))) // (workers - index) - len(piece)
        piece += short[:room]
        del short[:room]
    return [item for piece in [*pieces, short] for item in piece]


def _together(item: pytest.Item) -> object:
    group = item.get_closest_marker("xdist_group")
    return group.args if group else item.path


def _takes_long(module: Sequence[pytest.Item]) -> bool:
    return any(item.get_closest_marker(name) for item in module for name in ("long", "system", "xdist_group"))


def _weight(tests: Sequence[pytest.Item]) -> int:
    """In tests that drive a real system: in seconds each is worth a hundred others, and a long one is worth several."""
    return sum(map(_weight_of, tests))


def _weight_of(test: pytest.Item) -> int:
    return LONG if test.get_closest_marker("long") else int(test.get_closest_marker("system") is not None)

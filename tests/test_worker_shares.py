"""Whoever runs tests beside others begins with what takes long."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.worker_shares import shared_out


@dataclass(frozen=True)
class Item:
    """What is looked at of a test."""

    module: str
    marks: tuple[pytest.Mark, ...] = ()
    number: int = 0

    @property
    def path(self) -> Path:
        return Path(self.module)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self.marks if mark.name == name), None)


SYSTEM, LONG = pytest.mark.system.mark, pytest.mark.long.mark


def shares(items: list[Item], workers: int) -> list[list[str]]:
    """The modules of each worker's piece, as xdist cuts them."""
    ordered = [item.module for item in shared_out(items, workers)]  # type: ignore[arg-type, attr-defined]
    pieces = []
    for left in range(workers, 0, -1):
        pieces.append(ordered[: len(ordered) // left])
        del ordered[: len(ordered) // left]
    return pieces


def test_each_piece_begins_with_what_takes_long_and_ends_with_what_does_not() -> None:
    quick = [Item("quick", number=number) for number in range(20)]
    systems = [Item(f"system {number}", (SYSTEM,)) for number in range(4)]
    for piece in shares([*quick, *systems], workers=2):
        assert (len(piece), [name.split()[0] for name in piece[:2]], set(piece[2:])) == (12, ["system"] * 2, {"quick"})


def test_one_long_test_begins_before_several_others_and_keeps_its_worker_from_them() -> None:
    several = [Item("several", (SYSTEM,), number) for number in range(5)]
    first, second = shares([*several, Item("long", (SYSTEM, LONG)), *[Item("quick", number=9)] * 8], workers=2)
    assert (first[:1], second[:5]) == (["long"], ["several"] * 5)


def test_those_of_a_group_stay_together() -> None:
    group = pytest.mark.xdist_group("trees").mark
    items = [Item(name, (group,) if name in ("a", "c") else ()) for name in ("a", "b", "c", "d", "e", "f")]
    first, _ = shares(items, workers=2)
    assert first[:2] == ["a", "c"]


def test_one_worker_takes_them_as_they_are() -> None:
    items = [Item("quick"), Item("long", (LONG,))]
    assert shares(items, workers=1) == [["quick", "long"]]

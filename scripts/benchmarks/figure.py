"""What a benchmark reports: a figure, its baseline from the same run, and the limit it is held against."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


class BenchmarkFailed(Exception):
    """A benchmark could not be carried out; the text says what was in the way."""


@dataclass(frozen=True, slots=True)
class Figure:
    """`limit` holds for the value, `ratio_limit` for value / baseline; `at_least` turns both around."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    limit: float | None = None
    ratio_limit: float | None = None
    at_least: bool = False

    @property
    def ratio(self) -> float | None:
        """Value / baseline."""
        return self.value / self.baseline if self.baseline else None

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept; None for a figure that is for information."""
        measured, wanted = (self.ratio, self.ratio_limit) if self.ratio_limit is not None else (self.value, self.limit)
        if measured is None or wanted is None:
            return None
        return measured >= wanted if self.at_least else measured <= wanted

    def row(self) -> tuple[str, ...]:
        """The cells of one line of the table: name, ours, baseline, ratio, wanted, verdict."""
        sign = "≥" if self.at_least else "≤"
        wanted = ""
        if self.ratio_limit is not None:
            wanted = f"{sign} {self.ratio_limit:g}×"
        elif self.limit is not None:
            wanted = f"{sign} {_number(self.limit)} {self.unit}"
        return (
            self.name,
            f"{_number(self.value)} {self.unit}",
            "" if self.baseline is None else f"{_number(self.baseline)} {self.unit}",
            "" if self.ratio is None else f"{self.ratio:.2f}×",
            wanted,
            {True: "ok", False: "MISSED", None: ""}[self.met],
        )

    def record(self) -> dict[str, Any]:
        """The figure as JSON data."""
        return {
            "name": self.name, "value": self.value, "unit": self.unit, "baseline": self.baseline, "ratio": self.ratio,
            "limit": self.limit, "ratio_limit": self.ratio_limit, "at_least": self.at_least, "met": self.met,
        }  # fmt: skip


def table(figures: Iterable[Figure]) -> str:
    """Figures as aligned lines under a heading."""
    rows = [("figure", "ours", "baseline", "ratio", "wanted", ""), *(figure.row() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_aligned(row, widths) for row in rows)


async def alternate(rounds: int, *measures: Callable[[], Awaitable[T]]) -> list[list[T]]:
    """Run the measures in turn (A B A B …), so that a disturbance of the machine hits all of them; results of each."""
    results: list[list[T]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, collected in zip(measures, results, strict=True):
            collected.append(await measure())
    return results


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    name, *numbers, verdict = row
    cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))]
    return "  ".join([*cells, verdict]).rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

"""Lines that must all arrive, to the standard output or a file: this waits for a slow reader, where a tap drops."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from local.apps.tap.printer import OutputFailed

STANDARD_OUTPUT = 1


def write_lines(lines: Iterable[str], file: Path | int = STANDARD_OUTPUT) -> None:
    """Write lines. A reader that has seen enough ends it quietly. Raises `OutputFailed`.

    A file is made for its owner alone: it holds what was talked about.
    """
    try:
        with (
            suppress(BrokenPipeError),
            open(
                file, "w", encoding="utf-8", errors="backslashreplace", closefd=not isinstance(file, int),
                opener=functools.partial(os.open, mode=0o600),
            ) as out,
        ):  # fmt: skip
            for line in lines:
                out.write(f"{line}\n")
    except OSError as error:
        raise OutputFailed(f"{_name(file)} cannot be written: {error.strerror}") from None


def _name(file: Path | int) -> str:
    return str(file) if isinstance(file, Path) else "the output"

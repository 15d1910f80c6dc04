"""Errors in words that lead to the line that raised them."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from local.errors import LocalError

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = str(Path(__file__).parents[1])


def explained(error: BaseException) -> str:
    """Such as "ValueError at my_tools/dice.py:12: too many sides". Our own errors say by themselves what is wrong."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg  # the place stands before it
    if isinstance(error, LocalError):
        return f"{name}: {text}"
    return f"{located(error)}: {text}" if text else located(error)


def located(error: BaseException) -> str:
    """The error's name and where it was raised: the innermost place in a user's own file, else in ours, else none. Its
    text, which may repeat what a user has said, is left out."""
    places = list(_places(error))
    place = next((place for place in places if not place[0].startswith(_OURS)), next(iter(places), None))
    return type(error).__name__ + (f" at {_shortened(place[0])}:{place[1]}" if place else "")


def _places(error: BaseException) -> Iterator[tuple[str, int]]:
    """File and line of the calls in no library, the innermost first; then those of the error's cause. Of a module that
    is no Python the line that is none comes first."""
    if isinstance(error, SyntaxError) and error.filename:
        yield error.filename, error.lineno or 1
    yield from reversed([*_calls(error.__traceback__)])
    if error.__cause__ is not None:
        yield from _places(error.__cause__)


def _calls(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith((*_LIBRARIES, "<")):
            yield file, traceback.tb_lineno
        traceback = traceback.tb_next


def _shortened(file: str) -> str:
    """The path as an import would find it, or as it is from here."""
    folders = [f"{folder.rstrip('/')}/" for folder in (*sys.path, str(Path.cwd())) if folder]
    return file.removeprefix(max(filter(file.startswith, folders), key=len, default=""))

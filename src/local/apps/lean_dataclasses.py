"""Imported before our modules by the supervisor and the template: of a data class `__init__` alone is compiled at once.

The five to nine other functions of each are compiled when one is called first: few ever are, and all of them take a
tenth of the time in which a start imports what the processes share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

_PUT_OFF = frozenset(f"__{name}__" for name in ("repr", "eq", "hash", "lt", "le", "gt", "ge", "setattr", "delattr"))
_create: Callable[..., Callable[..., Any]] | None = getattr(dataclasses, "_create_fn", None)  # gone from Python 3.13 on


def _create_when_called(name: str, *what: Any, **how: Any) -> Callable[..., Any]:
    assert _create is not None, "else nothing is put off"
    if name not in _PUT_OFF:
        return _create(name, *what, **how)
    made: Callable[..., Any] | None = None

    def method(*arguments: Any) -> Any:
        nonlocal made
        if made is None:
            made = _create(name, *what, **how)
        return made(*arguments)

    method.__name__ = name
    return method


if _create is not None:
    dataclasses._create_fn = _create_when_called  # type: ignore[attr-defined]  # a name of its own

"""Imported before our modules by the supervisor and the template: equal annotations are compiled once.

They are texts (`from __future__ import annotations`), of which pydantic has `typing` compile each one of each field:
thousands, most of them `str`.
"""

from __future__ import annotations

import typing
from functools import cache

typing.compile = cache(compile)  # type: ignore[attr-defined]  # typing finds it before the one that is built in

"""Identifiers as clients may choose them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import StringConstraints

ID_PATTERN = r"^[A-Za-z0-9._:~-]{1,128}$"
ID_WORDS = "1 to 128 letters, digits and ._:~-"

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
"""In a body: 1 to 128 letters, digits and `._:~-`."""

PathId = Annotated[str, Path(pattern=ID_PATTERN)]
"""The same in a path."""

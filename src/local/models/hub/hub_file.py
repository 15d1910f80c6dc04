"""One file of a hub, as the hub describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HubFile:
    """`name` is that of the file alone; `size` in bytes and `sha256` in hexadecimal digits where they are told."""

    name: str
    url: str
    size: int | None = None
    sha256: str = ""

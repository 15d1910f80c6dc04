"""What the header of a GGUF file says of its model. Reads the beginning of the file, never the weights."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_MAGIC = b"GGUF"
_ARRAY, _STRING = 9, 8
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes, by the number of a type
_INTEGERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_MOST_KEYS, _MOST_BYTES = 10_000, 64 * 1024 * 1024


def context_length(path: Path) -> int | None:
    """The tokens that the model was trained to hold; None where the file does not say, or is no GGUF file."""
    try:
        with path.open("rb") as file:
            return _find(file, ".context_length")
    except (OSError, struct.error, ValueError):
        return None


def _find(file: BinaryIO, ending: str) -> int | None:
    if file.read(4) != _MAGIC:
        return None
    version, _, keys = struct.unpack("<IQQ", file.read(20))
    if version < 2 or keys > _MOST_KEYS:
        return None
    for _ in range(keys):
        key = file.read(_length(file)).decode("utf-8", "replace")
        (kind,) = struct.unpack("<I", file.read(4))
        if key.endswith(ending) and kind in _INTEGERS:
            value: int = struct.unpack(_INTEGERS[kind], file.read(_SIZES[kind]))[0]
            return value if value > 0 else None
        _skip(file, kind)
    return None


def _skip(file: BinaryIO, kind: int) -> None:
    if kind == _STRING:
        file.seek(_length(file), 1)
    elif kind == _ARRAY:
        of, count = struct.unpack("<IQ", file.read(12))
        if of in _SIZES:
            file.seek(_SIZES[of] * min(count, _MOST_BYTES), 1)
            return
        if count > _MOST_BYTES:
            raise ValueError(f"an array of {count} values")
        for _ in range(count):
            _skip(file, of)
    elif kind in _SIZES:
        file.seek(_SIZES[kind], 1)
    else:
        raise ValueError(f"a value of the unknown type {kind}")


def _length(file: BinaryIO) -> int:
    length: int = struct.unpack("<Q", file.read(8))[0]
    if length > _MOST_BYTES:
        raise ValueError(f"a text of {length} bytes")
    return length

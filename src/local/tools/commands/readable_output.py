"""The bytes that a command has written, as text that can be read and shown anywhere."""

from __future__ import annotations

import re

# What would move a terminal's cursor, ring its bell or be told it as a command; line ends and tabs stay.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
BINARY_SHARE = 0.1  # of a text so many characters are no control characters


def readable_output(data: bytes) -> str:
    """Nothing is lost: a byte that is no UTF-8, and a control character, stand there as \\x and two digits."""
    text = data.decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text).replace("\r\n", "\n")


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text, by the first 4,096 of them."""
    start = data[:4096]
    return bool(start) and (
        b"\0" in start or len(_CONTROL.findall(start.decode("latin-1"))) > BINARY_SHARE * len(start)
    )

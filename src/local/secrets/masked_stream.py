"""A text stream that says no secret of this process: for what a tool prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from local.secrets.secret_mask import secret_mask


class MaskedStream:
    """As the stream, but for what is written in one piece and holds a secret."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it without secrets; tells how much was asked for."""
        self._stream.write(secret_mask.text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

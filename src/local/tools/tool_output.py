"""What a tool's `run` gives back, as text, and no more of it than the model and the bus can bear."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from local.errors import BlobNotStored, ToolError
from local.protocol.kept_text import KeptText
from local.protocol.recall_score import RecallScore
from local.secrets.secret_mask import secret_mask

Keep = Callable[[bytes], str]  # stores something and returns its name, or raises `BlobNotStored`
MAX_SOURCES = 200
MAX_KEPT_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result with the addresses its text came from, and those that it leads to. `whole` is where all of a text lies
    that was cut off, `recalled` how near the memories were that were looked at; `tainted` says that a trusted tool
    tells words of strangers this time, `undoable` that what it has changed can be undone. The last `tail`
    characters of a text that is cut off are shown, too."""

    text: str
    sources: tuple[str, ...] = ()
    whole: KeptText | None = None
    recalled: tuple[RecallScore, ...] = ()
    links: tuple[str, ...] = ()
    tainted: bool = False
    undoable: bool = False
    tail: int = 0

    @classmethod
    def of(cls, value: object) -> ToolOutput:
        """What `run` returned: text as it is, None as none, anything else as JSON. Raises `ToolError` for what JSON
        cannot say."""
        if isinstance(value, ToolOutput):
            return value
        if isinstance(value, str):
            return cls(value)
        try:
            return cls("" if value is None else to_json(value).decode())
        except PydanticSerializationError:
            text = f"run returned {type(value).__name__}, expected text, ToolOutput or what JSON can say"
            raise ToolError(text, kind="internal") from None

    def without_secrets(self) -> ToolOutput:
        """What may be cut and kept: the secrets of this process are no more in it."""
        if not secret_mask.names:
            return self
        sources, links = (tuple(map(secret_mask.text, urls)) for urls in (self.sources, self.links))
        return replace(self, text=secret_mask.text(self.text), sources=sources, links=links)

    def fields(self) -> dict[str, Any]:
        """What a `ToolResult` says of it."""
        return {"result": self.text, "sources": self.sources[:MAX_SOURCES], "links": self.links[:MAX_SOURCES],
                "whole": self.whole, "recalled": self.recalled, "tainted": self.tainted,
                "undoable": self.undoable}  # fmt: skip

    async def limited(self, keep: Keep | None, max_chars: int) -> ToolOutput:
        """`max_chars` characters of a text that has more, from its beginning and `tail` of them from its end; `keep`
        takes the whole."""
        head, total = max(0, max_chars - self.tail), len(self.text)
        note = f"\n\n[Cut off here: these are {head} of {total} characters. Ask for less, or for a part.]"
        if self.tail:
            note = f"\n\n[Left out here: {total - head - self.tail} of {total} characters.]\n\n"
            note += self.text[-self.tail :]
        return replace(self, text=self.text[:head] + note, whole=await self._kept(keep, head))

    async def _kept(self, keep: Keep | None, shown: int) -> KeptText | None:
        """Where the whole text lies; None if there is no room for it."""
        try:
            data = await asyncio.to_thread(self.text.encode, "utf-8", "replace")
            if keep is None or len(data) > MAX_KEPT_BYTES:
                return None
            name = await asyncio.to_thread(keep, data)
            return {"$blob": name, "size": len(data), "characters": len(self.text), "shown": shown}
        except BlobNotStored:
            return None

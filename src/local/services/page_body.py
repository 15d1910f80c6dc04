"""A response body read to its end or to a cap, whichever comes first, on the wire and after decompression."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from local.errors import ToolError

_GZIP = 16 + zlib.MAX_WBITS


async def read_body(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int) -> bytes:
    """Join the chunks of a body with content encoding "", "identity" or "gzip".

    `ToolError` of kind too_large beyond `max_bytes` (sent or decompressed), unsupported_type if it cannot be decoded.
    """
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(
            f"the page is compressed as {encoding[:40]!r}, which was not asked for", kind="unsupported_type"
        )
    inflater = zlib.decompressobj(_GZIP) if encoding.endswith("gzip") else None
    body = bytearray()
    wire_bytes = 0
    async for chunk in chunks:
        wire_bytes += len(chunk)
        body += _inflate(inflater, chunk, max_bytes + 1 - len(body)) if inflater else chunk
        if max(wire_bytes, len(body)) > max_bytes:
            raise too_large(max_bytes)
    return bytes(body)


def too_large(max_bytes: int) -> ToolError:
    """The error for a page beyond the cap."""
    return ToolError(f"the page is larger than the {max_bytes:,} bytes that are read of one page", kind="too_large")


def _inflate(inflater: zlib._Decompress, chunk: bytes, room: int) -> bytes:
    """At most `room` bytes, which is what makes a bomb harmless; what follows the end of the stream is ignored."""
    try:
        return b"" if inflater.eof else inflater.decompress(chunk, room)
    except zlib.error as error:
        raise ToolError(f"the page is not the gzip it says it is ({error})", kind="unsupported_type") from None

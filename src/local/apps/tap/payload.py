"""Payloads as a tap reads them: leniently, because it shows what others may have got wrong."""

from __future__ import annotations

from typing import Any

from local.bus.blobs import BlobStore, is_packed
from local.errors import MalformedFrame
from local.protocol.strict_json import parse_object


def read(payload: bytes, blobs: BlobStore | None = None) -> dict[str, Any] | str:
    """The object in a payload, with large fields fetched from `blobs`; as text if it is no JSON object.

    A reference to a blob that is not in the store stays as it is.
    """
    try:
        value = parse_object(payload, "payload")
    except MalformedFrame:
        return payload.decode(errors="replace")
    if blobs is None or not is_packed(payload):
        return value
    try:
        return parse_object(blobs.unpack(payload), "payload")
    except MalformedFrame:
        return value

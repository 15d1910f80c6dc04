"""One JSON object on each line, for programs: the header's fields, and `payload`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from local.apps.tap import payload
from local.apps.tap.view import View
from local.bus.blobs import BlobStore
from local.protocol.envelope import Envelope


def document(envelope: Envelope, blobs: BlobStore | None) -> dict[str, Any]:
    """An envelope as one object; a payload that is no JSON object is a string in it."""
    return {**envelope.header(), "payload": payload.read(envelope.payload, blobs)}


class JsonView(View[Envelope]):
    """Whole envelopes; without `show_payload`, headers. Only ASCII leaves, so nothing in it can control a terminal."""

    def __init__(self, *, blobs: BlobStore | None = None, show_payload: bool = True) -> None:
        self._blobs, self._show_payload = blobs, show_payload

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        yield json.dumps(document(item, self._blobs) if self._show_payload else item.header())

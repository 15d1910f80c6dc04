"""Only what was asked for: fields by their dotted path, such as `payload.answer`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from local.apps.tap.json_view import document
from local.apps.tap.view import View
from local.apps.terminal import visible
from local.bus.blobs import BlobStore
from local.protocol.envelope import Envelope

_MISSING = object()


class FieldView(View[Envelope]):
    """The values of `paths`, with tabs between them, or as one JSON object that has the paths as keys.

    A path leads from the envelope through keys and, in lists, numbers: `sender`, `payload.tool_calls.0.tool`. Messages
    that have none of the fields are skipped. Text is shown as it is, other values as JSON, everything on one line.
    """

    def __init__(self, paths: Sequence[str], *, as_json: bool = False, blobs: BlobStore | None = None) -> None:
        self._paths, self._as_json, self._blobs = paths, as_json, blobs

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        whole = document(item, self._blobs)
        found = {path: find(whole, path) for path in self._paths}
        present = {path: value for path, value in found.items() if value is not _MISSING}
        if present:
            yield json.dumps(present) if self._as_json else "\t".join(_text(value) for value in found.values())


def find(value: Any, path: str) -> Any:
    """What lies at a dotted path, or the marker for nothing."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _text(value: Any) -> str:
    if value is _MISSING:
        return ""
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

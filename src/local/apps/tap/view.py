"""How items become lines of output. Plain code; called by the printer's thread alone."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from local.apps.terminal import visible
from local.bus.blobs import BlobStore
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope, is_packed
from local.protocol.message import parse_object

T = TypeVar("T")

_MISSING = object()


class View(ABC, Generic[T]):
    """Base of all views. `now` is in seconds on the printer's monotonic clock."""

    @abstractmethod
    def lines(self, item: T, now: float) -> Iterable[str]:
        """The lines to print for an item, and for what it ends."""

    def due(self, now: float) -> Iterable[str]:
        """Lines of earlier items that have been held back long enough."""
        return ()

    def rest(self) -> Iterable[str]:
        """Lines of everything still held back: nothing more will come."""
        return ()


class PlainView(View[str]):
    """Prints text as it is."""

    def lines(self, item: str, now: float) -> Iterable[str]:
        return item.splitlines()


class JsonView(View[Envelope]):
    """One JSON object on a line: the header's fields and, with `show_payload`, the payload. Only ASCII leaves, so that
    nothing in it can control a terminal."""

    def __init__(self, *, blobs: BlobStore | None = None, show_payload: bool = True) -> None:
        self._blobs, self._show_payload = blobs, show_payload

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        yield json.dumps(_document(item, self._blobs) if self._show_payload else item.header())


class FieldView(View[Envelope]):
    """The values of `paths`, with tabs between them, or as one JSON object that has the paths as keys.

    A path leads from the envelope through keys and, in lists, numbers: `sender`, `payload.tool_calls.0.tool`. Messages
    that have none of the fields are skipped. Text is shown as it is, other values as JSON, everything on one line.
    """

    def __init__(self, paths: Sequence[str], *, as_json: bool = False, blobs: BlobStore | None = None) -> None:
        self._paths, self._as_json, self._blobs = paths, as_json, blobs

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        whole = _document(item, self._blobs)
        found = {path: _find(whole, path) for path in self._paths}
        present = {path: value for path, value in found.items() if value is not _MISSING}
        if present:
            yield json.dumps(present) if self._as_json else "\t".join(_text(value) for value in found.values())


def read_payload(payload: bytes, blobs: BlobStore | None = None) -> dict[str, Any] | str:
    """The object in a payload, with large fields fetched from `blobs`; as text if the payload is no JSON object.

    Lenient, because a tap shows what others may have got wrong: a reference to a blob that is not in the store stays
    as it is.
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


def _document(envelope: Envelope, blobs: BlobStore | None) -> dict[str, Any]:
    """An envelope as one object; a payload that is no JSON object is a string in it."""
    return {**envelope.header(), "payload": read_payload(envelope.payload, blobs)}


def _find(value: Any, path: str) -> Any:
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

"""A message on record as one line of JSON, and back: what `local2 journal export` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic_core import from_json, to_json

from local.bus.blobs import BlobStore, read_payload
from local.bus.envelope import Envelope, decode
from local.core.errors import LocalError


class BadExport(LocalError):
    """A line of an export that is not a recorded message, or a file that is not an export."""

    kind = "bad_export"


class JournalRecord(NamedTuple):
    """Entry `number`, committed at a time in seconds since 1970. A redacted one has an empty payload."""

    number: int
    committed_at: float
    redacted: bool
    envelope: Envelope

    @classmethod
    def parse(cls, line: str, place: str) -> Self:
        """A line of an export. Raises `BadExport` that names the `place` it came from."""
        try:
            value = from_json(line, allow_inf_nan=False)
            if not isinstance(value, dict):
                raise TypeError(f"found {type(value).__name__}")
            header, redacted = value["header"], bool(value["redacted"])
            # Without the payload, which may be larger than a frame.
            envelope = decode(b"%b\0%b\0" % (str(value["subject"]).encode(), to_json(header)))
            content = b"" if redacted else _as_bytes(value["payload"])
            return cls(int(value["number"]), float(value["committed_at"]), redacted, envelope._replace(payload=content))
        except KeyError as error:
            raise BadExport(f"{place}: {error} is missing; expected a line of `local2 journal export`") from None
        except (LocalError, ValueError, TypeError) as error:
            raise BadExport(f"{place}: {error}; expected a line of `local2 journal export`") from None

    def content(self, blobs: BlobStore | None) -> dict[str, Any] | str | None:
        """The payload, with large fields fetched from `blobs`."""
        return None if self.redacted else read_payload(self.envelope.payload, blobs)

    def as_json(self, blobs: BlobStore | None) -> str:
        """Return one line, ASCII only: nothing in it can control a terminal."""
        return json.dumps(
            {
                "number": self.number,
                "committed_at": self.committed_at,
                "redacted": self.redacted,
                "subject": self.envelope.subject,
                "header": self.envelope.header(),
                "payload": self.content(blobs),
            }
        )


def read_export(file: Path) -> list[JournalRecord]:
    """All of an export. Raises `BadExport` that names file and line."""
    try:
        with file.open(encoding="utf-8") as lines:
            numbered = enumerate(lines, 1)
            return [JournalRecord.parse(line, f"{file} line {number}") for number, line in numbered if line.strip()]
    except OSError as error:
        raise BadExport(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadExport(f"{file} is not text; expected lines of `local2 journal export`") from None


def _as_bytes(content: object) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, dict):
        return to_json(content)
    raise TypeError(f"payload: expected an object or a string, found {type(content).__name__}")

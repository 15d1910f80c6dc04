"""One message on its way: routing and tracing fields, and the payload as bytes.

On the wire an envelope is one frame, `subject NUL header NUL payload`; header and payload are JSON, which never
contains a raw NUL. The header is the envelope without its payload; fields that are null are left out of it.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pydantic_core import to_json

from local.errors import FrameTooLarge, MalformedFrame, UnsupportedVersion
from local.protocol.strict_json import parse_object
from local.protocol.subjects import is_subject

VERSION = 1
MAX_FRAME = 1024 * 1024
MAX_HEADER = 8 * 1024
_NONE = type(None)
_FIELD_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("id", (str,)),
    ("sender", (str,)),
    ("instance", (str,)),
    ("correlation_id", (str,)),
    ("seq", (int,)),
    ("cause_id", (str, _NONE)),
    ("in_reply_to", (str, _NONE)),
    ("session_id", (str, _NONE)),
    ("user_id", (str, _NONE)),
    ("sent_at", (float, int, _NONE)),
    ("ttl_ms", (int, _NONE)),
)


def new_id() -> str:
    """A fresh random identifier: 32 hexadecimal digits."""
    return os.urandom(16).hex()


class Trace(NamedTuple):
    """Where a message belongs: what is handed on from the envelope that caused it."""

    correlation_id: str
    cause_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None


class Envelope(NamedTuple):
    """What the tap, the journal and the bus see of a message; only its handler parses `payload`."""

    subject: str
    id: str
    sender: str
    instance: str  # fresh at each start of the sending process
    seq: int  # per sender, instance and subject, from 1
    correlation_id: str  # shared by everything one query caused
    payload: bytes
    cause_id: str | None = None  # the envelope that led to this one
    in_reply_to: str | None = None  # the request that this one answers
    session_id: str | None = None
    user_id: str | None = None
    sent_at: float = 0.0  # seconds since 1970, for display only
    ttl_ms: int | None = None  # counted from receipt
    v: int = VERSION

    def trace(self) -> Trace:
        """The trace of whatever this envelope causes."""
        return Trace(self.correlation_id, self.id, self.session_id, self.user_id)

    def header(self) -> dict[str, Any]:
        """The envelope without its payload."""
        return {
            "v": self.v, "id": self.id, "subject": self.subject, "sender": self.sender, "instance": self.instance,
            "seq": self.seq, "correlation_id": self.correlation_id, "cause_id": self.cause_id,
            "in_reply_to": self.in_reply_to, "session_id": self.session_id, "user_id": self.user_id,
            "sent_at": self.sent_at, "ttl_ms": self.ttl_ms,
        }  # fmt: skip

    def encode(self) -> bytes:
        """The frame. Raises `FrameTooLarge` above 1 MiB."""
        frame = b"%b\0%b\0%b" % (self.subject.encode(), to_json(self.header(), exclude_none=True), self.payload)
        if len(frame) > MAX_FRAME:
            raise FrameTooLarge(self.subject, len(frame), MAX_FRAME)
        return frame


def decode(frame: bytes) -> Envelope:
    """Parse a frame's subject and header. Raises `MalformedFrame` or `UnsupportedVersion`, never anything else."""
    if len(frame) > MAX_FRAME:
        raise MalformedFrame(f"frame of {len(frame)} bytes, at most {MAX_FRAME} are allowed")
    parts = frame.split(b"\0")
    if len(parts) != 3:
        raise MalformedFrame(f"expected subject, header and payload between two NULs, found {len(parts)} parts")
    subject_bytes, header_bytes, payload = parts
    if len(header_bytes) > MAX_HEADER:
        raise MalformedFrame(f"header of {len(header_bytes)} bytes, at most {MAX_HEADER} are allowed")
    header = parse_object(header_bytes, "header")
    _check_header(header)
    subject = header["subject"]
    if subject.encode("utf-8", "surrogatepass") != subject_bytes:
        raise MalformedFrame("the subject before the header is not the one in it")
    get = header.get
    return Envelope(
        subject, header["id"], header["sender"], header["instance"], header["seq"], header["correlation_id"], payload,
        get("cause_id"), get("in_reply_to"), get("session_id"), get("user_id"), get("sent_at", 0.0), get("ttl_ms"),
        header["v"],
    )  # fmt: skip


def _check_header(header: dict[str, Any]) -> None:
    version = header.get("v")
    if type(version) is not int:
        raise MalformedFrame("header: v is missing or no whole number")
    if version > VERSION:
        raise UnsupportedVersion(version, VERSION)
    subject = header.get("subject")
    if type(subject) is not str or not is_subject(subject):
        raise MalformedFrame("header: subject is missing or no subject")
    for name, allowed in _FIELD_TYPES:
        if type(header.get(name)) not in allowed:
            raise MalformedFrame(f"header: {name} is missing or of the wrong type")
    if not 1 <= header["seq"] < 2**63 or (header.get("ttl_ms") or 0) < 0:
        raise MalformedFrame("header: seq counts from 1, ttl_ms from 0")

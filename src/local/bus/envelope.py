"""The envelope of a message: routing and tracing fields, and the payload as bytes.

On the wire an envelope is one frame, `subject NUL header NUL payload`; header and payload are JSON, which never
contains a raw NUL. The header is the envelope without its payload; fields that are null are left out of it.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, NoReturn

from pydantic_core import PydanticSerializationError, SchemaValidator, ValidationError, core_schema, from_json, to_json

from local.bus.message import MAX_WHERE, has_other_keys, is_subject, parse_object
from local.core.errors import FrameTooLarge, MalformedFrame, UnsendableMessage, UnsupportedVersion

VERSION = 1
MAX_FRAME = 1024 * 1024
FIELD_LIMIT = 64 * 1024  # a larger field of a payload travels as a reference to a blob
MAX_HEADER = 8 * 1024
MAX_SESSION_ID = 512  # characters of one in a payload
MARK = "$blob"
END_OF_TIME = 253_402_300_800  # the year 10000, which no calendar of Python's knows
_TEXT = core_schema.str_schema(strict=True)
_OPTIONAL_TEXT = core_schema.typed_dict_field(
    core_schema.nullable_schema(core_schema.str_schema(strict=True)), required=False
)
_COUNT = core_schema.int_schema(strict=True, ge=0, lt=2**63)
_HEADER = SchemaValidator(
    core_schema.typed_dict_schema(
        {
            "v": core_schema.typed_dict_field(core_schema.int_schema(strict=True)),
            "id": core_schema.typed_dict_field(_TEXT),
            "subject": core_schema.typed_dict_field(_TEXT),
            "sender": core_schema.typed_dict_field(_TEXT),
            "instance": core_schema.typed_dict_field(_TEXT),
            "seq": core_schema.typed_dict_field(core_schema.int_schema(strict=True, ge=1, lt=2**63)),
            "correlation_id": core_schema.typed_dict_field(_TEXT),
            "cause_id": _OPTIONAL_TEXT,
            "in_reply_to": _OPTIONAL_TEXT,
            "session_id": _OPTIONAL_TEXT,
            "user_id": _OPTIONAL_TEXT,
            "sent_at": core_schema.typed_dict_field(
                core_schema.nullable_schema(core_schema.float_schema(strict=True, ge=0, lt=END_OF_TIME)),
                required=False,
            ),
            "ttl_ms": core_schema.typed_dict_field(core_schema.nullable_schema(_COUNT), required=False),
        },
        extra_behavior="ignore",
    )
)


def new_id() -> str:
    """A fresh random identifier: 32 hexadecimal digits."""
    return os.urandom(16).hex()


class Trace(NamedTuple):
    """The position of a message in a chain of causes: correlation, cause, session and user, passed on to the messages
    that it causes.
    """

    correlation_id: str
    cause_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None


class Envelope(NamedTuple):
    """A message with its header, as the tap, the journal and the bus see it; only its handler parses `payload`."""

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
        """Return the envelope without its payload and without null fields."""
        header: dict[str, Any] = {
            "v": self.v, "id": self.id, "subject": self.subject, "sender": self.sender, "instance": self.instance,
            "seq": self.seq, "correlation_id": self.correlation_id, "sent_at": self.sent_at,
        }  # fmt: skip
        if self.cause_id is not None:
            header["cause_id"] = self.cause_id
        if self.in_reply_to is not None:
            header["in_reply_to"] = self.in_reply_to
        if self.session_id is not None:
            header["session_id"] = self.session_id
        if self.user_id is not None:
            header["user_id"] = self.user_id
        if self.ttl_ms is not None:
            header["ttl_ms"] = self.ttl_ms
        return header

    def encode(self) -> bytes:
        """The frame. Raises `FrameTooLarge` above 1 MiB, `UnsendableMessage` for a header that none would accept."""
        try:
            header = to_json(self.header())
        except PydanticSerializationError as error:
            raise UnsendableMessage(f"{self.subject!a}: the header is not text: {error}") from None
        if len(header) > MAX_HEADER:
            raise UnsendableMessage(f"{self.subject}: header of {len(header)} bytes, at most {MAX_HEADER} are allowed")
        frame = b"%b\0%b\0%b" % (self.subject.encode(), header, self.payload)
        if len(frame) > MAX_FRAME:
            raise FrameTooLarge(self.subject, len(frame), MAX_FRAME)
        return frame


def session_of(where: Envelope | Trace, query_id: str) -> str:
    """Return the session of a query. A query that names no session is a separate session under the query's id."""
    return where.session_id or query_id


def in_session_of_payload(envelope: Envelope) -> Envelope:
    """An envelope that names no session, with the one that its payload names, if it does: as clients write it that know
    the plan's payloads and not our header."""
    if envelope.session_id is not None or b'"session_id"' not in envelope.payload:
        return envelope
    try:
        session_id = from_json(envelope.payload, allow_inf_nan=False).get("session_id")
    except (ValueError, AttributeError):
        return envelope  # the reader of the message reports the fault
    fits = len(envelope.payload) < MAX_FRAME - MAX_HEADER
    if not isinstance(session_id, str) or not 0 < len(session_id) <= MAX_SESSION_ID or not fits:
        return envelope
    return envelope._replace(session_id=session_id)


def needs_packing(payload: bytes) -> bool:
    """Whether a payload is large, or holds text that could be read as a reference."""
    return len(payload) > FIELD_LIMIT or is_packed(payload)


def is_packed(payload: bytes) -> bool:
    """Whether a payload may hold a reference."""
    return b'"$blob"' in payload


def decode(frame: bytes) -> Envelope:
    """Parse a frame's subject and header. Raises `MalformedFrame` or `UnsupportedVersion`, never anything else."""
    if len(frame) > MAX_FRAME:
        raise MalformedFrame(f"frame of {len(frame)} bytes, at most {MAX_FRAME} are allowed")
    parts = frame.split(b"\0")
    if len(parts) != 3:
        raise MalformedFrame(f"expected subject, header and payload between two NULs, found {len(parts)} parts")
    subject_bytes, header_bytes, payload = parts
    header = _parse_header(header_bytes)
    subject = header["subject"]
    if subject.encode() != subject_bytes:
        raise MalformedFrame("the subject before the header differs from the one in the header")
    if not is_subject(subject):
        raise MalformedFrame("header: subject is missing or invalid")
    get = header.get
    return Envelope(
        subject, header["id"], header["sender"], header["instance"], header["seq"], header["correlation_id"], payload,
        get("cause_id"), get("in_reply_to"), get("session_id"), get("user_id"), get("sent_at") or 0.0, get("ttl_ms"),
    )  # fmt: skip


def _parse_header(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_HEADER:
        raise MalformedFrame(f"header of {len(data)} bytes, at most {MAX_HEADER} are allowed")
    try:
        header: dict[str, Any] = _HEADER.validate_json(data)
    except ValidationError as error:
        _explain(data, error)
    if has_other_keys(data, len(header)):  # unknown ones are ignored, doubled ones refused
        parse_object(data, "header")
    if header["v"] != VERSION:
        raise UnsupportedVersion(header["v"], VERSION)
    return header


def _explain(data: bytes, error: ValidationError) -> NoReturn:
    """Return the error in a header: its JSON, its version, or one of its fields."""
    version = parse_object(data, "header").get("v")
    if type(version) is int and version != VERSION:
        raise UnsupportedVersion(version, VERSION)
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])[:MAX_WHERE]
    raise MalformedFrame(f"header: {field}: {first['msg']}")

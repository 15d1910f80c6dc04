"""Envelopes and traces: the public path."""

from __future__ import annotations

from local.bus.envelope import END_OF_TIME as END_OF_TIME
from local.bus.envelope import FIELD_LIMIT as FIELD_LIMIT
from local.bus.envelope import MARK as MARK
from local.bus.envelope import MAX_FRAME as MAX_FRAME
from local.bus.envelope import MAX_HEADER as MAX_HEADER
from local.bus.envelope import MAX_SESSION_ID as MAX_SESSION_ID
from local.bus.envelope import VERSION as VERSION
from local.bus.envelope import Envelope as Envelope
from local.bus.envelope import Trace as Trace
from local.bus.envelope import decode as decode
from local.bus.envelope import in_session_of_payload as in_session_of_payload
from local.bus.envelope import is_packed as is_packed
from local.bus.envelope import needs_packing as needs_packing
from local.bus.envelope import new_id as new_id
from local.bus.envelope import session_of as session_of

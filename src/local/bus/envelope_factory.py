"""Puts messages into envelopes: ids, numbers, and large fields moved out of the way."""

from __future__ import annotations

import time

from local.bus.blobs import BlobStore
from local.bus.sender_guard import SenderGuard
from local.errors import UndeclaredMessage, UnsendableMessage
from local.protocol.envelope import Envelope, Trace, needs_packing, new_id
from local.protocol.messages import Message
from local.protocol.subjects import is_subject
from local.secrets.secret_mask import secret_mask


class EnvelopeFactory:
    """One instance's envelopes. `last_seq` says, by subject, how many there have been."""

    def __init__(self, sender: str, instance: str, blobs: BlobStore | None, guard: SenderGuard | None = None) -> None:
        self._sender, self._instance, self._blobs, self._guard = sender, instance, blobs, guard
        self.last_seq: dict[str, int] = {}

    async def payload(self, message: Message) -> bytes:
        """A message as it travels. Raises `UnsendableMessage`, `BlobNotStored`."""
        payload = message.encode()
        if self._blobs is not None and needs_packing(payload):
            return await self._blobs.pack_aside(_masked(payload))
        return payload

    def seal(
        self,
        subject: str,
        payload: bytes,
        trace: Trace | None = None,
        *,
        in_reply_to: str | None = None,
        envelope_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> tuple[Envelope, bytes]:
        """The next envelope on a subject, and its frame. Without a trace it begins a new correlation; it has none of
        the secrets of this process.

        Raises `FrameTooLarge`, `UnsendableMessage`, `UndeclaredMessage`.
        """
        seq = self.last_seq.get(subject, 0) + 1
        if seq == 1:
            self._check(subject)
        envelope_id = envelope_id or new_id()
        correlation_id, cause_id, session_id, user_id = trace or Trace(envelope_id)
        envelope = Envelope(
            subject, envelope_id, self._sender, self._instance, seq, correlation_id, _masked(payload),
            cause_id, in_reply_to, session_id, user_id, time.time(), ttl_ms,
        )  # fmt: skip
        frame = envelope.encode()
        self.last_seq[subject] = seq  # only now: what could not be encoded must not look like a loss
        return envelope, frame

    def _check(self, subject: str) -> None:
        if not is_subject(subject):
            raise UnsendableMessage(f"{subject[:80]!a} is no subject: dotted words of a-z, A-Z, 0-9, _ and -")
        if self._guard is not None and not self._guard.may_say(self._sender, self._instance, subject):
            raise UndeclaredMessage(self._sender, subject)


def _masked(payload: bytes) -> bytes:
    return secret_mask.payload(payload) if secret_mask.names else payload

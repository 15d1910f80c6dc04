"""The message bus: envelopes, the messages that every process knows, and the ZeroMQ transport."""

from local.core.capability import Capability

CAPABILITY = Capability(
    messages=("local.bus.messages",),
)

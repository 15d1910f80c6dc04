"""What a bus says to itself through the proxy, to learn that it is heard."""

from __future__ import annotations

from local.bus.transport import Transport
from local.protocol.bus_messages import BusProbe
from local.protocol.envelope import Envelope, new_id
from local.protocol.subjects import subscription


class Probes:
    """The probes of one bus. Each `listen` takes another subject for them, so that they come back behind everything
    that was subscribed to before: the proxy takes subscriptions of a connection in their order, and may be given a
    probe, which has a connection of its own, before it has taken the last of them."""

    def __init__(self, transport: Transport, sender: str, instance: str) -> None:
        self._transport, self._sender, self._instance = transport, sender, instance
        self._times = 0

    def listen(self) -> None:
        """Hear the probes that are sent from now on, and no earlier ones."""
        earlier, self._times = self._subject, self._times + 1
        self._transport.subscribe(subscription(self._subject))
        if self._times > 1:
            self._transport.unsubscribe(subscription(earlier))

    def send(self, number: int) -> None:
        """Probes have numbers of their own: they are no messages that anybody could miss."""
        probe = BusProbe(heard_as=self._heard_as, instance=self._instance, attempt=number)
        envelope_id = new_id()
        envelope = Envelope(
            probe.routing_key, envelope_id, self._sender, self._instance, number, envelope_id, probe.encode()
        )
        self._transport.send(envelope.encode())

    @property
    def _heard_as(self) -> str:
        return f"{self._instance}.{self._times}"

    @property
    def _subject(self) -> str:
        return BusProbe.subject + self._heard_as

"""What the arbiter and those who use model servers say to each other. All of it is ephemeral: it is said again."""

from __future__ import annotations

from pydantic import Field

from local.bus.message import Data, Delivery, Message


class Lease(Data):
    """One background call of a model: it waits, or it is `running`. The id is its purpose and a random part. One that
    is `patient` waits until no conversation with its `model` goes on, where it would evict that one's prefix."""

    id: str
    running: bool = False
    model: str = ""
    patient: bool = False


class LeaseClaim(Message):
    """A process that uses a model server, at each change and twice a second while there is anything: all it wants of
    it. `turns` are users' turns under way, which wait for nobody: they are told of at once where a lease is in line,
    else if they last. `last_turns` are seconds since the last user's turn ended, by the name that the server has for
    the model, 0 for one under way. What is not among `leases` any more has ended."""

    subject = "model.lease.claim"
    delivery = Delivery.EPHEMERAL
    server: str
    turns: int = Field(0, ge=0)
    leases: tuple[Lease, ...] = ()
    last_turns: dict[str, float] = Field(default_factory=dict)


class LeaseState(Message):
    """The arbiter, after each change and twice a second while a lease is in line: the line for one model server, by
    the ids of leases. What is `revoked` has to stop, and waits again; `waiting` is in order."""

    subject = "model.lease.state"
    delivery = Delivery.EPHEMERAL
    server: str
    slots: int
    turns: int = 0
    granted: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether any lease is in line."""
        return bool(self.granted or self.revoked or self.waiting)

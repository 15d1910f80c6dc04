"""The messages between the arbiter and the processes that use model servers. All are ephemeral, because they are
repeated."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.bus.message import Data, Delivery, Message

LeaseKind = Literal["ordered", "patient", "idle", "restore"]
JUDGE_TEST, CLASSIFIER_TEST = "judge_test", "classifier_test"
IDLE = frozenset({JUDGE_TEST, CLASSIFIER_TEST})  # purposes of calls that can wait until nobody uses the system


class Lease(Data):
    """One background call of a model: it waits, or it is `running`. The id is its purpose and a random part. An
    `ordered` one waits for users' turns alone; a `patient` one until no conversation continues that it would evict from
    the server; an `idle` one for a minute without a question. A `restore` loads such a conversation again.
    """

    id: str
    running: bool = False
    model: str = ""
    kind: LeaseKind = "ordered"


class LeaseClaim(Message):
    """The claims of one process on a model server, published at each change and twice a second while there are any.
    `turns` are users' turns under way, which never wait: they are announced at once if a lease is urgent, else if they
    last. `last_turns` are the seconds since the last user's turn ended, by the server's name of the model, 0 for
    one under way. A lease that is missing from `leases` has ended.
    """

    subject = "model.lease.claim"
    delivery = Delivery.EPHEMERAL
    server: str
    turns: int = Field(0, ge=0)
    leases: tuple[Lease, ...] = ()
    last_turns: dict[str, float] = Field(default_factory=dict)


class LeaseState(Message):
    """The line for one model server, published by the arbiter after each change and twice a second while a lease is in
    line, by the ids of leases. A `revoked` lease has to stop and waits again; `waiting` is in order. `restore` is the
    model whose last conversation background calls have evicted: the process that had it loads it again.
    """

    subject = "model.lease.state"
    delivery = Delivery.EPHEMERAL
    server: str
    slots: int
    turns: int = 0
    granted: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    restore: str = ""

    @property
    def is_used(self) -> bool:
        """Whether any lease is in line."""
        return bool(self.granted or self.revoked or self.waiting)

    @property
    def is_urgent(self) -> bool:
        """Whether a turn has to be announced at once: not if all leases wait until nobody uses the system."""
        return bool(self.granted or self.revoked) or any(id.rpartition("-")[0] not in IDLE for id in self.waiting)

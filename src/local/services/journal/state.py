"""How far a journal has come: one row in it, and the same in the high-water mark beside it."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import NamedTuple, Self

from local.errors import StoreDamaged
from local.services.journal.schema import put, rows

DIGEST_BYTES = 16


class State(NamedTuple):
    """`changes` counts all that must not be lost: appends, registrations, redactions, removals.

    Numbers from `first_number` to `last_number` are there or known to be lost. `digest` runs over the checksums of all
    that was ever appended: another file with the same counts is noticed by it. With `consumers_in_doubt` damage has
    taken consumers, and whoever registers is to get everything there is.
    """

    changes: int = 0
    first_number: int = 1
    last_number: int = 0
    consumers_in_doubt: bool = False
    digest: bytes = bytes(DIGEST_BYTES)

    def changed(self) -> Self:
        """One change later."""
        return self._replace(changes=self.changes + 1)

    def appended(self, seal: bytes) -> Self:
        """One entry later, of which `seal` is the checksum."""
        digest = hashlib.blake2b(self.digest + seal, digest_size=DIGEST_BYTES).digest()
        return self._replace(changes=self.changes + 1, last_number=self.last_number + 1, digest=digest)


def read_state(db: sqlite3.Connection) -> State:
    """Raises `StoreDamaged` when the row is missing or does not match its checksum."""
    for _, changes, first_number, last_number, consumers_in_doubt, digest in rows(db, "state"):
        return State(changes, first_number, last_number, bool(consumers_in_doubt), digest)
    raise StoreDamaged("journal: the row that says how far it has come is missing")


def write_state(db: sqlite3.Connection, state: State) -> None:
    """Put `state` in the place of the one before."""
    put(
        db,
        "state",
        (1, state.changes, state.first_number, state.last_number, int(state.consumers_in_doubt), state.digest),
    )

"""The participants that were added to the settings, or removed, after the start of the system."""

from __future__ import annotations

from collections.abc import Callable

from local.bus.messages import PARTICIPANT
from local.core.capability import participants
from local.core.config import OWN_NAMES, ParticipantEntry, SystemConfig
from local.runtime.child import ChildSpec
from local.runtime.supervisor import ChildState


class ParticipantReloader:
    """The reader of the current settings for participants that users have added.

    A participant that is new, or that a user has added, starts with the current settings. LoCAL2's own participants
    restart with the settings of the system's start. `configured` reads the settings, `spec_in` makes the `ChildSpec`
    of an entry.
    """

    def __init__(
        self, configured: Callable[[], SystemConfig], spec_in: Callable[[SystemConfig, ParticipantEntry], ChildSpec]
    ) -> None:
        self._configured, self._spec_in = configured, spec_in

    def may_change(self, name: str, child: ChildState | None) -> bool:
        """Whether the current settings determine how `name` starts; `child` is its present child, if there is one."""
        return child is None or (child.kind == PARTICIPANT and name not in {*OWN_NAMES, *participants()})

    def spec(self, name: str) -> ChildSpec | None:
        """Return the spec that starts `name`; None if it is not in the settings. Raises `ConfigError`."""
        system = self._configured()
        entry = next((entry for entry in system.participants if entry.name == name), None)
        return None if entry is None else self._spec_in(system, entry)

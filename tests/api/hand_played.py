"""A participant without settings, whose answers a test gives."""

from __future__ import annotations

from local.core.config import Settings
from local.runtime.participant import Participant


class HandPlayed(Participant):
    """Has no settings."""

    def __init__(self) -> None:
        super().__init__(Settings())

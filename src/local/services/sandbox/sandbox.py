"""What contains commands on this machine."""

from __future__ import annotations

import sys
from typing import Protocol

from local.services.sandbox.bubblewrap import Bubblewrap
from local.services.sandbox.launch import ContainedCommand, Launch
from local.services.sandbox.sandbox_limits import SandboxLimits
from local.services.sandbox.sandbox_view import SandboxView
from local.services.sandbox.seatbelt import Seatbelt


class Sandbox(Protocol):
    """Makes the launch of a command that can reach what a view shows, and nothing else."""

    def launch(self, command: ContainedCommand, view: SandboxView, limits: SandboxLimits) -> Launch:
        """The launch of one command. Raises `OSError` where a file for it cannot be made."""


def sandbox_of_this_machine(platform: str = sys.platform) -> Sandbox:
    """The one there is. Raises `SandboxMissing`, which says how to get it."""
    return Seatbelt.found() if platform == "darwin" else Bubblewrap.found()

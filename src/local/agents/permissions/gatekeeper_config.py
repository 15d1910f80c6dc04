"""The settings of the gatekeeper."""

from __future__ import annotations

from pydantic import Field, field_validator

from local.agents.permissions.listed_call import ListedCall
from local.agents.permissions.permission_policy import PermissionPolicy
from local.config import Settings
from local.protocol.safety import Mode

Entry = str | dict[str, tuple[str, ...]]


class GatekeeperConfig(Settings):
    """`gatekeeper.yaml`; the comments there say what each key means."""

    mode: Mode = "default"
    may_bypass: bool = False
    denied_tools: tuple[Entry, ...] = ()
    allowed_tools: tuple[Entry, ...] = ()
    answer_seconds: float = Field(300.0, gt=0)
    grant_seconds: float = Field(120.0, gt=0)
    users_may_approve: bool = False

    @field_validator("denied_tools", "allowed_tools")
    @classmethod
    def _are_calls(cls, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        for entry in entries:
            ListedCall.of(entry)
        return entries

    def policy(self) -> PermissionPolicy:
        """The policy that these settings come to."""
        denied, allowed = (tuple(map(ListedCall.of, one)) for one in (self.denied_tools, self.allowed_tools))
        return PermissionPolicy(denied, allowed, self.mode, self.may_bypass)

"""Messages of hooks: the public path."""

from __future__ import annotations

from local.hooks.messages import HookRequest as HookRequest
from local.hooks.messages import HookResult as HookResult

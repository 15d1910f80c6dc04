"""Settings of a participant: the public path."""

from __future__ import annotations

from local.core.config import Settings as Settings
from local.core.config import SystemConfig as SystemConfig
from local.core.config import load as load

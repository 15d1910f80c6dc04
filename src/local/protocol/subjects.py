"""The subject of each message as a constant, such as `QUERY_RECEIVED`: the public path."""

from __future__ import annotations

from local.bus.message import __getattr__ as __getattr__

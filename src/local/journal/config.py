"""The settings of the journal, and the id under which this machine runs a cell."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import Field

from local.core.config import Settings
from local.core.errors import ConfigError
from local.journal.delivery import MAX_FAILURES

CELL_FILE = "cell.json"  # in a data directory that runs a cell, or did: written at each takeover


class JournalConfig(Settings):
    """The settings of `journal.yaml`; the comments there explain each key."""

    max_age_days: float = Field(365.0, gt=0)
    max_megabytes: float = Field(2048.0, gt=0)
    ack_wait_seconds: float = Field(1.0, gt=0)
    max_deliver: int = Field(3, ge=1)
    max_failures: int = Field(MAX_FAILURES, ge=1)
    log: str = ""


def missing_client(error: ImportError) -> ConfigError:
    """Return the error for a log without the client of its servers."""
    return ConfigError(
        f"journal.yaml: log: the client of NATS cannot be imported ({error}); run"
        " `pip install 'local2-assistant[nats]'`"
    )


def owner_of(data_dir: Path) -> str:
    """Return the id under which a data directory took over its cell last; empty if it never did."""
    try:
        return str(json.loads((data_dir / CELL_FILE).read_text(encoding="utf-8"))["owner"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""

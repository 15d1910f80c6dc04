"""A change of the soul that somebody proposes, until the owner has decided."""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from local.errors.base import ConfigError
from local.instructions.soul import Soul
from local.private_file import write_private

FOLDER, FILE = "soul", "proposal.json"
MOST_CHARS = 8000


@dataclass(frozen=True, slots=True)
class SoulProposal:
    """`before` is the soul that it would change, `text` what that would become; `by` says whose it is."""

    proposed_at: str  # ISO 8601, UTC
    by: str
    before: str
    text: str

    def diff(self) -> list[str]:
        """The lines that would go and come, as `diff -u` shows them."""
        lines = difflib.unified_diff(self.before.splitlines(), self.text.splitlines(), "now", "proposed", lineterm="")
        return list(lines)


class SoulProposals:
    """The one that waits; a later one takes its place. What is approved is a version of the soul like any other."""

    def __init__(self, soul: Soul, data_dir: Path) -> None:
        self._soul, self._path = soul, data_dir / FOLDER / FILE

    def propose(self, text: str, by: str) -> bool:
        """Whether there was something to propose. Raises `ConfigError`."""
        before, wanted = self._soul.text(), text.strip()[:MOST_CHARS]
        if not wanted or wanted == before:
            return False
        proposal = SoulProposal(datetime.now(UTC).isoformat(timespec="seconds"), by, before, wanted)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._path, json.dumps(asdict(proposal), ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None
        return True

    def waiting(self) -> SoulProposal | None:
        """The one that waits. Raises `ConfigError`."""
        try:
            return TypeAdapter(SoulProposal).validate_json(self._path.read_bytes(), strict=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not as it was written"
            raise ConfigError(f"{self._path} cannot be read: {why}; delete it") from None

    def approve(self) -> SoulProposal:
        """Have the soul become what is proposed. Raises `ConfigError`, also where it has changed since."""
        proposal = self._require()
        if self._soul.text() != proposal.before:
            raise ConfigError("the soul has changed since that was proposed; reject it, or write what you want of it")
        self._soul.history.begin()
        self._soul.become(proposal.text, f"proposed by {proposal.by}")
        self.reject()
        return proposal

    def reject(self) -> None:
        """Have a proposal wait no longer. Raises `ConfigError` where none does."""
        self._require()
        self._path.unlink(missing_ok=True)

    def _require(self) -> SoulProposal:
        proposal = self.waiting()
        if proposal is None:
            raise ConfigError("no change of the soul is proposed")
        return proposal

"""A change of a text that somebody proposes, until the owner has decided."""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from pydantic import TypeAdapter

from local.errors.base import ConfigError
from local.instructions.versioned_text import VersionedText
from local.private_file import write_private

FILE = "proposal.json"  # beside the versions
MOST_CHARS = 8000


@dataclass(frozen=True, slots=True)
class TextProposal:
    """`before` is the text that it would change, `text` what that would become; `by` says whose it is."""

    proposed_at: str  # ISO 8601, UTC
    by: str
    before: str
    text: str

    def diff(self) -> list[str]:
        """The lines that would go and come, as `diff -u` shows them."""
        lines = difflib.unified_diff(self.before.splitlines(), self.text.splitlines(), "now", "proposed", lineterm="")
        return list(lines)


class TextProposals:
    """The one that waits for a text; a later one takes its place. What is approved is a version like any other."""

    def __init__(self, text: VersionedText) -> None:
        self._text, self._what, self._path = text, text.history.what, text.history.folder / FILE

    def propose(self, text: str, by: str) -> bool:
        """Whether there was something to propose. Raises `ConfigError`."""
        before, wanted = self._text.text(), text.strip()[:MOST_CHARS]
        if not wanted or wanted == before:
            return False
        proposal = TextProposal(datetime.now(UTC).isoformat(timespec="seconds"), by, before, wanted)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._path, json.dumps(asdict(proposal), ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None
        return True

    def waiting(self) -> TextProposal | None:
        """The one that waits. Raises `ConfigError`."""
        try:
            return TypeAdapter(TextProposal).validate_json(self._path.read_bytes(), strict=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not as it was written"
            raise ConfigError(f"{self._path} cannot be read: {why}; delete it") from None

    def approve(self) -> TextProposal:
        """Have the text become what is proposed. Raises `ConfigError`, also where it has changed since."""
        proposal = self._require()
        if self._text.text() != proposal.before:
            raise ConfigError(f"{self._what} has changed since that was proposed; reject it, and write what you want")
        self._text.history.begin()
        self._text.become(proposal.text, f"proposed by {proposal.by}")
        self.reject()
        return proposal

    def reject(self) -> None:
        """Have a proposal wait no longer. Raises `ConfigError` where none does."""
        self._require()
        self._path.unlink(missing_ok=True)

    def _require(self) -> TextProposal:
        proposal = self.waiting()
        if proposal is None:
            raise ConfigError(f"no change of {self._what} is proposed")
        return proposal

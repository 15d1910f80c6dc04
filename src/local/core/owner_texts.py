"""The owner's texts in every prompt of the owner: the instructions and the soul."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from local.core.trust import FILE, FOLDER, TrustRegistry
from local.core.trust import FILE_NAME as TRUSTED
from local.core.versioned_text import BY_HAND, SOUL, TextHistory, read_text


class SourcedText(NamedTuple):
    """A text of the owner's, and its file."""

    origin: str
    text: str


# The owner's texts in every prompt: LOCAL2.md of the settings and of a trusted workspace, and SOUL.md. They are checked
# when a question is prepared, and read only if they have changed.

log = logging.getLogger(__name__)

_Seen = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class StandingTexts:
    """The owner's texts; `problems` has a line for each text that is left out, with the reason."""

    instructions: tuple[SourcedText, ...] = ()
    soul: SourcedText | None = None
    problems: tuple[str, ...] = ()


class StandingTextFiles:
    """`texts` are the latest ones read, `fit` decides which of them have room, `history` stores each version of the
    soul.
    """

    def __init__(
        self,
        settings: Path,
        workspace: Path,
        fit: Callable[[StandingTexts], StandingTexts] = lambda texts: texts,
        history: TextHistory | None = None,
    ) -> None:
        self._settings, self.workspace, self._fit, self._history = settings, workspace, fit, history
        self._trust = TrustRegistry(settings)
        self._watched = (settings / FILE, settings / SOUL, settings / TRUSTED, workspace / FOLDER / FILE)
        self._seen: _Seen | None = None
        self.texts = StandingTexts()

    @property
    def is_current(self) -> bool:
        """Whether the files are unchanged, by their dates and sizes."""
        return self._seen == self._now()

    def current(self) -> StandingTexts:
        """Return the present texts."""
        if not self.is_current:
            self.read()
        return self.texts

    def read(self) -> None:
        """Read the texts again, and log those that cannot be used."""
        seen = self._now()  # before: later changes are read again
        before, self.texts = self.texts, self._fit(self._read())
        self._seen = seen
        for problem in self.texts.problems:
            if problem not in before.problems:
                log.warning("%s", problem)

    def _read(self) -> StandingTexts:
        own, own_problem = read_text(self._settings / FILE)
        soul, soul_problem = read_text(self._settings / SOUL)
        told = self._trust.instructions(self.workspace)
        kept_problem = "" if soul_problem or self._history is None else self._history.noted(soul, BY_HAND)
        found = (
            SourcedText(f"{FILE} of the settings", own),
            SourcedText(f"{FILE} of the workspace", told.text.strip()),
        )
        return StandingTexts(
            tuple(text for text in found if text.text),
            SourcedText(SOUL, soul) if soul else None,
            tuple(filter(None, (own_problem, soul_problem, told.refused, kept_problem))),
        )

    def _now(self) -> _Seen:
        return tuple(map(_look, self._watched))


def _look(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

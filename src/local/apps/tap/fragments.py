"""Joins what a model says bit by bit, so that a person reads sentences instead of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from local.protocol.envelope import Envelope

HOLD_SECONDS = 1.0

Speaker = tuple[str, ...]


@dataclass(slots=True)
class Run:
    """Fragments of one speaker in a row; `first` is the envelope of the first one."""

    first: Envelope
    speaker: Speaker
    since: float
    texts: list[str] = field(default_factory=list)


class Fragments:
    """Holds one run for each query, until somebody else says something about the query or a second has passed."""

    def __init__(self) -> None:
        self._held: dict[str, Run] = {}

    def add(self, envelope: Envelope, speaker: Speaker, text: str, now: float) -> list[Run]:
        """Append a fragment. Returns the run that it ends, if it begins another."""
        held = self._held.get(envelope.correlation_id)
        ended = self.interrupt(envelope.correlation_id) if held and held.speaker != speaker else []
        self._held.setdefault(envelope.correlation_id, Run(envelope, speaker, now)).texts.append(text)
        return ended

    def interrupt(self, correlation_id: str) -> list[Run]:
        """The run that something else of the same query ends."""
        held = self._held.pop(correlation_id, None)
        return [held] if held else []

    def due(self, now: float) -> list[Run]:
        """The runs that have been held for a second, in order of their beginning."""
        ripe = [key for key, run in self._held.items() if now - run.since >= HOLD_SECONDS]
        return [self._held.pop(key) for key in ripe]

    def rest(self) -> list[Run]:
        """Every run still held."""
        runs = list(self._held.values())
        self._held.clear()
        return runs

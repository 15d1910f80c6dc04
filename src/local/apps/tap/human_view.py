"""One line for a person: time, subject, sender, correlation, and what fits of the payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from local.apps.tap.view import View, read_payload
from local.apps.terminal import clock_time, cut, visible
from local.protocol.envelope import Envelope
from local.protocol.subjects import GENERATION_THINKING, GENERATION_TOKEN

HOLD_SECONDS = 1.0

FRAGMENTS = {GENERATION_THINKING, GENERATION_TOKEN}
# Values that almost every message has; a preview has room for the others only.
_USUAL = {"respondent_id": "A", "attempt": 1, "prompt": "default", "incognito": False, "self_judged": False}

Speaker = tuple[str, ...]


@dataclass(slots=True)
class FragmentRun:
    """Fragments of one speaker in a row; `first` is the envelope of the first one."""

    first: Envelope
    speaker: Speaker
    since: float
    texts: list[str] = field(default_factory=list)


class Fragments:
    """Holds one run for each query, until somebody else says something about the query or a second has passed."""

    def __init__(self) -> None:
        self._held: dict[str, FragmentRun] = {}

    def add(self, envelope: Envelope, speaker: Speaker, text: str, now: float) -> list[FragmentRun]:
        """Append a fragment. Returns the run that it ends, if it begins another."""
        held = self._held.get(envelope.correlation_id)
        ended = self.interrupt(envelope.correlation_id) if held and held.speaker != speaker else []
        self._held.setdefault(envelope.correlation_id, FragmentRun(envelope, speaker, now)).texts.append(text)
        return ended

    def interrupt(self, correlation_id: str) -> list[FragmentRun]:
        """The run that something else of the same query ends."""
        held = self._held.pop(correlation_id, None)
        return [held] if held else []

    def due(self, now: float) -> list[FragmentRun]:
        """The runs that have been held for a second, in order of their beginning."""
        ripe = [key for key, run in self._held.items() if now - run.since >= HOLD_SECONDS]
        return [self._held.pop(key) for key in ripe]

    def rest(self) -> list[FragmentRun]:
        """Every run still held."""
        runs = list(self._held.values())
        self._held.clear()
        return runs


class HumanView(View[Envelope]):
    """`width()` gives the columns of the terminal, None where nothing is to be cut. With `fold`, consecutive fragments
    of thinking and answer are joined into one line; without `show_payload`, there is no preview."""

    def __init__(self, *, width: Callable[[], int | None], show_payload: bool = True, fold: bool = True) -> None:
        self._width = width
        self._show_payload = show_payload
        self._fold = fold and show_payload
        self._fragments = Fragments()

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        value = read_payload(item.payload) if self._show_payload else {}
        if self._fold and item.subject in FRAGMENTS and isinstance(value, dict):
            speaker = (item.subject, item.instance, str(value.get("respondent_id")), str(value.get("attempt")))
            yield from self._runs(self._fragments.add(item, speaker, str(value.get("text", "")), now))
        else:
            yield from self._runs(self._fragments.interrupt(item.correlation_id))
            yield self._line(item, preview(value, item.correlation_id))

    def due(self, now: float) -> Iterable[str]:
        return self._runs(self._fragments.due(now))

    def rest(self) -> Iterable[str]:
        return self._runs(self._fragments.rest())

    def _runs(self, runs: Iterable[FragmentRun]) -> Iterator[str]:
        for run in runs:
            yield self._line(run.first, f"{len(run.texts)}× {_json(''.join(run.texts))}")

    def _line(self, envelope: Envelope, shown: str) -> str:
        head = f"{clock_time(envelope.sent_at)} {envelope.subject:<24} {envelope.sender:<12}"
        return cut(visible(f"{head} {envelope.correlation_id[:8]:<8} {shown}").rstrip(), self._width())


def preview(value: dict[str, Any] | str, correlation_id: str) -> str:
    """A payload as `key=value` pairs, without those that are empty, usual, or in the line already."""
    if isinstance(value, str):
        return value
    usual = {**_USUAL, "query_id": correlation_id}
    return " ".join(
        f"{key}={_json(item)}"
        for key, item in value.items()
        if item not in (None, "", [], {}) and usual.get(key) != item
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

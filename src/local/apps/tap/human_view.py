"""One line for a person: time, subject, sender, correlation, and what fits of the payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from local.apps.tap import payload
from local.apps.tap.fragments import Fragments, Run
from local.apps.tap.view import View
from local.apps.terminal import clock_time, cut, visible
from local.protocol.envelope import Envelope
from local.protocol.subjects import GENERATION_THINKING, GENERATION_TOKEN

FRAGMENTS = {GENERATION_THINKING, GENERATION_TOKEN}
# Values that almost every message has; a preview has room for the others only.
_USUAL = {"respondent_id": "A", "attempt": 1, "prompt": "default", "incognito": False, "self_judged": False}


class HumanView(View[Envelope]):
    """`width()` gives the columns of the terminal, None where nothing is to be cut. With `fold`, consecutive fragments
    of thinking and answer are joined into one line; without `show_payload`, there is no preview."""

    def __init__(self, *, width: Callable[[], int | None], show_payload: bool = True, fold: bool = True) -> None:
        self._width = width
        self._show_payload = show_payload
        self._fold = fold and show_payload
        self._fragments = Fragments()

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        value = payload.read(item.payload) if self._show_payload else {}
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

    def _runs(self, runs: Iterable[Run]) -> Iterator[str]:
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

"""Plays one story: asks its questions in order and checks what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import httpx

from local.apps.story import Story
from local.apps.story_checks import Check, check_answer, check_bus
from local.apps.system_client import NoAnswer
from local.protocol.envelope import new_id

WAIT_SECONDS = 30.0

Json = dict[str, Any]


class Client(Protocol):
    """What the player needs of a system; `SystemClient` has it."""

    def ask(self, query: str, session_id: str) -> Json:
        """The whole answer. Raises `NoAnswer`."""

    def follow(self, subjects: Sequence[str], seconds: float) -> AbstractContextManager[Iterator[Json]]:
        """The envelopes on these subjects, for `seconds` from when the first is asked for."""


class Player:
    """Plays stories on one system. `stand_in_url` is the stand-in that gets their scripts; None: nobody does."""

    def __init__(self, client: Client, stand_in_url: str | None, *, own_web: bool) -> None:
        self._client, self._stand_in_url, self._own_web = client, stand_in_url, own_web

    def play(self, story: Story, script: Path | None = None) -> Iterator[Check]:
        """One check after the other, as they are made; an unanswered question ends the story."""
        self._hand_out(script)
        following = self._client.follow(story.wait_for, WAIT_SECONDS) if story.wait_for else nullcontext(iter(()))
        with following as envelopes:
            answers: list[Json] = []
            try:
                for checks in self._ask_all(story, answers):
                    yield from checks
            except NoAnswer as error:
                yield Check(False, f"turn {len(answers) + 1}: the query is answered", str(error))
                return
            late = _wait(story.wait_for, envelopes, {answer["query_id"] for answer in answers})
        yield from (Check(subject in late, f"{subject} comes", ", ".join(late)) for subject in story.wait_for)
        subjects = [line["subject"] for answer in answers for line in answer["event_log"]]
        yield from check_bus(story.bus, [*subjects, *late])

    def _ask_all(self, story: Story, answers: list[Json]) -> Iterator[list[Check]]:
        session_id = new_id()
        for number, turn in enumerate(story.turns, start=1):
            if turn.new_session:
                session_id = new_id()
            answers.append(self._client.ask(turn.query, session_id))
            checks = check_answer(turn.expect, answers[-1], own_web=self._own_web)
            yield [replace(check, what=f"turn {number}: {check.what}") for check in checks]

    def _hand_out(self, script: Path | None) -> None:
        """Give the stand-in this story's script in place of the last one's."""
        if self._stand_in_url is None:
            return
        url = f"{self._stand_in_url}/stand_in/script"
        try:
            httpx.delete(url, trust_env=False).raise_for_status()
            if script is not None:
                httpx.post(url, content=script.read_bytes(), trust_env=False).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise NoAnswer("refused", f"{script}: the stand-in refused it: {error.response.text}") from None
        except httpx.HTTPError as error:
            raise NoAnswer("unreachable", f"no answer from the stand-in at {self._stand_in_url}: {error}") from None


def _wait(subjects: Sequence[str], envelopes: Iterator[Json], query_ids: set[str]) -> list[str]:
    """Those of `subjects` that came for one of the queries, in the order in which they came."""
    seen: list[str] = []
    while len(seen) < len(subjects) and (envelope := next(envelopes, None)) is not None:
        if envelope.get("correlation_id") in query_ids and envelope["subject"] not in seen:
            seen.append(envelope["subject"])
    return seen

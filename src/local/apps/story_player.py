"""Plays one story: asks its questions in order and checks what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from local.apps.approval_script import ApprovalScript
from local.apps.console.followed_query import FollowedQuery
from local.apps.local_web import LocalWeb
from local.apps.story import Awaited, FilesExpect, Remembered, Story, StoryTurn
from local.apps.story_checks import (
    Check,
    check_answer,
    check_bus,
    check_came,
    check_files,
    check_memory,
    check_not_opened,
    says,
)
from local.apps.story_commands import StoryCommands
from local.apps.story_deaths import StoryDeaths
from local.apps.system_client import SystemClient
from local.errors import NoAnswer
from local.protocol.envelope import new_id
from local.protocol.messages import GenerationThinking
from local.protocol.skill_messages import SkillsChanged
from local.trust.trust_registry import TrustRegistry
from local.trust.workspace_instructions import FILE, FOLDER

WAIT_SECONDS = 30.0
REAL_MODEL_WAIT_SECONDS = 600.0  # for a second answer and its judgement, where one model does all of it

Json = dict[str, Any]


@dataclass(slots=True)
class _Course:
    """How a story has gone so far: the answers, and the envelopes that came after them."""

    answers: list[Json] = field(default_factory=list)
    late: list[Json] = field(default_factory=list)
    session_id: str = field(default_factory=new_id)

    @property
    def subjects(self) -> list[str]:
        """Everything on the bus, in the order in which it was seen."""
        logged = [line["subject"] for answer in self.answers for line in answer["event_log"]]
        return [*logged, *(envelope["subject"] for envelope in self.late)]


class StoryPlayer:
    """Plays stories on one system. `stand_in_url` is the stand-in that gets their scripts; None: nobody does. `web`
    is the one that is searched, if it is ours; commands are given on `data_dir`, without which none are. What a story
    waits for has `wait_seconds` to come. Thinking is expected only of a model that `thinks`."""

    def __init__(
        self,
        client: SystemClient,
        stand_in_url: str | None,
        *,
        web: LocalWeb | None = None,
        data_dir: Path | None = None,
        wait_seconds: float = WAIT_SECONDS,
        thinks: bool = True,
    ) -> None:
        self._client, self._stand_in_url, self._web = client, stand_in_url, web
        self._wait_seconds, self._thinks = wait_seconds, thinks
        self._commands = StoryCommands(client, data_dir, wait_seconds) if data_dir else None

    def play(self, story: Story, script: Path | None = None) -> Iterator[Check]:
        """One check after the other, as they are made; a question that gets no answer ends the story."""
        story = story if self._thinks else without_thinking(story)
        self._prepare_stand_in(script, is_obedient=story.obedient_stand_in)
        course = _Course()
        with self._following(story.wait_for) as envelopes, self._following(story.jobs) as of_jobs:
            try:
                for number, turn in enumerate(story.turns, start=1):
                    for check in self._take_turn(turn, course):
                        yield replace(check, what=f"turn {number}: {check.what}")
            except NoAnswer as error:
                yield Check(False, f"turn {len(course.answers) + 1}: the query is answered", str(error))
                return
            yield from _wait(story.wait_for, envelopes, course, of=course.answers)
            yield from _wait_for_jobs(story.jobs, of_jobs)
        yield from check_bus(story.bus, course.subjects)
        yield from map(self._look_up, story.memory)
        if self._web is not None:
            yield from check_not_opened(story.not_opened, self._web.opened)

    def _take_turn(self, turn: StoryTurn, course: _Course) -> Iterator[Check]:
        if turn.new_session:
            course.session_id = new_id()
        yield from self._drop_skills(turn.skills)
        self._instruct(turn)
        with self._following(turn.wait_for) as envelopes:
            script, deaths = (
                ApprovalScript(turn.approvals or ()),
                StoryDeaths(self._client, turn.kills, self._wait_seconds),
            )
            with deaths.happening():
                answer = self._ask(turn, course.session_id, script)
            course.answers.append(answer)
            yield from (*deaths.checks, *script.checks, *script.missing())
            yield from check_answer(turn.expect, answer, own_web=self._web is not None)
            yield from _wait(turn.wait_for, envelopes, course, of=[answer])
        if turn.feedback is not None:
            yield self._rate(answer["query_id"], turn.feedback)
        if turn.undo:
            yield self._undo(answer["query_id"])
        if turn.files != FilesExpect():
            yield from self._look_at_files(turn.files)
        if self._commands is not None:
            for command in turn.commands:
                yield from self._commands.give(command)

    def _ask(self, turn: StoryTurn, session_id: str, script: ApprovalScript) -> Json:
        """The whole answer; followed where something may ask, as somebody has to be there then."""
        if turn.approvals is None:
            return self._client.ask(turn.query, session_id)
        body = {"query": turn.query, "session_id": session_id, "query_id": new_id()}
        body |= {"mode": turn.mode} if turn.mode else {}
        for event in FollowedQuery(lambda: self._client, body):
            if event.name == "approval" and (decision := script.decision(event.data)) is not None:
                self._client.request("POST", f"/approvals/{quote(event.data['call_id'], safe='')}", decision)
        return self._client.request("GET", f"/query/{body['query_id']}")

    def _drop_skills(self, skills: Mapping[str, str]) -> Iterator[Check]:
        """Put them where the system's own skills lie, and wait until it has noticed."""
        if not skills:
            return
        place = Path(self._client.request("GET", "/skills")["places"][0])
        with self._client.follow([SkillsChanged.subject], self._wait_seconds) as envelopes:
            for name, text in skills.items():
                (place / name).mkdir(parents=True)
                (place / name / "SKILL.md").write_text(text, encoding="utf-8")
            ready = (set(envelope["payload"]["ready"]) for envelope in envelopes)
            noticed = any(names >= skills.keys() for names in ready)
        yield Check(noticed, f"{', '.join(skills)} is noticed", "ready" if noticed else "nobody has said so")

    def _instruct(self, turn: StoryTurn) -> None:
        """Have the workspace instruct, and its owner trust it as it is then, or no more."""
        if turn.instructs is None and turn.trusts is None:
            return
        workspace = self._workspace()
        if turn.instructs is not None:
            (workspace / FOLDER).mkdir(exist_ok=True)
            (workspace / FOLDER / FILE).write_text(turn.instructs, encoding="utf-8")
        registry = TrustRegistry(Path(self._client.request("GET", "/settings/system")["file"]).parent)
        if turn.trusts is not None:
            (registry.trust if turn.trusts else registry.distrust)(workspace)

    def _workspace(self) -> Path:
        return Path(self._client.request("GET", "/changes?limit=1")["workspace"])

    def _undo(self, query_id: str) -> Check:
        what = "what it has changed is undone"
        try:
            undone = self._client.request("POST", "/changes/undo", {"query_id": query_id})["undone"]
        except NoAnswer as error:
            return Check(False, what, str(error))
        return Check(bool(undone), what, ", ".join(dict.fromkeys(change["path"] for change in undone)) or "nothing is")

    def _look_at_files(self, expect: FilesExpect) -> list[Check]:
        try:
            return check_files(expect, self._workspace())
        except NoAnswer as error:
            return [Check(False, "the workspace can be looked at", str(error))]

    def _rate(self, query_id: str, rating: int) -> Check:
        what = f"the rating {rating:+d} is taken"
        try:
            self._client.rate(query_id, rating)
        except NoAnswer as error:
            return Check(False, what, str(error))
        return Check(True, what, "taken")

    def _look_up(self, remembered: Remembered) -> Check:
        try:
            return check_memory(remembered, self._client.recall(remembered.query))
        except NoAnswer as error:
            return Check(False, f"the memory finds “{remembered.query}”", str(error))

    def _following(self, awaited: Sequence[Awaited]) -> AbstractContextManager[Iterator[Json]]:
        subjects = list(dict.fromkeys(one.subject for one in awaited))
        return self._client.follow(subjects, self._wait_seconds) if subjects else nullcontext(iter(()))

    def _prepare_stand_in(self, script: Path | None, *, is_obedient: bool) -> None:
        """Give the stand-in this story's script in place of the last one's, and have it obey, or not."""
        if self._stand_in_url is None:
            return
        url = f"{self._stand_in_url}/stand_in/script"
        try:
            method = "POST" if is_obedient else "DELETE"
            httpx.request(method, f"{self._stand_in_url}/stand_in/obedience", trust_env=False).raise_for_status()
            httpx.delete(url, trust_env=False).raise_for_status()
            if script is not None:
                httpx.post(url, content=script.read_bytes(), trust_env=False).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise NoAnswer("refused", f"{script}: the stand-in refused it: {error.response.text}") from None
        except httpx.HTTPError as error:
            raise NoAnswer("unreachable", f"no answer from the stand-in at {self._stand_in_url}: {error}") from None


def without_thinking(story: Story) -> Story:
    """A copy of a story that does not expect thinking to be shown."""
    turns = []
    for turn in story.turns:
        expect = turn.expect.model_copy(update={"thinking": None}) if turn.expect.thinking else turn.expect
        turns.append(turn.model_copy(update={"expect": expect}))
    bus = {
        name: tuple(subject for subject in getattr(story.bus, name) if subject != GenerationThinking.subject)
        for name in ("present", "in_order")
    }
    return story.model_copy(update={"turns": tuple(turns), "bus": story.bus.model_copy(update=bus)})


def _wait(awaited: Sequence[Awaited], envelopes: Iterator[Json], course: _Course, *, of: Sequence[Json]) -> list[Check]:
    """Take the envelopes that these answers' queries cause until everything awaited has come, or nothing comes any
    more."""
    query_ids = {answer["query_id"] for answer in of}
    came: list[Json] = []
    open_ones = list(awaited)
    while open_ones and (envelope := next(envelopes, None)) is not None:
        if envelope.get("correlation_id") in query_ids:
            came.append(envelope)
            open_ones = [one for one in open_ones if not _is(one, envelope)]
    course.late += came
    return check_came(awaited, came)


def _wait_for_jobs(awaited: Sequence[Awaited], envelopes: Iterator[Json]) -> Iterator[Check]:
    """Take the envelopes that come of a job, which asks queries of its own."""
    came: list[Json] = []
    open_ones = list(awaited)
    while open_ones and (envelope := next(envelopes, None)) is not None:
        if any(_is(one, envelope) for one in awaited):
            came.append(envelope)
            open_ones = [one for one in open_ones if not _is(one, envelope)]
    yield from check_came(awaited, came)
    if awaited:
        queries = {envelope.get("correlation_id") for envelope in came}
        yield Check(len(queries) == 1, "the job is done once", f"{len(queries)} queries")


def _is(awaited: Awaited, envelope: Json) -> bool:
    return awaited.subject == envelope["subject"] and says(awaited, envelope["payload"])

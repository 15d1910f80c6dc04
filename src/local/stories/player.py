"""Plays one story: asks its questions in order and checks what comes back."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

import httpx

from local.bus.envelope import new_id
from local.bus.messages import GenerationThinking
from local.cli.client import SystemClient
from local.cli.conversation import FollowedQuery
from local.cli.temporary_system import START_SECONDS, TemporarySystem, write_settings
from local.core import config
from local.core.config import Settings
from local.core.data_dir import NotRunning, RunDirectory, RunInfo, owner_token
from local.core.environment import data_dir, settings_dir
from local.core.errors import ConfigError, NoAnswer
from local.core.mcp_servers import FILE_NAME, SERVERS, approved_file, load_mcp_servers
from local.core.shipped import shipped_dir
from local.core.trust import FILE, FOLDER, TrustRegistry
from local.skills.messages import SkillsChanged
from local.stories.commands import REAL_MODEL_SECONDS, StoryCommands
from local.stories.settings import model_settings, thinks
from local.stories.story import (
    Approval,
    Awaited,
    Check,
    FilesExpect,
    Remembered,
    Saying,
    Story,
    StoryTurn,
    call_line,
    check_answer,
    check_bus,
    check_came,
    check_card,
    check_files,
    check_memory,
    check_not_opened,
    find_stories,
    load_story,
    matches,
)

# The decisions about calls that need approval while one question of a story is answered.

Json = dict[str, Any]
FRONTEND = "story"  # which decides, as approvals name it


class ApprovalScript:
    """The decisions of a story about calls that need approval. Call `decision` for each request; `checks` are those of
    the cards, `missing` the expected requests that have not come.
    """

    def __init__(self, approvals: Sequence[Approval]) -> None:
        self._open = list(approvals)
        self._decided: set[str] = set()
        self.checks: list[Check] = []

    def decision(self, asked: Mapping[str, Any]) -> Json | None:
        """The body that decides it, by an `approval.request`; a denial if the story does not expect it, None if it is
        already decided.
        """
        if asked["call_id"] in self._decided:
            return None
        self._decided.add(asked["call_id"])
        approval = next((each for each in self._open if _is_about(each, asked)), None)
        if approval is None:
            self.checks.append(Check(False, "only what the story foresees needs approval", call_line(asked)))
            return {"decision": "deny", "by": FRONTEND}
        if not approval.often:
            self._open.remove(approval)
        self.checks.append(check_card(approval, asked))
        answer = {} if approval.answer is None else {"answer": approval.answer}
        return {"decision": approval.decision, **answer, "by": FRONTEND}

    def missing(self) -> list[Check]:
        """A failure for each question that has not come and had to."""
        return [
            Check(False, f"{each.tool} needs approval", "it was not requested") for each in self._open if not each.often
        ]


def _is_about(approval: Approval, asked: Mapping[str, Any]) -> bool:
    args = Saying(one_of=(approval.args,) if approval.args else ())
    return approval.tool == asked["tool"] and matches(args, asked["args"])


# A small web on this machine for the stories: a search engine that answers as SearXNG does, and the pages it finds.


class LocalPage(Settings):
    """A page of the local web: its path, its search snippet, and its text."""

    path: str
    title: str
    snippet: str
    paragraphs: tuple[str, ...]  # {web} is where the page is from

    def html(self) -> str:
        """The page as a browser would get it."""
        title = html.escape(self.title)
        text = "\n".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in self.paragraphs)
        return (
            f"<!doctype html><html lang=en><head><title>{title}</title></head>"
            f"<body><article><h1>{title}</h1>\n{text}\n</article></body></html>"
        )


class LocalPages(Settings):
    """All pages of the local web, from `pages.yaml`."""

    pages: tuple[LocalPage, ...]


def load_pages(folder: Path) -> tuple[LocalPage, ...]:
    """Read `pages.yaml` in a folder. Raises `ConfigError`."""
    return config.load("pages", LocalPages, [folder]).pages


def search(pages: Sequence[LocalPage], query: str) -> list[LocalPage]:
    """The pages that share words with the query, those with the most of them first."""
    asked = _words(query)
    shared = [(len(asked & _words(f"{page.title} {page.snippet}")), page) for page in pages]
    return [page for count, page in sorted(shared, key=lambda pair: -pair[0]) if count]


class LocalWeb:
    """A web server with the pages, on a free port of 127.0.0.1 within its `with` block."""

    def __init__(self, pages: Sequence[LocalPage]) -> None:
        self.opened: list[str] = []  # paths with their queries, whether there was something or not
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pages, self.opened))
        self._thread = threading.Thread(target=self._server.serve_forever, name="local web", daemon=True)

    @property
    def host(self) -> str:
        """Host and port, as `allow_hosts` takes them."""
        return f"127.0.0.1:{self._server.server_port}"

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings that make the web tools use only this web, by file name."""
        return {
            "web_search": {"provider": "searxng", "searxng_url": f"http://{self.host}"},
            "web_fetch": {"allow_hosts": [self.host]},
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(pages: Sequence[LocalPage], opened: list[str]) -> type[BaseHTTPRequestHandler]:
    by_path = {page.path: page for page in pages}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            opened.append(self.path)
            asked = urlsplit(self.path)
            if asked.path == "/search":
                query = parse_qs(asked.query).get("q", [""])[0]
                self._send("application/json", json.dumps(_found(search(pages, query), query, self.headers["Host"])))
            elif page := by_path.get(asked.path):
                self._send("text/html", page.html().replace("{web}", f"http://{self.headers['Host']}"))
            else:
                self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            """Discard the server's log."""

        def _send(self, media_type: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{media_type}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _found(pages: Sequence[LocalPage], query: str, host: str) -> dict[str, Any]:
    """SearXNG's answer: https://docs.searxng.org/dev/search_api.html"""
    results = [
        {"url": f"http://{host}{page.path}", "title": page.title, "content": page.snippet, "engine": "local"}
        for page in pages
    ]
    return {"query": query, "number_of_results": len(results), "results": results, "unresponsive_engines": []}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}|ai", text.lower()))


# The participants killed while a question of a story is answered: by `kill -9`, as soon as a message has come.


class StoryDeaths:
    """The participants that a story kills: `kills` has, by name, the message on which the process is killed; the
    message has `seconds` to come.
    """

    def __init__(self, client: SystemClient, kills: Mapping[str, Awaited], seconds: float) -> None:
        self._client, self._kills, self._seconds = client, kills, seconds
        self.checks: list[Check] = []

    @contextmanager
    def happening(self) -> Iterator[None]:
        """Listen while the block runs; afterwards `checks` report which participants were killed."""
        if not self._kills:
            yield
            return
        subjects = list(dict.fromkeys(each.subject for each in self._kills.values()))
        with self._client.follow(subjects, self._seconds) as envelopes, ThreadPoolExecutor(1) as thread:
            killing = thread.submit(self._kill, envelopes)
            yield
            self.checks = killing.result()

    def _kill(self, envelopes: Iterator[Json]) -> list[Check]:
        alive, checks = dict(self._kills), list[Check]()
        while alive and (envelope := next(envelopes, None)) is not None:
            for name, when in list(alive.items()):
                if when.subject == envelope["subject"] and matches(when, envelope["payload"]):
                    checks.append(self._kill_now(name))
                    del alive[name]
        return [*checks, *(Check(False, f"{name} is killed", "it has not come to that") for name in alive)]

    def _kill_now(self, name: str) -> Check:
        rows = self._client.request("GET", "/participants")["participants"]
        pids = [row["pid"] for row in rows if row["name"] == name and row.get("pid")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return Check(bool(pids), f"{name} is killed", ", ".join(map(str, pids)) or "it does not run")


WAIT_SECONDS = 30.0
CANCELLED_SECONDS = 30.0  # for the end of a cancelled answer


@dataclass(slots=True)
class _Course:
    """The progress of a story: the answers, and the envelopes that came after them."""

    answers: list[Json] = field(default_factory=list)
    late: list[Json] = field(default_factory=list)
    session_id: str = field(default_factory=new_id)

    @property
    def subjects(self) -> list[str]:
        """Everything on the bus, in the order in which it was seen."""
        logged = [line["subject"] for answer in self.answers for line in answer["event_log"]]
        return [*logged, *(envelope["subject"] for envelope in self.late)]


class StoryPlayer:
    """A player of stories on one system. `stand_in_url` is the stand-in that receives their scripts, if any. `web` is
    the searched local web, if there is one; commands run on `data_dir`, if it is given. Awaited messages have
    `wait_seconds` to come, and answers `answer_seconds`: later ones are cancelled. Thinking is expected only of a
    model that `thinks`.
    """

    def __init__(
        self,
        client: SystemClient,
        stand_in_url: str | None,
        *,
        web: LocalWeb | None = None,
        data_dir: Path | None = None,
        wait_seconds: float = WAIT_SECONDS,
        answer_seconds: float = REAL_MODEL_SECONDS,
        thinks: bool = True,
    ) -> None:
        self._answer_seconds = answer_seconds
        self._client, self._stand_in_url, self._web = client, stand_in_url, web
        self._wait_seconds, self._thinks = wait_seconds, thinks
        self._commands = StoryCommands(client, data_dir, wait_seconds) if data_dir else None

    def play(self, story: Story, script: Path | None = None) -> Iterator[Check]:
        """Yield the checks as they are made; a question without an answer ends the story."""
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
                yield from self._commands.check(command)

    def _ask(self, turn: StoryTurn, session_id: str, script: ApprovalScript) -> Json:
        """Return the whole answer; the query is followed if an approval may be requested, because a client must be
        connected then.
        """
        body = {"query": turn.query, "session_id": session_id, "query_id": new_id()}
        body |= {"mode": turn.mode} if turn.mode else {}
        late = threading.Timer(self._answer_seconds, self._cancel, [body["query_id"]])
        late.start()
        try:
            if turn.approvals is None:
                return self._client.ask(turn.query, session_id, body["query_id"])
            for event in FollowedQuery(lambda: self._client, body):
                if event.name == "approval" and (decision := script.decision(event.data)) is not None:
                    self._client.request("POST", f"/approvals/{quote(event.data['call_id'], safe='')}", decision)
            return self._client.request("GET", f"/query/{body['query_id']}")
        finally:
            late.cancel()

    def _cancel(self, query_id: str) -> None:
        with suppress(NoAnswer):  # it has ended meanwhile
            self._client.request("POST", f"/query/{query_id}/cancel")

    def _drop_skills(self, skills: Mapping[str, str]) -> Iterator[Check]:
        """Put the skills into the system's skills folder, and wait until it has noticed."""
        if not skills:
            return
        place = Path(self._client.request("GET", "/skills")["places"][0])
        with self._client.follow([SkillsChanged.subject], self._wait_seconds) as envelopes:
            for name, text in skills.items():
                (place / name).mkdir(parents=True)
                (place / name / "SKILL.md").write_text(text, encoding="utf-8")
            ready = (set(envelope["payload"]["ready"]) for envelope in envelopes)
            noticed = any(names >= skills.keys() for names in ready)
        yield Check(noticed, f"{', '.join(skills)} is noticed", "ready" if noticed else "it was not reported")

    def _instruct(self, turn: StoryTurn) -> None:
        """Write the workspace's instructions, and set or withdraw its owner's trust in it."""
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
            raise NoAnswer("unreachable", f"the stand-in at {self._stand_in_url} does not answer: {error}") from None


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
    """Take the envelopes caused by a job, which asks queries of its own."""
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
    return awaited.subject == envelope["subject"] and matches(awaited, envelope["payload"])


# MCP servers of stories: Python programs beside them, which are approved automatically.


def bring_along(programs: Mapping[str, Path], config_dir: Path, data_dir: Path) -> None:
    """Write `mcp.json` into a folder of settings, with servers by name, and approve the tools that each has. Raises
    `ConfigError`, and `ToolError` for one that cannot be used."""
    entries = {
        name: {
            "command": sys.executable,
            "args": [str(program)],
            "readable": [sys.prefix, sys.base_prefix, str(program.parent)],
        }
        for name, program in programs.items()
    }
    (config_dir / FILE_NAME).write_text(json.dumps({SERVERS: entries}), encoding="utf-8")
    from local.mcp.client import approvable, write_approved  # an optional capability, as the shell below
    from local.mcp.commands import list_tools
    from local.mcp.tools import connect

    for name, server in load_mcp_servers(config_dir).items():
        tools, _ = approvable(name, asyncio.run(list_tools(connect(name, server, data_dir, [config_dir]))))
        write_approved(approved_file(data_dir, name), tools)


# Plays the acceptance stories against a running system and reports for each expectation whether it was met.

REAL_MODEL_START_SECONDS = 660.0  # a little more than llama-server's own limit (`start_seconds` in models.yaml)
STORIES = shipped_dir() / "stories"


@dataclass(frozen=True, slots=True)
class _Stage:
    """The environment in which stories are played: the system's HTTP address, the owner's token, the stand-in's
    address if it plays scripts, the local web if there is one, whether the model thinks, and the data directory of a
    system that was started.
    """

    api_url: str
    token: str | None
    stand_in_url: str | None
    web: LocalWeb | None
    thinks: bool = True
    data_dir: Path | None = None


def run_stories(
    names: Sequence[str],
    *,
    api: str | None = None,
    live: bool = False,
    own_web: bool = False,
    model: str | None = None,
    seconds: float = REAL_MODEL_SECONDS,
    show: Callable[[str], object],
) -> int:
    """Play stories ("S1" or paths; without names: all) and `show` one line for each check. Returns the exit status: 0
    if all passed, 1 if not.

    Without `api`, the address of a running system, one is started on separate data for all stories with the same
    requirements, and its stand-in plays the stories' scripts. `live` uses the user's model and the real web, or with
    `own_web` that of the stories; it has `seconds` for each answer. Raises `LocalError` if the stories cannot be
    played.
    """
    if own_web and (api or not live):
        raise ConfigError("--own-web goes with --live, without --api: only then is there another web to use")
    if api and model:
        raise ConfigError("--model is for a system that is started for the stories; the one at --api has its model")
    stories = list[tuple[Path, Story]]()
    for path in find_stories(list(names), STORIES):
        story = load_story(path)
        if why := _hindrance(story, api, live=live):
            show(f"{story.id}: left out: {why}")
        else:
            stories.append((path, story))
    passed: list[bool] = []
    for kind in dict.fromkeys(story.stage for _, story in stories):
        alike = [(path, story) for path, story in stories if story.stage == kind]
        with _stage(api, live, own_web, model, alike) as stage:
            passed += _play_all(alike, stage, live, seconds, show)
    show(f"{sum(passed)} of {len(passed)} stories passed")
    return 0 if all(passed) else 1


def _hindrance(story: Story, api: str | None, *, live: bool) -> str:
    """Why a story cannot be played; empty if it can."""
    if api and story.flags:
        return f"it is for a system that was started with {' '.join(story.flags)}"
    if api and story.more_participants:
        return f"it is for a system with more_participants: {', '.join(story.more_participants)}"
    if (api or live) and story.changes_settings:
        return "it is for a system that is started for it, with settings of its own to be changed, not yours"
    if api and story.has_deaths:
        return "it kills participants of its system, which it is started for"
    if api and "own_web" in story.needs:
        return "it is for a system that is started for it, with a web of its own"
    if api and story.mcp_servers:
        return f"it is for a system with MCP servers that it brings along: {', '.join(story.mcp_servers)}"
    if "sandbox" not in story.needs:
        return ""
    from local.shell.shell import sandbox_problem

    missing = sandbox_problem()
    return "" if missing is None else str(missing)


def _play_all(
    stories: Sequence[tuple[Path, Story]], stage: _Stage, live: bool, seconds: float, show: Callable[[str], object]
) -> list[bool]:
    with SystemClient(stage.api_url, stage.token, seconds + CANCELLED_SECONDS) as client:
        health = client.health()
        if live and health.get("stand_in"):
            raise ConfigError("--live needs a model server, and only the stand-in is there; start Ollama first")
        player = StoryPlayer(
            client,
            stage.stand_in_url,
            web=stage.web,
            data_dir=stage.data_dir,
            wait_seconds=WAIT_SECONDS if health.get("stand_in") else max(seconds, WAIT_SECONDS),
            answer_seconds=seconds,
            thinks=stage.thinks or bool(health.get("stand_in")),
        )
        return [_play(player, path, story, show) for path, story in stories]


def _play(player: StoryPlayer, path: Path, story: Story, show: Callable[[str], object]) -> bool:
    show(f"{story.id}: {story.title}")
    script = path.parent / "scripts" / path.name
    passed = True
    for check in player.play(story, script if script.is_file() else None):
        show(f"  {check}")
        passed = passed and check.passed
    return passed


@contextmanager
def _stage(
    api: str | None, live: bool, own_web: bool, model: str | None, stories: Sequence[tuple[Path, Story]]
) -> Iterator[_Stage]:
    """The place for stories that are alike."""
    if api:
        facts = _facts_of(api)
        token = owner_token(data_dir(None)) if facts else None
        yield _Stage(api, token, stand_in_url=None, web=None, thinks=facts is not None and thinks(facts))
        return
    story = stories[0][1]
    flags = [*story.flags, *(["--model", model] if model else []), *([] if live else ["--backend", "stand_in"])]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="local2-stories-")))
        settings: dict[str, dict[str, Any]] = {}
        if story.more_participants:
            settings["system"] = {"more_participants": list(story.more_participants)}
        web = None
        if not live or own_web or "own_web" in story.needs:
            web = stack.enter_context(LocalWeb(load_pages(STORIES / "web")))
            settings |= web.settings()
        servers = {name: path.parent / file for path, each in stories for name, file in each.mcp_servers.items()}
        config_dir = None
        if settings or servers:
            taken = model_settings(settings_dir()) if live else {}
            settings = {name: {**taken.get(name, {}), **settings.get(name, {})} for name in {**taken, **settings}}
            config_dir = write_settings(folder / "config", settings)
        if servers and config_dir is not None:
            bring_along(servers, config_dir, folder / "data")
        system = stack.enter_context(_system(folder / "data", config_dir, flags, live=live))
        stand_in_url = None if live else system.facts.model_url
        thinking = not live or thinks(system.facts)
        yield _Stage(system.api_url, owner_token(system.data_dir), stand_in_url, web, thinking, system.data_dir)


def _system(folder: Path, config_dir: Path | None, flags: Sequence[str], *, live: bool) -> TemporarySystem:
    """A real model may have to be loaded first."""
    seconds = REAL_MODEL_START_SECONDS if live else START_SECONDS
    return TemporarySystem(folder, config_dir=config_dir, flags=flags, start_seconds=seconds)


def _facts_of(url: str) -> RunInfo | None:
    """The facts of the system at that address if it is our own: no other server is to see the owner's token."""
    with suppress(NotRunning):
        facts = RunDirectory(data_dir(None)).read()
        return facts if facts.api_url == url.rstrip("/") else None
    return None

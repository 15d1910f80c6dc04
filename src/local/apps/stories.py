"""Plays the acceptance stories against a running system and says for each expectation whether it was met."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.apps.local_web import LocalWeb, load_pages
from local.apps.owner_token import owner_token
from local.apps.run_directory import Facts, NotRunning, RunDirectory
from local.apps.story import Story, find_stories, load_story
from local.apps.story_player import REAL_MODEL_WAIT_SECONDS, WAIT_SECONDS, StoryPlayer
from local.apps.story_servers import bring_along
from local.apps.story_settings import model_settings, thinks
from local.apps.system_client import SystemClient
from local.apps.temporary_system import START_SECONDS, TemporarySystem, write_settings
from local.environment import data_dir, settings_dir
from local.errors import ConfigError
from local.shipped import shipped_dir
from local.tools.shell import sandbox_problem

REAL_MODEL_START_SECONDS = 660.0  # a little more than llama-server has by itself (`start_seconds` in models.yaml)
STORIES = shipped_dir() / "stories"


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where stories are played: the system's HTTP address, the owner's token, the stand-in's address if it is to play
    scripts, the web if it is ours, whether the model thinks, and the data directory of a system that was started."""

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
    show: Callable[[str], object],
) -> int:
    """Play stories ("S1" or paths; none named: all) and `show` one line for each check. Gives the exit status: 0 if
    all passed, 1 if not.

    Without `api`, the address of a running system, one is started on data of its own for all stories that want the same
    of it, and its stand-in plays the stories' scripts. `live` uses the user's model and the real web, or
    with `own_web` that of the stories. Raises `LocalError` for what keeps the stories from being played.
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
            passed += _play_all(alike, stage, live, show)
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
    missing = sandbox_problem() if "sandbox" in story.needs else None
    return "" if missing is None else str(missing)


def _play_all(
    stories: Sequence[tuple[Path, Story]], stage: _Stage, live: bool, show: Callable[[str], object]
) -> list[bool]:
    with SystemClient(stage.api_url, stage.token) as client:
        health = client.health()
        if live and health.get("stand_in"):
            raise ConfigError("--live needs a model server, and only the stand-in is there; start Ollama first")
        seconds = WAIT_SECONDS if health.get("stand_in") else REAL_MODEL_WAIT_SECONDS
        player = StoryPlayer(
            client,
            stage.stand_in_url,
            web=stage.web,
            data_dir=stage.data_dir,
            wait_seconds=seconds,
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


def _facts_of(url: str) -> Facts | None:
    """The facts of the system at that address if it is our own: no other server is to see the owner's token."""
    with suppress(NotRunning):
        facts = RunDirectory(data_dir(None)).facts()
        return facts if facts.api_url == url.rstrip("/") else None
    return None

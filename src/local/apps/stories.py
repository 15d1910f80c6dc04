"""Plays the acceptance stories against a running system and says for each expectation whether it was met."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from local.apps.local_web import LocalWeb, load_pages
from local.apps.owner_token import owner_token
from local.apps.run_directory import NotRunning, RunDirectory
from local.apps.story import Story, find_stories, load_story
from local.apps.story_player import REAL_MODEL_WAIT_SECONDS, WAIT_SECONDS, StoryPlayer
from local.apps.system_client import SystemClient
from local.apps.temporary_system import TemporarySystem, write_settings
from local.environment import data_dir
from local.errors import ConfigError
from local.shipped import shipped_dir

STORIES = shipped_dir() / "stories"


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where stories are played: the system's HTTP address, the owner's token, the stand-in's address if it is to play
    scripts, and whether the web is ours."""

    api_url: str
    token: str | None
    stand_in_url: str | None
    own_web: bool


def run_stories(
    names: Sequence[str],
    *,
    api: str | None = None,
    live: bool = False,
    model: str | None = None,
    show: Callable[[str], object],
) -> int:
    """Play stories ("S1" or paths; none named: all) and `show` one line for each check. Gives the exit status: 0 if
    all passed, 1 if not.

    Without `api`, the address of a running system, one is started on data of its own for all stories that want the same
    flags, and its stand-in plays the stories' scripts. `live` uses the real model and the real web. Raises `LocalError`
    for what keeps the stories from being played.
    """
    if api and model:
        raise ConfigError("--model is for a system that is started for the stories; the one at --api has its model")
    stories = [(path, load_story(path)) for path in find_stories(list(names), STORIES)]
    passed: list[bool] = []
    for flags in dict.fromkeys(story.flags for _, story in stories):
        alike = [(path, story) for path, story in stories if story.flags == flags]
        if api and flags:
            for _, story in alike:
                show(f"{story.id}: left out: it is for a system that was started with {' '.join(flags)}")
            continue
        with _stage(api, live, model, flags) as stage:
            passed += _play_all(alike, stage, live, show)
    show(f"{sum(passed)} of {len(passed)} stories passed")
    return 0 if all(passed) else 1


def _play_all(
    stories: Sequence[tuple[Path, Story]], stage: _Stage, live: bool, show: Callable[[str], object]
) -> list[bool]:
    with SystemClient(stage.api_url, stage.token) as client:
        health = client.health()
        if live and health.get("stand_in"):
            raise ConfigError("--live needs a model server, and only the stand-in is there; start Ollama first")
        seconds = WAIT_SECONDS if health.get("stand_in") else REAL_MODEL_WAIT_SECONDS
        player = StoryPlayer(client, stage.stand_in_url, own_web=stage.own_web, wait_seconds=seconds)
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
def _stage(api: str | None, live: bool, model: str | None, wanted: Sequence[str]) -> Iterator[_Stage]:
    if api:
        yield _Stage(api, _token_for(api), stand_in_url=None, own_web=False)
        return
    flags = [*wanted, *(["--model", model] if model else [])]
    with tempfile.TemporaryDirectory(prefix="local2-stories-") as name:
        if live:
            with TemporarySystem(Path(name) / "data", flags=flags) as system:
                yield _Stage(system.api_url, owner_token(system.data_dir), stand_in_url=None, own_web=False)
            return
        with LocalWeb(load_pages(STORIES / "web")) as web:
            config_dir = write_settings(Path(name) / "config", web.settings())
            flags += ["--backend", "stand_in"]
            with TemporarySystem(Path(name) / "data", config_dir=config_dir, flags=flags) as system:
                yield _Stage(system.api_url, owner_token(system.data_dir), system.facts.model_url, own_web=True)


def _token_for(url: str) -> str | None:
    """The owner's token if the system at that address is our own; no other server is to see it."""
    directory = RunDirectory(data_dir(None))
    with suppress(NotRunning):
        if directory.facts().api_url == url.rstrip("/"):
            return owner_token(directory.data_dir)
    return None

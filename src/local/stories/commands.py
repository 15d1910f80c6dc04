"""The commands of a story, each run in a separate process, as from a terminal."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from local.cli.client import SystemClient
from local.core.environment import environment_with
from local.stories.story import Check, Command, check_came, check_command, matches

# `local2 stories`: the acceptance stories.

REAL_MODEL_SECONDS = 600.0  # also for a second answer and its judgement, where one model does all of it


def stories(
    names: Annotated[list[str] | None, typer.Argument(help="S1, S2 … or files (default: all).")] = None,
    api: Annotated[str | None, typer.Option(help="Address of a running system (default: one is started).")] = None,
    live: Annotated[bool, typer.Option("--live", help="Use the real model and the real web.")] = False,
    own_web: Annotated[
        bool, typer.Option("--own-web", help="With --live: search the stories' own web instead of the real one.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long a real model may take to answer one question.")
    ] = REAL_MODEL_SECONDS,
) -> None:
    """Play the acceptance stories and check what happens."""
    from local.stories.player import run_stories

    options: dict[str, Any] = {"api": api, "live": live, "own_web": own_web, "model": model, "seconds": seconds}
    raise typer.Exit(run_stories(names or [], **options, show=typer.echo))


Json = dict[str, Any]
MOST_SECONDS = 60.0  # of a command


class StoryCommands:
    """The runner of a story's commands, on the system on `data_dir`. The messages that a command waits for have
    `seconds` to come.
    """

    def __init__(self, client: SystemClient, data_dir: Path, seconds: float) -> None:
        self._client, self._data_dir, self._seconds = client, data_dir, seconds

    def check(self, command: Command) -> Iterator[Check]:
        """Run one command and check its result."""
        with self._following(command) as envelopes:
            yield from check_command(command, *self._run(command))
            yield from check_came(command.wait_for, _came(command, envelopes))

    def _following(self, command: Command) -> AbstractContextManager[Iterator[Json]]:
        subjects = list(dict.fromkeys(one.subject for one in command.wait_for))
        return self._client.follow(subjects, self._seconds) if subjects else nullcontext(iter(()))

    def _run(self, command: Command) -> tuple[int, str]:
        settings = Path(self._client.request("GET", "/settings/system")["file"]).parent
        places = {"LOCAL2_CONFIG_DIR": str(settings), "LOCAL2_DATA_DIR": str(self._data_dir)}
        return self.run(shlex.split(command.run), places)

    def run(self, words: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
        """The exit status of `local2` with these words, in this environment and these variables; and all that it
        printed."""
        done = subprocess.run(
            [sys.executable, "-m", "local.cli.entry", *words],
            env=environment_with(variables), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=MOST_SECONDS,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout


def _came(command: Command, envelopes: Iterator[Json]) -> list[Json]:
    """The envelopes until every awaited one has come, or the stream ends."""
    came, open_ones = list[Json](), list(command.wait_for)
    while open_ones and (envelope := next(envelopes, None)) is not None:
        came.append(envelope)
        open_ones = [
            one for one in open_ones if one.subject != envelope["subject"] or not matches(one, envelope["payload"])
        ]
    return came

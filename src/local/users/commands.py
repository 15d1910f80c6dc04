"""`local2 usage`: what answers have cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from local.cli.client import running_system
from local.cli.main import (
    ApiOption,
    DataDir,
    JsonOption,
    Moment,
    date_and_time,
    echo_listed,
    moment,
    visible,
    write_found,
)
from local.core.data_dir import RunDirectory
from local.core.environment import data_dir as find_data_dir
from local.core.users import Users

Json = dict[str, Any]
BY_WHOM = {"all": "by all", "user": "by you"}
GROUPS = ("day", "user", "agent", "session", "model", "server", "job")


def usage(
    by: Annotated[list[str] | None, typer.Option(help=f"{', '.join(GROUPS)}; several times for several.")] = None,
    since: Moment = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show answers, calls of models, tokens, seconds and, where models.yaml has prices, money.

    Example: local2 usage --by agent --by day --since 7d
    """
    wanted = by or ["day"]
    for name in wanted:
        if name not in GROUPS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(GROUPS)}", param_hint="--by")
    asked = [("by", name) for name in wanted]
    if since is not None:
        begin = datetime.fromtimestamp(moment(since, "--since", time.time()))
        asked.append(("since", begin.date().isoformat()))
    with running_system(api, data_dir) as client:
        found = client.request("GET", f"/usage?{urlencode(asked)}")
    write_found(found, _lines(found), as_json=as_json, nothing="nothing was used")


def _lines(found: Json) -> Iterator[str]:
    for row in found["rows"]:
        yield _line("  ".join(visible(str(row[name])) or "–" for name in found["by"]), row)
    if len(found["rows"]) > 1:
        yield _line("all", found["total"])
    yield from map(_budget_line, found["budgets"])


def _budget_line(budget: Json) -> str:
    used = f"{budget['spent']:,.10g} of {budget['limit']:,.10g} {budget['unit']}"
    return f"today {BY_WHOM[budget['of']]}: {used}; renewed at {date_and_time(budget['anew_at'])}"


def _line(title: str, row: Json) -> str:
    tokens = f"{row['prompt_tokens']:>10} + {row['completion_tokens']:<8} tokens"
    money = "" if row["money"] is None else f"  {row['money']:.4f}"
    return f"{title:32}  {row['answers']:>6} answers  {row['calls']:>6} calls  {tokens}  {row['seconds']:.1f} s{money}"


# `local2 user add | list | remove`: who may use the system besides its owner, also while it runs.

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, which is also their user_id.")]

user_app = typer.Typer(help="Give other people access: users of this machine, and of other machines.")


@user_app.command()
def add(
    name: Name,
    again: Annotated[
        bool, typer.Option("--again", help="The name of a removed user, with what is stored under it, for that person.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Give a user a token. It is the only line on the standard output, and is shown only now."""
    token = _users(data_dir).add(name, again=again)
    typer.echo(f"{name} sends it as 'Authorization: Bearer …'; it is not shown again:", err=True)
    typer.echo(token)


@user_app.command("list")
def listing(data_dir: DataDir = None) -> None:
    """List the users."""
    users = _users(data_dir).all().items()
    echo_listed((f"{name}  since {user.added_at}" for name, user in users), "there are no users besides you")


@user_app.command()
def remove(name: Name, data_dir: DataDir = None) -> None:
    """Withdraw a user's token at once. What the user has asked stays."""
    _users(data_dir).remove(name)
    typer.echo(f"the token of {name} is withdrawn")


def _users(data_dir: DataDir) -> Users:
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    return Users(directory.data_dir)

"""`local2 agents …`: list agents, show one, and stop one."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found
from local.core.errors import NoAnswer

Json = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="AGENT", help="Its name, or the beginning of its id.")]
MOST_SHOWN = 60  # characters of a task in a list

agents_app = typer.Typer(help="The agents that do tasks for the model: list, show, stop.")


@agents_app.command("list")
def list_agents(
    query: Annotated[str | None, typer.Option(metavar="ID", help="Only those of this query.")] = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show which agents there are, each below the one that has made it.

    Example: local2 agents list
    """
    with running_system(api, data_dir) as client:
        told = client.request("GET", f"/agents?query_id={quote(query, safe='')}" if query else "/agents")
    write_found(told, list(map(_line, _as_tree(told["agents"]))), as_json=as_json, nothing="there are no agents")


@agents_app.command()
def show(agent: Name, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show one agent: its latest task, the result, and its usage.

    Example: local2 agents show scout
    """
    with running_system(api, data_dir) as client:
        found = _named(client.request("GET", "/agents")["agents"], agent)
    write_found(found, _lines(found), as_json=as_json, nothing="")


@agents_app.command()
def stop(agent: Name, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """End an agent with all of its own agents; their tasks are cancelled.

    Example: local2 agents stop scout
    """
    with running_system(api, data_dir) as client:
        found = _named(client.request("GET", "/agents")["agents"], agent)
        client.request("POST", f"/agents/{found['agent_id']}/stop")
    typer.echo(f"{visible(found['name'])} ends")


def _named(agents: list[Json], name: str) -> Json:
    """Return the latest agent of that name, or the one whose id begins so."""
    found = [each for each in agents if each["name"] == name or each["agent_id"].startswith(name)]
    if not found:
        raise NoAnswer("not_found", f"there is no agent {name!r}; `local2 agents list` has them")
    return found[-1]


def _as_tree(agents: list[Json], parent: str | None = None) -> list[Json]:
    below = [each for each in agents if each["parent_id"] == parent]
    return [one for each in below for one in (each, *_as_tree(agents, each["agent_id"]))]


def _line(agent: Json) -> str:
    task = " ".join(visible(agent["task"]).split())
    shown = task if len(task) <= MOST_SHOWN else f"{task[: MOST_SHOWN - 1]}…"
    name = f"{'  ' * (agent['depth'] - 1)}{visible(agent['name'])}"
    return f"{agent['agent_id'][:8]}  {name}  {agent['state'].lower()}  {_tokens(agent)}  {shown}"


def _lines(agent: Json) -> list[str]:
    error = agent["error"]
    told = {
        "agent": f"{visible(agent['name'])} ({agent['agent_id']}), {agent['depth']} deep, {agent['state'].lower()}",
        "of the query": agent["root_query_id"],
        "made": date_and_time(agent["made_at"]),
        "ended": date_and_time(agent["ended_at"]) if agent["ended_at"] else "",
        "used": f"{_tokens(agent)}, {agent['used']['calls']} of {agent['budget']['calls']} calls",
        "task": visible(agent["task"]),
        "answer": visible(agent["answer"] or ""),
        "error": visible(f"{error['kind']}: {error['message']}") if error else "",
        "untrusted content": "yes" if agent["tainted"] else "",
    }
    return [f"{name}: {text}" for name, text in told.items() if text]


def _tokens(agent: Json) -> str:
    return f"{agent['used']['tokens']:,} of {agent['budget']['tokens']:,} tokens"

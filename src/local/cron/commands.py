"""`local2 cron …`: scheduled jobs and their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found

Json = dict[str, Any]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of a job, as `local2 cron list` shows it.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")]

cron_app = typer.Typer(help="Schedule questions and show their runs.")


@cron_app.command("list")
def list_jobs(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """List the jobs, with their schedules and next times.

    Example: local2 cron list
    """
    with running_system(api, data_dir) as client:
        found = client.request("GET", "/cron")
    write_found(found, map(_line, found["jobs"]), as_json=as_json, nothing="there are no jobs")


@cron_app.command()
def add(
    schedule: Annotated[str, typer.Argument(help="'0 9 * * 1-5', 'at 2026-12-24T18:00', 'in 10m' or 'every 30m'.")],
    prompt: Annotated[str, typer.Argument(help="The question.")],
    name: Annotated[str, typer.Option(help="A name for the job.")] = "",
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone, such as Europe/Berlin (default: this machine's).")
    ] = None,
    missed: Annotated[str, typer.Option(help="How many missed runs to make up for: once, all or none.")] = "once",
    session: Annotated[
        str | None, typer.Option(help="Conversation of the runs (default: a new one each time).")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="Permission mode of the runs; modes that allow more than `default` require the owner token."),
    ] = None,
    max_runs: Annotated[int | None, typer.Option(help="At most this many runs a day.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="At most this many tokens a day.")] = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Schedule a question.

    Example: local2 cron add "0 8 * * *" "What is new about local language models?" --name news

    Example: local2 cron add "at 2026-12-24T18:00" "Tell me a story" --session evenings
    """
    given = {
        "time_zone": time_zone, "session_id": session, "mode": mode, "max_runs_a_day": max_runs,
        "max_tokens_a_day": max_tokens,
    }  # fmt: skip
    body = {"schedule": schedule, "prompt": prompt, "name": name, "missed": missed, "by": "terminal"}
    with running_system(api, data_dir) as client:
        job = client.request("POST", "/cron", {**body, **{key: value for key, value in given.items() if value}})
    write_found(job, [_line(job)], as_json=as_json, nothing="")


@cron_app.command()
def remove(job: JobId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Remove a job; its conversations stay.

    Example: local2 cron remove 3f2a0c81d5e7
    """
    with running_system(api, data_dir) as client:
        client.request("DELETE", f"/cron/{quote(job, safe='')}")
    typer.echo(f"{job} is removed")


@cron_app.command()
def pause(job: JobId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Pause a job.

    Example: local2 cron pause 3f2a0c81d5e7
    """
    _enable(job, api, data_dir, enabled=False)


@cron_app.command()
def resume(job: JobId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Resume a paused job. Missed runs are not made up for.

    Example: local2 cron resume 3f2a0c81d5e7
    """
    _enable(job, api, data_dir, enabled=True)


@cron_app.command()
def run(job: JobId, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Run a job now.

    Example: local2 cron run 3f2a0c81d5e7
    """
    with running_system(api, data_dir) as client:
        begun = client.request("POST", f"/cron/{quote(job, safe='')}/run")
    write_found(begun, [f"started; `local2 trace {begun['query_id']}` shows it"], as_json=as_json, nothing="")


@cron_app.command()
def history(
    job: JobId, limit: Limit = 20, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None
) -> None:
    """List the runs of a job, the latest first.

    Example: local2 cron history 3f2a0c81d5e7 -n 5
    """
    with running_system(api, data_dir) as client:
        found = client.request("GET", f"/cron/{quote(job, safe='')}/runs?limit={limit}")
    write_found(found, map(_run_line, found["runs"]), as_json=as_json, nothing="the job has not run yet")


def _enable(job: str, api: str | None, data_dir: Any, *, enabled: bool) -> None:
    with running_system(api, data_dir) as client:
        changed = client.request("PATCH", f"/cron/{quote(job, safe='')}", {"enabled": enabled})
    typer.echo(_line(changed))


def _line(job: Json) -> str:
    mark = "  (made in a conversation with untrusted content)" if job["tainted"] else ""
    when = f"{job['schedule']} ({job['time_zone']})"
    return f"{job['job_id']}  {_next(job):24}  {visible(when)}  {visible(job['name'])}{mark}"


def _next(job: Json) -> str:
    if not job["enabled"]:
        return "paused"
    return "over" if job["next_at"] is None else f"next {datetime.fromtimestamp(job['next_at']):%Y-%m-%d %H:%M}"


def _run_line(run: Json) -> str:
    detail = f"  {visible(run['detail'])}" if run["detail"] else ""
    return f"{date_and_time(run['scheduled_at'])}  {run['state']:9}  {run['tokens']} tokens  {run['query_id']}{detail}"

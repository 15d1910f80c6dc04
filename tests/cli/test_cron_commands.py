"""`local2 cron` and `local2 usage` with a frontend that gives set answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local.cron import commands as cron_commands
from local.users import commands as usage_command
from tests.cli.answering_frontend import AnsweringFrontend, Json

JOB: Json = {
    "job_id": "3f2a", "name": "news\x1b", "schedule": "0 8 * * *", "time_zone": "UTC", "enabled": True, "tainted": True,
    "next_at": None,
}  # fmt: skip
RUN: Json = {"scheduled_at": 0.0, "state": "answered", "tokens": 42, "query_id": "q1", "detail": "2 times were missed"}
SPENT: Json = {
    "answers": 2, "calls": 3, "prompt_tokens": 40, "completion_tokens": 2, "seconds": 1.5, "money": 0.25,
}  # fmt: skip
Run = Callable[..., tuple[int, str, str]]


def answer(method: str, path: str) -> Json:
    if path.startswith("/usage"):
        budget = {"of": "user", "unit": "tokens", "spent": 42, "limit": 5000, "anew_at": 86400.0}
        rows = [{"agent": "generator", **SPENT}]
        return {"by": ["agent"], "rows": rows, "total": SPENT, "budgets": [budget]}
    if path.endswith("/runs?limit=20"):
        return {"runs": [RUN]}
    if path.endswith("/run"):
        return RUN
    return {"jobs": [JOB]} if (method, path) == ("GET", "/cron") else JOB


@pytest.fixture
def frontend(found_by: Callable[..., None]) -> AnsweringFrontend:
    frontend = AnsweringFrontend(answer)
    found_by(frontend, cron_commands, usage_command)
    return frontend


def test_jobs_are_shown_and_made(run: Run, frontend: AnsweringFrontend) -> None:
    status, out, _ = run("cron", "list")
    assert (status, "\x1b" in out, "untrusted content" in out, "over" in out) == (0, False, True, True)
    status, _, _ = run("cron", "add", "in 5m", "What is new?", "--max-runs", "3", "--session", "s")
    assert status == 0
    assert frontend.asked[-1] == (
        "POST", "/cron",
        {
            "schedule": "in 5m", "prompt": "What is new?", "name": "", "missed": "once", "by": "terminal",
            "session_id": "s", "max_runs_a_day": 3,
        },
    )  # fmt: skip


def test_jobs_are_paused_gone_on_with_run_removed_and_looked_back_at(run: Run, frontend: AnsweringFrontend) -> None:
    for command, sent in (
        ("pause", ("PATCH", "/cron/3f2a", {"enabled": False})),
        ("resume", ("PATCH", "/cron/3f2a", {"enabled": True})),
        ("remove", ("DELETE", "/cron/3f2a")),
        ("run", ("POST", "/cron/3f2a/run")),
    ):
        assert run("cron", command, "3f2a")[0] == 0
        assert frontend.asked[-1] == sent
    assert "answered   42 tokens  q1  2 times were missed" in run("cron", "history", "3f2a")[1]


def test_usage_is_shown_by_what_is_asked_for(run: Run, frontend: AnsweringFrontend) -> None:
    status, out, _ = run("usage", "--by", "agent")
    assert (status, frontend.asked[-1]) == (0, ("GET", "/usage?by=agent"))
    assert "generator" in out and "40 + 2" in out and "0.2500" in out
    assert "today by you: 42 of 5,000 tokens; renewed at 1970-01-0" in out
    assert run("usage", "--by", "mood")[0] == 2

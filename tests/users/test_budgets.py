"""A budget of the day that is spent: each frontend refuses the next question, with what was spent and until when."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.api.budgets import BudgetsConfig, BudgetSpent, DayBudgets, begin_of_day, end_of_day
from local.core.data_dir import make_owner_token
from local.core.users import Users
from local.queries.record import ModelPrice
from local.queries.session import LoCALSession

System = Any  # of conftest.py
TOKENS = 10  # of each answer of the scripted generator
DAY = 24 * 3600


async def ask(client: httpx.AsyncClient, headers: dict[str, str] | None = None, **others: str) -> httpx.Response:
    return await client.post("/query", json={"query": "hello", **others}, headers=headers)


async def test_a_user_s_budget_is_the_user_s_and_a_question_that_was_asked_before_is_answered(system: System) -> None:
    folder: Path = system.journal_file.parent
    ann = {"authorization": f"Bearer {Users(folder).add('ann')}"}
    async with system.frontend(budgets={"user": {"tokens": TOKENS + 1}}) as client:
        for number in range(2):
            assert (await ask(client, ann, query_id=f"q{number}")).status_code == 200
        await system.on_record("q0", "q1")
        refused = await ask(client, ann)
        assert refused.status_code == 429
        error = refused.json()["error"]
        budget, now = error["budget"], time.time()
        assert (budget["of"], budget["unit"], budget["spent"], budget["limit"]) == ("user", "tokens", 20, 11)
        assert error["kind"] == "budget_spent" and "20 of 11 tokens by this user" in error["message"]
        assert budget["anew_at"] == end_of_day(now)
        assert abs(int(refused.headers["retry-after"]) - (budget["anew_at"] - now)) < 5
        assert (await ask(client, ann, query_id="q0")).status_code == 200
        assert (await ask(client)).status_code == 200  # the owner is another one
        usage = (await client.get("/usage", headers=ann)).json()
        assert usage["budgets"] == [budget]
    async with system.frontend(budgets={"user": {"tokens": TOKENS + 1}}) as client:  # one that has heard none of it
        assert (await ask(client, ann)).status_code == 429
        assert (await ask(client, ann, query_id="q1")).status_code == 200


@pytest.mark.parametrize("form", [{}, {"headers": {"accept": "text/event-stream"}}], ids=["whole", "stream"])
async def test_a_conversation_s_budget_leaves_the_others_theirs(system: System, form: Any) -> None:
    async with system.frontend(budgets={"session": {"tokens": 1}}) as client:
        assert (await ask(client, session_id="s1", query_id="q1")).status_code == 200
        await system.on_record("q1")
        refused = await client.post("/query", json={"query": "hello", "session_id": "s1"}, **form)
        assert (refused.status_code, refused.json()["error"]["budget"]["of"]) == (429, "session")
        assert (await ask(client, session_id="s2")).status_code == 200


async def test_money_of_all_counts_by_the_prices_and_openai_s_clients_are_told_in_their_form(system: System) -> None:
    folder: Path = system.journal_file.parent
    (folder / "models.yaml").write_text("prices: {'gemma4:12b': {prompt: 100000, completion: 100000}}\n")
    ann = {"authorization": f"Bearer {Users(folder).add('ann')}"}
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    async with system.frontend(budgets={"all": {"money": 1}}) as client:
        assert (await ask(client, ann, query_id="q1")).status_code == 200
        await system.on_record("q1")
        chat = {"model": "local2", "messages": [{"role": "user", "content": "hello"}]}
        refused = await client.post("/v1/chat/completions", json=chat)
        error = refused.json()["error"]
        assert (refused.status_code, error["type"], error["code"]) == (429, "rate_limit_error", "budget_spent")
        assert "1 of 1 by all" in error["message"]
        [hers] = (await client.get("/usage", headers=ann)).json()["budgets"]
        assert hers["of"] == "user"  # what others use is not theirs to know
        [told] = (await client.get("/usage", headers=owner)).json()["budgets"]
        assert (told["of"], told["unit"], told["spent"]) == ("all", "money", 1.0)


async def test_without_a_limit_nothing_is_refused_or_told(client: httpx.AsyncClient) -> None:
    assert [(await ask(client)).status_code for _ in range(3)] == [200, 200, 200]
    assert (await client.get("/usage")).json()["budgets"] == []


async def test_the_next_day_begins_anew(system: System) -> None:
    now = [time.time()]
    async with (
        system.frontend() as client,
        system.bus("another_door", journaled=True) as bus,
        LoCALSession(bus) as session,
    ):
        await bus.ready()
        prices = {"gemma4:12b": ModelPrice(1, 1)}
        budgets = DayBudgets(
            BudgetsConfig.model_validate({"all": {"tokens": 5}}), session, lambda: prices, lambda: now[0]
        )
        await budgets.require(None)
        assert (await ask(client, session_id="s1", query_id="q1")).status_code == 200
        await system.on_record("q1")
        with pytest.raises(BudgetSpent):
            await budgets.require(None)
        now[0] = end_of_day(now[0])
        await budgets.require(None)


async def test_the_terminal_says_so_in_a_sentence(system: System) -> None:
    async with system.frontend(budgets={"user": {"tokens": 1}}) as client:
        assert (await ask(client, query_id="q1")).status_code == 200
        await system.on_record("q1")
        command = [sys.executable, "-m", "local.cli.entry", "ask", "hello", "--api", system.url]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
    assert (done.returncode, done.stdout) == (75, "")
    assert "the budget of the day is spent: 10 of 1 tokens by this user; it is renewed on" in done.stderr


def test_a_day_ends_at_midnight_also_where_the_clocks_change() -> None:
    for day in range(0, 3 * 366):
        at = 1_700_000_000.0 + day * DAY
        assert begin_of_day(at) <= at < end_of_day(at)
        assert begin_of_day(end_of_day(at)) == end_of_day(at)
        assert 22.5 * 3600 < end_of_day(at) - begin_of_day(at) < 25.5 * 3600

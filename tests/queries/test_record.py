"""What answers have cost, who did what, and which agents took part: folded from messages on record."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from local.bus.bus import EnvelopeFactory
from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import (
    Grant,
    ModelSpan,
    ModelUsed,
    QueryCancel,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    UsageInfo,
)
from local.cron.messages import CronRun, CronRunRecord
from local.journal.messages import JournalEntry
from local.permissions.messages import ApprovalDecision
from local.queries.record import (
    KINDS,
    ModelPrice,
    RecordedMessage,
    UsageLedger,
    activity_of,
    agents_in,
    subjects_of,
    with_plausible_times,
)
from local.reflection.messages import GoalChanged
from local.swarm.messages import AgentChanged

NOON = datetime(2026, 11, 21, 12).timestamp()


def envelope(message: Message, trace: Trace, sender: str = "generator") -> Envelope:
    return EnvelopeFactory(sender, "i", None).seal(message.routing_key, message.encode(), trace)[0]


def answer(query_id: str, tokens: tuple[int, int], session: str = "s", **fields: Any) -> ResponseGeneration:
    spans = tuple(ModelSpan(started=float(n), ended=n + 0.5) for n in range(2))
    usage = UsageInfo(prompt_tokens=tokens[0], completion_tokens=tokens[1], steps=spans)
    given = {"model": "gemma", "session_id": session, **fields}
    return ResponseGeneration(query_id=query_id, status="answered", query="?", answer="!", usage=usage, **given)


def heard(ledger: UsageLedger, message: Message, at: float = NOON, sender: str = "generator", **trace: Any) -> None:
    said = envelope(message, Trace(getattr(message, "query_id", "q"), None, **trace), sender)
    ledger.receive(said, json.loads(said.payload), at)


def test_every_answer_is_counted_once_in_each_grouping() -> None:
    chance, ledger = random.Random(7), UsageLedger()
    expected: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for number in range(200):
        tokens, user = (chance.randrange(1000), chance.randrange(100)), chance.choice([None, "ann", "bob"])
        day = chance.randrange(3)
        heard(ledger, answer(f"q{number}", tokens), NOON + day * 86400, user_id=user, session_id="s")
        name = (datetime.fromtimestamp(NOON) + timedelta(days=day)).date().isoformat()
        for index, count in enumerate((1, *tokens)):
            expected[name, user or ""][index] += count
    rows = ledger.rows(("day", "user"), ledger.entries(None), {})
    assert {
        (row["day"], row["user"]): [row["answers"], row["prompt_tokens"], row["completion_tokens"]] for row in rows
    } == dict(expected)
    [total] = ledger.rows((), ledger.entries(None), {})
    assert (total["answers"], total["calls"], total["seconds"], total["money"]) == (200, 400, 200.0, None)
    anns = ledger.rows((), ledger.entries("ann", since="2026-11-22", until="2026-11-22"), {})
    assert anns[0]["answers"] == expected["2026-11-22", "ann"][0]


def test_what_a_routine_has_used_is_counted_under_its_name_and_is_no_answer() -> None:
    ledger = UsageLedger()
    heard(ledger, answer("q1", (10, 1)))
    for outcome in ("nothing to say", "something to say"):
        used = ModelUsed(
            purpose="heartbeat",
            model="gemma",
            calls=1,
            prompt_tokens=100,
            completion_tokens=20,
            seconds=2.0,
            outcome=outcome,
        )
        heard(ledger, used, sender="reflection")
    [of_answers, of_heartbeat] = ledger.rows(("agent",), ledger.entries(None), {})
    assert (of_answers["agent"], of_heartbeat["agent"]) == ("generator", "heartbeat")
    assert [of_heartbeat[name] for name in ("answers", "calls", "prompt_tokens", "completion_tokens", "seconds")] == [
        0, 2, 200, 40, 4.0,
    ]  # fmt: skip
    assert list(ledger.entries("ann")) == []


def test_money_is_counted_where_a_model_has_a_price() -> None:
    ledger = UsageLedger()
    heard(ledger, answer("q1", (1_000_000, 500_000)))
    heard(ledger, answer("q2", (10, 10), model="free"), sender="generator_b")
    rows = ledger.rows(("agent",), ledger.entries(None), {"gemma": ModelPrice(0.5, 2.0)})
    assert [(row["agent"], row["money"]) for row in rows] == [("generator", 1.5), ("generator_b", None)]


def test_what_a_job_has_used_is_its_jobs_whichever_is_told_first() -> None:
    ledger = UsageLedger()
    heard(ledger, answer("q1", (5, 5), origin="schedule"))
    run = CronRunRecord(job_id="j", run_id="j.1", scheduled_at=1.0, query_id="q1", state="answered")
    heard(ledger, CronRun(name="news", run=run), sender="cron")
    heard(ledger, answer("q2", (7, 7)))
    rows = ledger.rows(("job",), ledger.entries(None), {})
    assert [(row["job"], row["prompt_tokens"]) for row in rows] == [("", 7), ("news (j)", 5)]


def line(message: Message, sender: str = "generator") -> dict[str, Any]:
    said = envelope(message, Trace("q", None, "s", "ann"), sender)
    return activity_of(said, json.loads(said.payload), NOON)


def test_the_audit_says_who_did_what_with_whose_leave() -> None:
    grant = Grant(call_id="q:0:0", respondent_id="A", tool="pen", args_sha256="0", expires_at=1.0, key_id="k")
    call = line(ToolRequest(query_id="q", call_id="q:0:0", tool="pen", args={"text": "x" * 999}, grant=grant))
    assert (call["kind"], call["what"], call["leave"], call["user_id"], call["by"]) == (
        "call", "pen", True, "ann", "generator",
    )  # fmt: skip
    assert len(call["args"]["text"]) < 400
    decision = ApprovalDecision(
        query_id="q", call_id="q:0:0", session_id="s", tool="pen", decision="allow", by="page", decided_at=NOON
    )
    assert line(decision, "gatekeeper")["by"] == "page"
    assert line(QueryReceived(query_id="q", query="?", origin="schedule"), "cron")["origin"] == "schedule"
    goal = line(GoalChanged(goal_id="g", text="Swim", state="done", by="heartbeat"), "reflection")
    assert (goal["kind"], goal["what"], goal["state"], goal["by"]) == ("goal", "Swim", "done", "heartbeat")
    assert activity_of(envelope(decision, Trace("q")), None, NOON)["removed"]
    assert set(subjects_of(frozenset())) == set(KINDS)
    assert subjects_of(frozenset({"call"})) == ("tool.request.",)


def test_what_is_asked_of_a_model_beside_the_answers_is_counted_by_what_it_is_for() -> None:
    ledger = UsageLedger()
    heard(ledger, answer("q", (10, 1)), sender="generator")
    for purpose in ("critic", "critic", "summary"):
        used = ModelUsed(purpose=purpose, model="gemma", prompt_tokens=100, completion_tokens=5, seconds=0.5)
        heard(ledger, used, sender="somebody")
    rows = {row["agent"]: row for row in ledger.rows(("agent",), ledger.entries(None), {})}
    assert {name: (row["calls"], row["prompt_tokens"]) for name, row in rows.items()} == {
        "generator": (2, 10), "critic": (2, 200), "summary": (1, 100),
    }  # fmt: skip
    assert (rows["critic"]["answers"], rows["critic"]["completion_tokens"], rows["critic"]["seconds"]) == (0, 10, 1.0)
    assert [key.agent for key, _ in ledger.entries("ann")] == []  # it is nobody's conversation


def recorded(message: AgentChanged | QueryCancel, *, redacted: bool = False) -> RecordedMessage:
    envelope = Envelope(message.subject, "e", "swarm", "i", 1, "q", b"{}" if redacted else message.encode())
    entry = JournalEntry(number=1, committed_at=1.0, redacted=redacted, frame=envelope.encode().decode())
    return RecordedMessage.of(entry)


def changed(agent_id: str, state: str, task: str = "") -> AgentChanged:
    return AgentChanged(
        agent_id=agent_id, name=agent_id, depth=1, state=state, query_id="q", root_query_id="q", task_query_id=task
    )


def test_each_task_is_there_once_as_it_was_last_told() -> None:
    told = [
        recorded(QueryCancel(query_id="q")),
        recorded(changed("a", "WORKING", "a-1")),
        recorded(changed("b", "WORKING", "b-1")),
        recorded(changed("a", "ENDED", "a-1")),
        recorded(changed("c", "READY")),
        recorded(changed("d", "WORKING", "d-1"), redacted=True),
    ]
    assert {query_id: each.state for query_id, each in agents_in(told).items()} == {"a-1": "ENDED", "b-1": "WORKING"}


def test_what_a_machine_with_another_clock_has_sent_was_sent_when_it_was_received() -> None:
    def sent(seconds: float, received: float, envelope_id: str, answers: str | None = None) -> RecordedMessage:
        said = Envelope("tool.result.x", envelope_id, "s", "i", 1, "q", b"{}", in_reply_to=answers, sent_at=seconds)
        entry = JournalEntry(number=1, committed_at=received, redacted=False, frame="")
        return RecordedMessage(entry, said)

    recorded = [
        sent(100.0, 101.0, "asked"),
        sent(103.0, 104.0, "on time", "asked"),
        sent(99.9, 105.0, "its clock is behind", "asked"),
        sent(3_700.0, 106.0, "its clock is ahead", "asked"),
        sent(104.0, 170.0, "the cable was pulled", "asked"),
    ]
    assert [each.envelope.sent_at for each in with_plausible_times(recorded)] == [100.0, 103.0, 105.0, 106.0, 104.0]

"""What answers and reflection have cost, folded from how they stand on record: exact for all that is still there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from local.protocol.cron_messages import CronRun
from local.protocol.envelope import Envelope, session_of
from local.protocol.messages import ResponseGeneration
from local.protocol.model_used import ModelUsed
from local.protocol.query_origin import SCHEDULE

MILLION: Final = 1_000_000


class ModelPrice(NamedTuple):
    """What a million tokens cost, of the prompt and of the answer."""

    prompt: float
    completion: float


class UsageKey(NamedTuple):
    """Whose it is, of which day (of this machine's time zone), and by whom it was used. `query_id` is that of a job's
    run; what names its job may come later."""

    day: str
    user_id: str | None
    agent: str
    session: str
    model: str
    query_id: str = ""


@dataclass(slots=True)
class UsageSum:
    """Answers, calls of models, tokens and seconds of these calls."""

    answers: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def add(self, other: UsageSum) -> None:
        """Count the other one, too."""
        self.answers += other.answers
        self.calls += other.calls
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.seconds += other.seconds


Entries = Iterable[tuple[UsageKey, UsageSum]]


class UsageLedger:
    """All that was used, by `UsageKey`."""

    def __init__(self) -> None:
        self._sums: dict[UsageKey, UsageSum] = {}
        self._jobs: dict[str, str] = {}  # by the query_id of a run

    def hear(self, envelope: Envelope, payload: Mapping[str, Any], at: float) -> None:
        """Count one message on record: an answer, what was used beside the answers, or a run of a job; `at` is in
        seconds since 1970."""
        if envelope.subject == ResponseGeneration.subject:
            key = _key(envelope, payload, at)
            self._sums.setdefault(key, UsageSum()).add(_used(payload.get("usage") or {}))
        elif envelope.subject == ModelUsed.subject:
            day = datetime.fromtimestamp(at).date().isoformat()
            key = UsageKey(day, None, str(payload.get("purpose", "")), "", str(payload.get("model", "")))
            self._sums.setdefault(key, UsageSum()).add(_beside_answers(payload))
        elif envelope.subject == CronRun.subject:
            run = payload.get("run") or {}
            self._jobs[str(run.get("query_id", ""))] = f"{payload.get('name', '')} ({run.get('job_id', '')})"

    def entries(self, user_id: str | None, since: str = "", until: str = "9") -> Iterator[tuple[UsageKey, UsageSum]]:
        """What is that user's, or everybody's, from one day on and up to another."""
        for key, used in self._sums.items():
            if user_id in (None, key.user_id) and since <= key.day <= until:
                yield key, used

    def job_of(self, key: UsageKey) -> str:
        """The job for which something was used; empty if for none."""
        return self._jobs.get(key.query_id, "") if key.query_id else ""

    def rows(self, by: Iterable[str], entries: Entries, prices: Mapping[str, ModelPrice]) -> list[dict[str, Any]]:
        """The sums by some of day, user, agent, session, model and job, in order; all in one row without any."""
        names, found = tuple(by), dict[tuple[str, ...], list[tuple[UsageKey, UsageSum]]]()
        for key, used in entries:
            facts = {**key._asdict(), "user": key.user_id or "", "job": self.job_of(key)}
            found.setdefault(tuple(facts[name] for name in names), []).append((key, used))
        return [{**dict(zip(names, group, strict=True)), **_total(found[group], prices)} for group in sorted(found)]


def _total(entries: Entries, prices: Mapping[str, ModelPrice]) -> dict[str, Any]:
    """What is told of it; `money` is null where no model has a price, and what has none is not in it."""
    total, money = UsageSum(), None
    for key, used in entries:
        total.add(used)
        if price := prices.get(key.model):
            cost = used.prompt_tokens * price.prompt + used.completion_tokens * price.completion
            money = (money or 0.0) + cost / MILLION
    return {
        "answers": total.answers, "calls": total.calls, "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens, "seconds": round(total.seconds, 3),
        "money": None if money is None else round(money, 6),
    }  # fmt: skip


def _key(envelope: Envelope, payload: Mapping[str, Any], at: float) -> UsageKey:
    query_id = str(payload.get("query_id", ""))
    return UsageKey(
        datetime.fromtimestamp(at).date().isoformat(),
        envelope.user_id,
        str(payload.get("agent") or envelope.sender),
        session_of(envelope, query_id),
        str(payload.get("model", "")),
        query_id if payload.get("origin") == SCHEDULE else "",
    )


def _used(usage: Mapping[str, Any]) -> UsageSum:
    steps = usage.get("steps") or ()
    return UsageSum(
        answers=1,
        calls=len(steps),
        prompt_tokens=int(usage.get("prompt_tokens", 0)),
        completion_tokens=int(usage.get("completion_tokens", 0)),
        seconds=sum(max(0.0, float(step["ended"]) - float(step["started"])) for step in steps),
    )


def _beside_answers(used: Mapping[str, Any]) -> UsageSum:
    return UsageSum(
        calls=int(used.get("calls", 1)),
        prompt_tokens=int(used.get("prompt_tokens", 0)),
        completion_tokens=int(used.get("completion_tokens", 0)),
        seconds=float(used.get("seconds", 0.0)),
    )

"""Whom to ask next, and when."""

from __future__ import annotations

import pytest

from local.core.errors import ModelBusy, ModelError
from local.models.router import Attempt, Attempts, FallbackPolicy, Pauses

A, B, C = "ollama/a", "cloud/b", "box/c"


def fault(kind: str) -> ModelError:
    return ModelError(kind, kind=kind)


def busy(kind: str, retry_after: float | None = None) -> ModelBusy:
    return ModelBusy(kind, kind=kind, status=429, retry_after=retry_after)


def attempts(*targets: str, pauses: Pauses | None = None, now: float = 0.0, **policy: object) -> Attempts:
    return Attempts(targets, FallbackPolicy(**policy), pauses or Pauses(), now)


def course(tries: Attempts, error: ModelError) -> list[tuple[str, float]]:
    """What happens when every attempt fails alike."""
    attempt: Attempt | None = tries.first(0.0)
    seen = []
    while attempt is not None:
        seen.append((attempt.target, attempt.wait))
        attempt = tries.after(error, 0.0)
    return seen


@pytest.mark.parametrize("kind", ["bad_stream", "server_error", "never heard of"])
def test_a_failure_that_may_pass_is_tried_again_later_and_later_and_then_elsewhere(kind: str) -> None:
    assert course(attempts(A, B), fault(kind)) == [(A, 0), (A, 0.5), (A, 1), (B, 0), (B, 0.5), (B, 1)]


@pytest.mark.parametrize("kind", ["model_missing", "unauthorised", "out_of_memory", "bad_request", "timeout"])
def test_a_failure_that_stays_or_takes_long_leads_elsewhere_at_once(kind: str) -> None:
    assert course(attempts(A, B), fault(kind)) == [(A, 0), (B, 0)]


def test_what_does_not_fit_the_context_is_left_to_the_caller_who_can_shorten_it() -> None:
    assert course(attempts(A, B), fault("context_overflow")) == [(A, 0)]


def test_a_rate_limit_leads_to_the_next_model_at_once() -> None:
    assert course(attempts(A, B, max_retries=0), busy("rate_limit", 20)) == [(A, 0), (B, 0)]


def test_the_last_model_that_limits_is_waited_for_as_long_as_it_asks() -> None:
    assert course(attempts(A, max_retries=1), busy("rate_limit", 7)) == [(A, 0), (A, 7)]
    assert course(attempts(A, max_retries=2), busy("rate_limit")) == [(A, 0), (A, 0.5), (A, 1)]


def test_nobody_waits_longer_than_allowed_in_all() -> None:
    assert course(attempts(A, max_wait_seconds=30), busy("rate_limit", 31)) == [(A, 0)]
    assert course(attempts(A, max_retries=9, max_wait_seconds=20), busy("rate_limit", 7)) == [(A, 0), (A, 7), (A, 7)]
    assert course(attempts(A, B, max_wait_seconds=20), busy("overloaded", 60)) == [(A, 0), (B, 0)]


def test_a_busy_server_is_tried_again_when_it_wishes_and_then_elsewhere() -> None:
    tries = attempts(A, B, max_retries=1, max_wait_seconds=8)
    assert course(tries, busy("overloaded", 3)) == [(A, 0), (A, 3), (B, 0), (B, 3)]


@pytest.mark.parametrize("kind", ["unreachable", "stream_cut", "overloaded"])
def test_those_that_are_away_are_asked_again_in_turn_for_as_long_as_is_allowed(kind: str) -> None:
    seen = course(attempts(A, B, max_wait_seconds=20), fault(kind))
    assert seen[:6] == [(A, 0), (A, 0.5), (A, 1), (B, 0), (B, 0.5), (B, 1)]
    assert seen[6:] == [(A, 2), (B, 4), (A, 5), (B, 5)]


def test_the_time_that_a_server_takes_to_be_away_counts_too() -> None:
    tries = attempts(A, max_retries=1)
    assert tries.after(fault("unreachable"), 100.0) == Attempt(A, 0.5)
    assert tries.after(fault("unreachable"), 110.0) == Attempt(A, 1.0, is_return=True)
    assert tries.after(fault("unreachable"), 129.0) is None


def test_only_who_is_away_is_waited_for() -> None:
    tries = attempts(A, B, max_retries=1)
    assert tries.after(fault("unreachable"), 0.0) == Attempt(A, 0.5)
    assert tries.after(fault("unreachable"), 1.0) == Attempt(B)
    assert tries.after(fault("model_missing"), 1.0) == Attempt(A, 1.0, is_return=True)
    assert tries.after(fault("model_missing"), 2.0) is None


@pytest.mark.parametrize("policy", [{"max_retries": 0}, {"waits_for_return": False}])
def test_who_is_away_is_not_waited_for_against_the_settings(policy: dict[str, object]) -> None:
    seen = course(attempts(A, **policy), fault("unreachable"))
    assert sum(wait for _, wait in seen) <= 1.5


def test_fallbacks_can_be_turned_off_each_for_itself() -> None:
    assert course(attempts(A, B, fallback_on_error=False), fault("model_missing")) == [(A, 0)]
    limited = attempts(A, B, fallback_on_rate_limit=False, max_retries=1)
    assert course(limited, busy("rate_limit", 5)) == [(A, 0), (A, 5)]
    assert course(attempts(A, B, fallback_on_error=False), busy("rate_limit", 99)) == [(A, 0), (B, 0)]


def test_no_retries_means_none() -> None:
    assert course(attempts(A, max_retries=0), fault("server_error")) == [(A, 0)]


def test_a_model_that_failed_is_asked_last_for_a_while() -> None:
    pauses = Pauses()
    course(attempts(A, B, pauses=pauses, max_retries=0), fault("server_error"))
    assert attempts(A, C, pauses=pauses, now=14.0).first(14.0) == Attempt(C)
    assert attempts(A, C, pauses=pauses, now=15.0).first(15.0) == Attempt(A)


def test_a_model_that_is_not_there_is_asked_last_for_longer() -> None:
    pauses = Pauses()
    attempts(A, B, pauses=pauses).after(fault("model_missing"), 0.0)
    assert attempts(A, B, pauses=pauses, now=59.0).first(59.0) == Attempt(B)
    assert attempts(A, B, pauses=pauses, now=60.0).first(60.0) == Attempt(A)


@pytest.mark.parametrize("kind", ["unsupported", "filtered", "bad_request"])
def test_a_failure_that_lies_in_what_was_asked_is_not_held_against_the_model(kind: str) -> None:
    pauses = Pauses()
    assert attempts(A, B, pauses=pauses).after(fault(kind), 0.0) == Attempt(B)
    assert attempts(A, B, pauses=pauses, now=1.0).first(1.0) == Attempt(A)


def test_a_later_call_respects_what_the_server_asked_of_an_earlier_one() -> None:
    pauses = Pauses()
    attempts(A, pauses=pauses).after(busy("rate_limit", 20), 100.0)
    assert attempts(A, pauses=pauses, now=105.0).first(105.0) == Attempt(A, 15.0)
    assert attempts(A, B, pauses=pauses, now=105.0).first(105.0) == Attempt(B)
    assert attempts(A, pauses=pauses, now=105.0, max_wait_seconds=2).first(105.0) == Attempt(A, 2)


def test_a_model_that_cannot_be_waited_for_is_passed_over() -> None:
    pauses = Pauses()
    tries = attempts(A, B, C, pauses=pauses)
    pauses.hold(B, 100.0)
    assert tries.after(fault("model_missing"), 0.0) == Attempt(C)

"""When a judge's model that fails is asked again, and when it is left alone."""

from __future__ import annotations

import pytest

from local.core.errors import ModelBusy, ModelError
from local.critic.judge import PAUSE_SECONDS, SHORT_PAUSE_SECONDS, WAITS, CircuitBreaker, JudgeAway

DOWN = ModelError("it is down", kind="unreachable")
MISSING = ModelError("model m is not pulled: ollama pull m", kind="model_missing", status=404)


def test_a_failure_that_passes_is_waited_for_longer_each_time_and_then_left_alone() -> None:
    breaker = CircuitBreaker()
    assert [breaker.after(DOWN, failures, 0.0) for failures in (1, 2, 3)] == [*WAITS, None]
    with pytest.raises(JudgeAway, match="it is down") as caught:
        breaker.check(SHORT_PAUSE_SECONDS - 1)
    assert caught.value.kind == "unreachable"
    breaker.check(SHORT_PAUSE_SECONDS)


def test_a_model_that_is_missing_is_not_asked_again_for_a_while_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaker = CircuitBreaker()
    assert [breaker.after(MISSING, 1, now) for now in (0.0, 1.0, PAUSE_SECONDS + 2)] == [None] * 3
    with pytest.raises(JudgeAway):
        breaker.check(2 * PAUSE_SECONDS)
    assert breaker.problem == "model m is not pulled: ollama pull m"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_an_answer_ends_the_pause_and_the_problem() -> None:
    breaker = CircuitBreaker()
    breaker.after(MISSING, 1, 0.0)
    breaker.answered()
    breaker.check(1.0)
    assert breaker.problem == ""


def test_a_server_that_wants_to_be_asked_later_gets_its_wish() -> None:
    busy = ModelBusy("slow down", kind="rate_limit", status=429, retry_after=60.0)
    assert CircuitBreaker().after(busy, 1, 0.0) == 60.0


@pytest.mark.parametrize("kind", ["context_overflow", "bad_request", "filtered"])
def test_what_lies_in_one_answer_keeps_no_other_from_being_judged(kind: str) -> None:
    breaker = CircuitBreaker()
    assert breaker.after(ModelError("no", kind=kind), 1, 0.0) is None
    breaker.check(0.0)
    assert breaker.problem == ""

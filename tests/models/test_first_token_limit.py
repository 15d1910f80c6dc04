"""How long a model may be silent before its first word."""

from __future__ import annotations

from local.models.chat import Usage
from local.models.client import FirstTokenLimit


def used(**durations: float) -> Usage:
    return Usage(1000, 10, durations)


def test_a_model_that_nothing_is_known_of_has_no_limit_of_its_own() -> None:
    assert FirstTokenLimit().seconds(1_000_000) == 0


def test_the_limit_is_several_times_what_loading_and_reading_took_before() -> None:
    limit = FirstTokenLimit()
    limit.learn(4_000, used(load=50.0, prompt_eval=40.0))
    assert limit.seconds(0) == 4 * 50
    assert limit.seconds(8_000) == 4 * (50 + 80)


def test_a_prompt_from_the_server_s_cache_does_not_shorten_it_much() -> None:
    limit = FirstTokenLimit()
    limit.learn(4_000, used(load=50.0, prompt_eval=40.0))
    limit.learn(4_000, used(load=0.0, prompt_eval=0.1))
    assert limit.seconds(4_000) > 4 * 85


def test_a_wait_in_vain_doubles_the_limit_until_a_call_succeeds() -> None:
    limit = FirstTokenLimit()
    limit.in_vain(120.0)
    assert limit.seconds(10) == 240
    limit.learn(10, used())
    assert limit.seconds(10) == 0


def test_no_wait_is_longer_than_an_hour() -> None:
    limit = FirstTokenLimit()
    limit.in_vain(3_000.0)
    assert limit.seconds(10) == 3_600

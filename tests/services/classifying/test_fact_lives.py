"""Dialogues by chance, in eight languages: after every message the memory knows what is so, and nothing else."""

from __future__ import annotations

import pytest
from fact_table.fact_book import FactBook
from fact_table.fact_case import INVENTED
from fact_table.simulated_life import FORMS, SimulatedLife

SEEDS = (0, 1, 2)


def first_error(life: SimulatedLife, *, errs: bool, believe: bool = False) -> str:
    """What was said when the memory first knew something else than is so; empty if it never did."""
    book, moved = FactBook(), ""
    for message in life.messages():
        if message.deletes:
            book.delete(moved)
        else:
            claims = (*(message.wrong or message.right), *INVENTED) if errs else message.right
            said_in = book.tell(message.said, claims, believe=believe)
            moved = said_in if any(claim.startswith("home=") for claim in message.right) else moved
        if book.holds != life.facts:
            return message.said or "a deletion"
    return ""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("language", FORMS)
@pytest.mark.parametrize("errs", [False, True])
def test_what_is_known_is_what_is_so_at_any_time(language: str, seed: int, errs: bool) -> None:
    assert first_error(SimulatedLife(language, seed), errs=errs) == ""


@pytest.mark.parametrize("language", FORMS)
def test_whoever_believes_a_model_that_errs_knows_what_is_not_so(language: str) -> None:
    assert first_error(SimulatedLife(language, 0), errs=True, believe=True) != ""

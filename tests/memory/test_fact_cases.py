"""Facts as a user expects them, in ten languages, whether the model that claims them is right or errs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fact_table.fact_book import FactBook
from fact_table.fact_case import INVENTED, FactCase, cases
from fact_table.simulated_life import FORMS, SimulatedLife

CASES = cases()
LANGUAGES = sorted({case.language for case in CASES})


@pytest.fixture(scope="module")
def book() -> FactBook:
    return FactBook()


def told(book: FactBook, case: FactCase, claims: tuple[str, ...]) -> set[str]:
    book.clear()
    book.know(case.known)
    book.tell(case.said, claims)
    return book.holds


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("claims", [lambda case: case.right, lambda case: case.erring], ids=["right", "erring"])
def test_what_holds_is_what_a_user_expects_whether_the_model_is_right_or_errs(
    book: FactBook, claims: Callable[[FactCase], tuple[str, ...]], language: str, every: int
) -> None:
    chosen = [case for case in CASES if case.language == language][::every]
    told_of = {case: told(book, case, claims(case)) for case in chosen}
    assert {str(case): (holds, case.holds) for case, holds in told_of.items() if holds != set(case.holds)} == {}


def first_error(life: SimulatedLife, *, errs: bool) -> str:
    """What was said when the memory first knew something else than is so; empty if it never did."""
    book, moved = FactBook(), ""
    for message in life.messages():
        if message.deletes:
            book.delete(moved)
        else:
            claims = (*(message.wrong or message.right), *INVENTED) if errs else message.right
            said_in = book.tell(message.said, claims)
            moved = said_in if any(claim.startswith("home=") for claim in message.right) else moved
        if book.holds != life.facts:
            return message.said or "a deletion"
    return ""


@pytest.mark.parametrize("language", FORMS)
def test_what_is_known_is_what_is_so_at_any_time_whether_the_model_errs_or_not(language: str) -> None:
    assert [first_error(SimulatedLife(language, seed), errs=errs) for seed, errs in ((0, False), (1, True))] == ["", ""]

"""Facts as a user expects them, in ten languages, whether the model that claims them is right or errs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fact_table.fact_book import FactBook
from fact_table.fact_case import FactCase, cases

CASES = cases()
LANGUAGES = sorted({case.language for case in CASES})


@pytest.fixture(scope="module")
def book() -> FactBook:
    return FactBook()


def told(book: FactBook, case: FactCase, claims: tuple[str, ...], *, believe: bool = False) -> set[str]:
    book.clear()
    book.know(case.known)
    book.tell(case.said, claims, believe=believe)
    return book.holds


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("claims", [lambda case: case.right, lambda case: case.erring], ids=["right", "erring"])
def test_what_holds_is_what_a_user_expects_whether_the_model_is_right_or_errs(
    book: FactBook, claims: Callable[[FactCase], tuple[str, ...]], language: str
) -> None:
    told_of = {case: told(book, case, claims(case)) for case in CASES if case.language == language}
    assert {str(case): (holds, case.holds) for case, holds in told_of.items() if holds != set(case.holds)} == {}


def test_there_are_enough_cases_of_every_kind_and_language(book: FactBook) -> None:
    """A table that has lost its rows would prove nothing; nor would one that needs no judgement."""
    assert len(CASES) >= 120
    assert len(LANGUAGES) >= 8
    believed = [told(book, case, case.erring, believe=True) == set(case.holds) for case in CASES]
    assert not any(believed)

"""Facts as a user expects them, in ten languages, whether the model that claims them is right or errs."""

from __future__ import annotations

import pytest
from fact_table.fact_book import FactBook
from fact_table.fact_case import FactCase, cases

CASES = cases()


@pytest.fixture(scope="module")
def book() -> FactBook:
    return FactBook()


def told(book: FactBook, case: FactCase, claims: tuple[str, ...], *, believe: bool = False) -> set[str]:
    book.clear()
    book.know(case.known)
    book.tell(case.said, claims, believe=believe)
    return book.holds


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_holds_is_what_a_user_expects_where_the_model_is_right(book: FactBook, case: FactCase) -> None:
    assert told(book, case, case.right) == set(case.holds)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_holds_is_what_a_user_expects_where_the_model_errs(book: FactBook, case: FactCase) -> None:
    assert told(book, case, case.erring) == set(case.holds)


def test_there_are_enough_cases_of_every_kind_and_language(book: FactBook) -> None:
    """A table that has lost its rows would prove nothing; nor would one that needs no judgement."""
    assert len(CASES) >= 120
    assert len({case.language for case in CASES}) >= 8
    believed = [told(book, case, case.erring, believe=True) == set(case.holds) for case in CASES]
    assert not any(believed)

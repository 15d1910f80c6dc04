"""The errors of queries that end without an answer."""

from __future__ import annotations

import math

from local.core.errors import LocalError

MOST_RETRY_SECONDS = 60


class QueryRefused(LocalError):
    """A query that ended without an answer; `kind` and text are the generator's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TooManyQueries(QueryRefused):
    """A query was not taken on, because LoCAL2 itself has too much to do: so many are `waiting` that this one might not
    begin within `limit` seconds. `retry_seconds`: when to ask again, which is when those have begun, in `wait` seconds,
    and within a minute."""

    def __init__(self, waiting: int, limit: float, wait: float) -> None:
        self.retry_seconds = min(MOST_RETRY_SECONDS, max(1, math.ceil(wait)))
        super().__init__(
            "too_many_queries",
            f"{waiting} queries wait for LoCAL2 itself, so one more might not begin within {limit:g} s"
            f" (max_wait_seconds in api.yaml): ask again in {self.retry_seconds} s",
        )


class QueryIdTaken(QueryRefused):
    """A query_id that belongs to a query with another text, or of another user."""

    def __init__(self, query_id: str) -> None:
        super().__init__("conflict", f"query_id {query_id} was used for another query; choose a new one")


class QueryDeleted(LocalError):
    """A query_id that was asked once; the query or its end was deleted."""

    kind = "deleted"

    def __init__(self, query_id: str, user_id: str | None = None) -> None:
        super().__init__(f"query_id {query_id} was used for a query that was deleted; choose a new one")
        self.user_id = user_id  # of the query


class NotAccepted(LocalError):
    """A query that the journal did not confirm in time."""

    kind = "not_confirmed"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the query was not confirmed within {seconds:g} s; ask again with the same query_id")


class GeneratorSilent(LocalError):
    """A generator that has a query to answer and was silent for too long."""

    kind = "unavailable"

    def __init__(self, seconds: float) -> None:
        text = "the query is recorded and continues when the journal is back: ask again with the same query_id"
        super().__init__(f"the generator was silent for {seconds:g} s; {text}")


class NobodyAnswers(LocalError):
    """The absence of a required participant that is not about to start."""

    kind = "unavailable"

    def __init__(self, reason: str, *, is_accepted: bool = False) -> None:
        rest = "; the query is recorded and continues when the problem is solved: ask again with the same query_id"
        super().__init__(f"no answer is possible now: {reason}{rest if is_accepted else ''}")


class AnswerNotOnRecord(LocalError):
    """An answered query whose answer has not reached the journal yet."""

    kind = "unavailable"

    def __init__(self, query_id: str) -> None:
        super().__init__(
            f"the answer to query {query_id} is not on record yet, where a rating of it belongs: rate again"
        )


class AskerStopping(LocalError):
    """The asking process is stopping; accepted queries continue."""

    kind = "stopping"

    def __init__(self) -> None:
        super().__init__("this process is stopping; an accepted query continues: ask again with the same query_id")

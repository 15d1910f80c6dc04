"""How a door fails whoever asks it, through no fault of theirs."""

from __future__ import annotations

from local.errors import LocalError


class NotAccepted(LocalError):
    """The journal did not confirm a query in time."""

    kind = "not_confirmed"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the query was not confirmed within {seconds:g} s; ask again with the same query_id")


class GeneratorSilent(LocalError):
    """Nothing was heard for long of a generator that has a query to answer."""

    kind = "unavailable"

    def __init__(self, seconds: float) -> None:
        text = "the query is on record and goes on when it is back: ask again with the same query_id"
        super().__init__(f"nothing was heard of the generator for {seconds:g} s; {text}")


class AnswerOnItsWay(LocalError):
    """A query is answered, and the journal has not been given the answer yet."""

    kind = "unavailable"

    def __init__(self, query_id: str) -> None:
        super().__init__(
            f"the answer to query {query_id} is not on record yet, where a rating of it belongs: rate again"
        )


class DoorStopping(LocalError):
    """This door closes; queries that were accepted go on without it."""

    kind = "stopping"

    def __init__(self) -> None:
        super().__init__("this door is closing; an accepted query goes on: ask again with the same query_id")

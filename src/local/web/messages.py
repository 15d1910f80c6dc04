"""A search that the owner makes to see whether searching works."""

from __future__ import annotations

from pydantic import Field

from local.bus.message import Delivery, ErrorInfo, Message


class SearchTrial(Message):
    """A frontend, for an owner who tries the web search."""

    subject = "search.trial"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "web_search"
    query: str = Field(min_length=1, max_length=400)


class SearchTrialResult(Message):
    """The answer to that: the text that a model would read, the addresses in it, and the provider that answered; or why
    there is none.
    """

    subject = "search.tried"
    delivery = Delivery.EPHEMERAL
    provider: str = ""
    text: str = ""
    sources: tuple[str, ...] = ()
    error: ErrorInfo | None = None

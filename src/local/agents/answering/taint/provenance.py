"""Where what a model may want to use comes from: what the user has said, what searches and pages have given, and what
is private."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic_core import from_json

from local.agents.answering.taint.address_book import AddressBook, addresses_in, parsed, spoken_addresses_in
from local.protocol.messages import ToolCallRecord
from local.protocol.turn_tools import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH
from local.services.judging.neutral import MARGIN

MOST_IN_TEXT = 200  # addresses of one result's text
FETCH, SEARCH, RECALL, READ_ON = "web_fetch", "web_search", "search_memory", "read_result"
_SAID = re.compile(r" \(said [^)]*\)")  # when that was is nobody's secret


@dataclass(frozen=True, slots=True)
class Provenance:
    """`spoken` are the user's own words in this conversation, `private` texts of theirs that are not of it. `hits` are
    the addresses that the user or a search has given, `links` those that stand on pages or were opened. A host that is
    `always_readable` is one where strangers can neither publish nor read who has asked for what."""

    spoken: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    hits: AddressBook = field(default_factory=AddressBook)
    links: AddressBook = field(default_factory=AddressBook)
    always_readable: Collection[str] = ()

    @classmethod
    def of(
        cls,
        spoken: Sequence[str],
        private: Iterable[str],
        calls: Iterable[ToolCallRecord],
        always_readable: Collection[str] = (),
    ) -> Provenance:
        """The provenance of what was said and called in a conversation up to now."""
        calls = list(calls)
        spoken = (*spoken, *(own for call in calls if (own := own_words(call))))
        read = (_private_in(call) for call in calls if call.result and not _is_public(call))
        hits = AddressBook(address for text in spoken for address in spoken_addresses_in(text))
        links = AddressBook()
        for call in calls:
            _note(call, hits, links)
        return cls(spoken, (*private, *read), hits, links, always_readable)

    def address(self, address: str) -> str | None:
        """An address as it may be shown: as somebody has given it, or on a host that is always readable."""
        given = self.hits.given(address) or self.links.given(address)
        return given or (address if "#" not in address and self.is_always_readable(address) else None)

    def is_always_readable(self, address: str) -> bool:
        """Whether asking for that tells nobody anything."""
        url = parsed(address)
        return url is not None and url.netloc in self.always_readable and "?" not in url.target


def _note(call: ToolCallRecord, hits: AddressBook, links: AddressBook) -> None:
    if call.tool not in (FETCH, SEARCH) or call.result is None:
        return
    if call.tool == SEARCH:
        for address in call.sources:
            hits.add(address)
    for address in (*call.sources, *call.links, *islice(addresses_in(call.result), MOST_IN_TEXT)):
        links.add(address)


def own_words(call: ToolCallRecord) -> str | None:
    """What the user has said to a question of the model; nothing where that is one of the options, for those are words
    of the model, which may be those of strangers."""
    if call.tool != CLARIFICATION or call.result is None:
        return None
    is_option = any(_plain(str(option)) == _plain(call.result) for option in call.args.get("options") or ())
    return None if is_option else call.result


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_public(call: ToolCallRecord) -> bool:
    """Whether what a call has brought is of the web, or was said in this conversation, or is our own."""
    return call.tool in (FETCH, SEARCH, CLARIFICATION, TODO_LIST, PROPOSE_PLAN, PLAN_STEP, TOOL_SEARCH) or (
        call.tool == READ_ON and bool(call.sources)
    )


def _private_in(call: ToolCallRecord) -> str:
    """What any other tool has brought: all of it, of memories what is told."""
    return told(call.result or "") if call.tool == RECALL else call.result or ""


def told(recollection: str) -> str:
    """What of the text of search_memory is the user's: quotations, and the values of facts."""
    lines = (_SAID.sub("", line) for line in recollection.splitlines() if line.startswith((MARGIN, "- ")))
    return "\n".join(line.removeprefix(MARGIN) for line in lines)


def calls_in(outcomes: Iterable[str]) -> list[ToolCallRecord]:
    """The calls in the stored ends of turns, which are JSON."""
    return [ToolCallRecord.model_validate(call) for outcome in outcomes for call in _calls(from_json(outcome))]


def _calls(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    return list(outcome.get("tool_calls") or ())

"""Which calls of a tainted turn are made, and how: decided outside the model, whatever it was told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from local.agents.answering.taint.private_words import PrivateWords
from local.agents.answering.taint.provenance import FETCH, SEARCH, Provenance

MOST_LINKS = 5  # of those that pages have given, opened in one turn
NOT_GIVEN, PRIVATE_WORDS, TAINTED = "not_given", "private_words", "tainted"
REFUSALS = frozenset({NOT_GIVEN, PRIVATE_WORDS, TAINTED})  # kinds
_WHY = "This conversation holds text of strangers (a page, a search, a file or a tool's result)"
_SHOWN = 300  # characters of what is refused


class TaintRefusal(NamedTuple):
    """Why a call is not made: a word for programs, and a sentence for the model and the user."""

    kind: str
    message: str


@dataclass(slots=True)
class TaintPolicy:
    """For the calls of one message of the model, which are to be shown to it in their order. `opened` are addresses
    that were opened earlier in the turn, `may_write` tools with effects that may be used all the same, `public` is
    what stands in every prompt."""

    provenance: Provenance
    opened: Iterable[str] = ()
    may_write: Collection[str] = ()
    public: str = ""
    _links: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for address in self.opened:
            self._fetch_refusal(address)

    def refusal(self, tool: str, args: Mapping[str, Any], effect: str) -> TaintRefusal | None:
        """Why that call is not made, or None if it is."""
        if effect == "write" and tool not in self.may_write:
            return TaintRefusal(TAINTED, f"{tool} was not run, because it changes something. {_WHY}; {_TO_WRITE}")
        if tool == FETCH:
            return self._fetch_refusal(str(args.get("url", "")))
        return self._search_refusal(str(args.get("query", ""))) if tool == SEARCH else None

    def as_given(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call that is made: an address is opened as it was given, however the model writes it."""
        address = str(args.get("url", ""))
        if tool != FETCH:
            return dict(args)
        return {**args, "url": self.provenance.address(address) or address}

    def stays_on_host(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether redirects of that call to other hosts are to be refused."""
        address = str(args.get("url", ""))
        given = self.provenance.hits.given(address) or self.provenance.links.given(address)
        return tool == FETCH and given is None

    def _fetch_refusal(self, address: str) -> TaintRefusal | None:
        if self.provenance.hits.given(address) or self.provenance.is_always_readable(address):
            return None
        given = self.provenance.links.given(address)
        shown = address[:_SHOWN]
        if given is None:
            return TaintRefusal(NOT_GIVEN, f"{shown} was not opened. {_WHY}, and that address {_TO_READ}")
        if given not in self._links and len(self._links) >= MOST_LINKS:
            text = f"{shown} was not opened: {MOST_LINKS} links of pages were followed for this question already"
            return TaintRefusal(NOT_GIVEN, f"{text}. {_WHY}; the user can have that address opened by naming it.")
        self._links.add(given)
        return None

    def _search_refusal(self, query: str) -> TaintRefusal | None:
        found = PrivateWords(self.provenance.private, self.provenance.spoken, self.public).found_in(query)
        if not found:
            return None
        words = ", ".join(f"“{word[:_SHOWN]}”" for word in found)
        return TaintRefusal(PRIVATE_WORDS, f"nothing was searched for. {_WHY}, and {words} {_TO_SEARCH}")


_TO_READ = (
    "stands neither in the user's words nor in a search hit nor among the links of a page that was read. The user can"
    " have it opened by naming it."
)
_TO_SEARCH = "stands in what is private to the user. Search in other words; the user can have it searched by saying it."
_TO_WRITE = "a tool with effects runs then only if it is on the list may_write in generator.yaml."

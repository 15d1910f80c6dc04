"""The tools offered in a conversation: a list that is made once and stays the same in every turn.

It concerns the prompt alone: what a call may do is independent of the list.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from local.bus.messages import AnswerOptions, ToolSchema
from local.bus.vocabulary import CALL_TOOL, TOOL_SEARCH
from local.generator.builtin_tools import SCHEMAS
from local.generator.context import ToolFunction
from local.generator.history import ConversationService
from local.generator.short_schemas import OURS, TABLE, as_function
from local.models.settings import Tier

SHARE = 0.25  # of the model's window, for all schemas together
MOST: Final[Mapping[Tier, int]] = MappingProxyType({Tier.SMALL: 10, Tier.MID: 32, Tier.LARGE: 100})
_SEARCH = (TOOL_SEARCH, CALL_TOOL)


@dataclass(frozen=True, slots=True)
class OfferRules:
    """The owner's rules about which tools are offered: the `most` tools for a model of each size, tools that are
    offered beside those of the table or not at all, and whether the `work_phases` of a turn decide which of the list
    its model is shown."""

    most: Mapping[Tier, int] = field(default_factory=lambda: MOST)
    add: tuple[str, ...] = ()
    remove: frozenset[str] = frozenset()
    work_phases: bool = False


@dataclass(frozen=True, slots=True)
class ToolRoom:
    """The room for tools in a prompt: so many `tokens` for all schemas, as `tokens_of` counts them."""

    tokens: int
    tokens_of: Callable[[ToolFunction], int]


@dataclass(frozen=True, slots=True)
class ToolList:
    """Tools in order, as in the model's prompt."""

    functions: tuple[ToolFunction, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(function["function"]["name"] for function in self.functions)

    def encode(self) -> str:
        """Return the list as it is stored."""
        return json.dumps(self.functions, ensure_ascii=False)

    @classmethod
    def decode(cls, text: str) -> Self:
        """A stored list."""
        return cls(_functions_of(text))


@lru_cache(maxsize=64)  # a session's turns need it again, and most sessions have the same one
def _functions_of(text: str) -> tuple[ToolFunction, ...]:
    return tuple(map(ToolFunction, json.loads(text)))


def kind_of(tier: Tier, options: AnswerOptions | None) -> str:
    """Which of a conversation's lists counts for a query: there is one for each size of model, and for each choice of
    tools that a query or its profile makes by name."""
    chosen = chosen_tools(options)
    if chosen is None:
        return tier.value
    return f"{tier.value} {hashlib.sha256(json.dumps(sorted(chosen)).encode()).hexdigest()[:16]}"


def chosen_tools(options: AnswerOptions | None) -> frozenset[str] | None:
    """The tools that a query or its profile names as those that it wants at most; None if it names none."""
    profile = options.profile.tools if options is not None and options.profile is not None else None
    named = [set(names) for names in (options.allow if options else None, profile) if names is not None]
    return frozenset(set.intersection(*named)) if named else None


def first_list(
    tools: Mapping[str, ToolSchema], tier: Tier, rules: OfferRules, room: ToolRoom, *, are_chosen: bool = False
) -> ToolList:
    """The list of a conversation that begins where these tools can be called: those of the table, then those that the
    owner has added to the system, as many as there is room for, then those that the owner wants beside them. Where
    more is left, the model finds it by a search. Tools that a query has chosen (`are_chosen`) need not be in the table.
    """
    table: Sequence[str] = TABLE[tier]
    if are_chosen:
        table = [name for name in TABLE[Tier.LARGE] if name in TABLE[tier] or name not in SCHEMAS]
    theirs = sorted(tools.keys() - OURS - SCHEMAS.keys(), key=lambda name: ("__" in name, name))  # an MCP server's last
    wanted = [name for name in (*table, *theirs) if name in tools and name not in rules.remove]
    listed, left = list[ToolFunction](), room.tokens
    for name in wanted[: rules.most[tier]]:
        function = as_function(tools[name], tier)
        left -= room.tokens_of(function)
        if left < 0:
            break
        listed.append(function)
    names = [function["function"]["name"] for function in listed]
    names += [name for name in rules.add if name in tools and name not in names]
    rest = (name for name in tools if name not in {*names, *SCHEMAS, *rules.remove})
    if any(tier is not Tier.SMALL or name not in OURS for name in rest):
        names += [name for name in _SEARCH if name in tools]
    return ToolList((*listed, *(as_function(tools[name], tier) for name in names[len(listed) :])))


def extended(listed: ToolList, wanted: Iterable[str], tools: Mapping[str, ToolSchema], tier: Tier) -> ToolList:
    """The list with further tools at its end, those of `wanted` that are there and not on it."""
    more = [name for name in dict.fromkeys(wanted) if name in tools and name not in listed.names]
    return ToolList((*listed.functions, *(as_function(tools[name], tier) for name in more))) if more else listed


def named_in(question: str, names: Iterable[str]) -> list[str]:
    """Return the tools whose whole name occurs in a question, in the order of their names."""
    words = set(re.findall(r"[\w-]+", question))
    return sorted(name for name in names if name in words)


class KeptTools(NamedTuple):
    """A stored list: which of the conversation's lists it is, and its tools."""

    kind: str
    body: str


@dataclass(slots=True)
class TurnOffer:
    """The tools offered in one turn: the conversation's list, or a new one.

    `stored` is the recorded list, under its `kind`. `wanted` are tools that have to be on it in this turn. An
    `is_final` list is stored for the conversation; one that is made while the model's size or the tools are unknown is
    not.
    """

    rules: OfferRules = OfferRules()
    tier: Tier = Tier.LARGE
    stored: str | None = None
    wanted: Sequence[str] = ()
    kind: str = ""
    is_final: bool = False
    _settled: ToolList | None = field(default=None, init=False)

    def settle(
        self, tools: Mapping[str, ToolSchema], question: str, options: AnswerOptions | None, room: ToolRoom
    ) -> ToolList:
        """The list, made with the turn's first call of this: it stays the same in all others."""
        if self._settled is None:
            if self.stored is None:
                chosen = chosen_tools(options) is not None
                listed = first_list(tools, self.tier, self.rules, room, are_chosen=chosen)
            else:
                listed = ToolList.decode(self.stored)
            named = named_in(question, (name for name in tools if name not in SCHEMAS))
            self._settled = extended(listed, (*self.wanted, *named), tools, self.tier)
        return self._settled

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the tools on the list, as far as it is made or stored."""
        if self._settled is not None:
            return self._settled.names
        return () if self.stored is None else ToolList.decode(self.stored).names

    @property
    def to_keep(self) -> KeptTools | None:
        """Return the list as it is stored with the end of the turn; None if it is stored already."""
        if self._settled is None or not self.is_final:
            return None
        text = self._settled.encode()
        return None if text == self.stored else KeptTools(self.kind, text)


# The list of tools that the model of a session is offered, as the session's first turn was given it.

_KEEP = (
    "INSERT INTO tool_lists SELECT session_id, respondent_id, :kind, :body FROM turns WHERE query_id = :query"
    " AND respondent_id = :own AND refused IS NULL ON CONFLICT DO UPDATE SET body = excluded.body"
)


class ToolListRecord:
    """The stored tool lists of one respondent's record. A session has one list of each kind."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    def of(self, session_id: str, kind: str) -> str | None:
        """Return the list of that kind; None if the session has none, because it is older than these lists."""
        sql = "SELECT body FROM tool_lists WHERE session_id = ? AND respondent_id = ? AND kind = ?"
        key = (session_id, self._own, kind)
        row = self._conversation.glance(lambda db: db.execute(sql, key).fetchone())
        return None if row is None else str(row[0])


def list_kept(query_id: str, respondent_id: str, kind: str, body: str) -> Callable[[sqlite3.Connection], object]:
    """Return the statement that stores a list for the session of a query, with the end of its turn."""
    values = {"query": query_id, "own": respondent_id, "kind": kind, "body": body}
    return lambda db: db.execute(_KEEP, values)

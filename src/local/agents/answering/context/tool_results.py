"""What the model reads of its tools' results: whole, an excerpt, or a line that says how to get them again. No I/O."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from local.agents.answering.context.excerpt import MARK_ROOM, excerpt
from local.agents.answering.context.token_budget import TokenMeter
from local.models.chat import Json

LEFT_OUT = "[left out to save room]"
LONGEST_ARGS = 120
LEAST_EXCERPT = 4 * MARK_ROOM  # characters; less would be marks alone


def signature(call: Json) -> str:
    """Equal for calls that ask for the same."""
    function = call["function"]
    return f"{function['name']} {json.dumps(function['arguments'], sort_keys=True, ensure_ascii=False)}"


def calls_of(group: Sequence[Json]) -> list[Json]:
    """The calls in a message that the results after it answer."""
    return list(group[0].get("tool_calls") or ())


def has_results(group: Sequence[Json]) -> bool:
    """Whether a group of messages is a round of tool calls."""
    return len(group) > 1


def masked(group: Sequence[Json], again: frozenset[str]) -> tuple[Json, ...]:
    """A round with every result replaced by its stub, where that is shorter. `again` are the calls that may be made
    once more."""
    results = [_shortest(result, _stub(result, call, again)) for call, result in _pairs(group)]
    return (group[0], *results)


def without_thinking(group: Sequence[Json]) -> tuple[Json, ...]:
    """A round without what the model thought when it made the calls."""
    return ({name: value for name, value in group[0].items() if name != "thinking"}, *group[1:])


def fitted(group: Sequence[Json], question: str, tokens: int, meter: TokenMeter) -> tuple[Json, ...]:
    """A round whose results together take at most so many tokens: those that are too long for their share enter with
    what has most to do with the question and the call. Only results that are one line already may take more."""
    costs = [meter.message(result) for result in group[1:]]
    if sum(costs) <= tokens:
        return tuple(group)
    shares = _shares(costs, tokens)
    cuts = (
        _cut(result, f"{question} {signature(call)}", share, meter)
        for (call, result), share in zip(_pairs(group), shares, strict=True)
    )
    return (group[0], *cuts)


def repeatable_calls(groups: Sequence[Sequence[Json]], tools: Sequence[Json]) -> frozenset[str]:
    """The calls that the model may make once more: of a tool that is offered, and not repeated yet."""
    offered = {tool["function"]["name"] for tool in tools}
    made = Counter(signed for group in groups for signed in {signature(call) for call in calls_of(group)})
    return frozenset(signed for signed, times in made.items() if times == 1 and signed.partition(" ")[0] in offered)


def headed(group: Sequence[Json], note: str) -> tuple[Json, ...]:
    """A round whose first result begins with a note."""
    calling, first, *others = group
    return (calling, {**first, "content": f"{note}\n{first['content']}"}, *others)


def left_out_calls(groups: Sequence[Sequence[Json]]) -> str:
    """The line that stands for whole rounds."""
    names = dict.fromkeys(call["function"]["name"] for group in groups for call in calls_of(group))
    return f"[earlier calls and their results are left out to save room: {', '.join(names)}]"


def _pairs(group: Sequence[Json]) -> list[tuple[Json, Json]]:
    """Calls and their results, which come in the order of the calls."""
    return list(zip(calls_of(group), group[1:], strict=True))


def _stub(result: Json, call: Json, again: frozenset[str]) -> str:
    args = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    args = args if len(args) <= LONGEST_ARGS else f"{args[:LONGEST_ARGS]}…"
    what = f"{call['function']['name']} {args}: {len(result['content']):,} characters left out to save room"
    return f"[{what}; to read them again, make the same call]" if signature(call) in again else f"[{what}]"


def _shortest(result: Json, text: str) -> Json:
    return {**result, "content": text} if len(text) < len(result["content"]) else result


def _shares(costs: Sequence[int], tokens: int) -> list[int]:
    """Fair shares: what the short ones do not need is for the long ones."""
    shares = [0] * len(costs)
    order = sorted(range(len(costs)), key=costs.__getitem__)
    for number, index in enumerate(order):
        shares[index] = min(costs[index], max(0, tokens) // (len(order) - number))
        tokens -= shares[index]
    return shares


def _cut(result: Json, asked: str, tokens: int, meter: TokenMeter) -> Json:
    content = result["content"]
    room = tokens - meter.message({**result, "content": ""})
    limit = min(len(content), meter.characters(content, room))
    cut = result
    # An excerpt may have more tokens to the character than the whole text.
    while meter.message(cut) > tokens and limit >= LEAST_EXCERPT:
        cut = {**result, "content": excerpt(content, asked, limit)}
        limit = limit * 3 // 4
    return cut if meter.message(cut) <= tokens else _shortest(result, LEFT_OUT)

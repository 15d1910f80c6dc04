"""Finds the facts in what a user says about themselves: a few sentences in the first person, known by their form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from local.models.stand_in.schema_value import resolve, smallest

Json = dict[str, Any]

_REST = r"[^,;]+?)(?:,? (?:and|but) (?:i|my) .*|[,;].*)?$"  # of the sentence, without the next one
_VALUE, _THING = r"(?P<value>" + _REST, r"(?P<thing>" + _REST
_OF_OTHERS = "the {thing}"  # a fact only if the user says that it is to be remembered
# The first form that fits a sentence gives its fact; in a slot, {} is what the form has named. Of what one can have
# several at a time each has a slot of its own, or the next one would take its place.
_FORMS = tuple(
    (re.compile(form if "?P<value>" in form else form + _VALUE, re.I), slot)
    for form, slot in (
        (r"^i (?P<what>take|drink|like|eat|want) my (?P<thing>\w+(?: \w+)??) (?=\w)", "how I {what} my {thing}"),
        (r"^i live (?:in|at|near|on) ", "where I live"),
        (r"^i work (?:in|at|for) ", "where I work"),
        (r"^i work as (?:an? )?", "what I work as"),
        (r"^i(?: am|'m) (?P<value>allergic) to " + _THING, "how I react to {thing}"),
        (r"^i(?: am|'m) called ", "my name"),
        (r"^i (?P<value>prefer|like|love|hate|dislike) " + _THING, "how I feel about {thing}"),
        (r"^my favou?rite (?P<thing>\w+(?: \w+)?) is ", "my favourite {thing}"),
        (r"^my (?P<thing>\w+(?: \w+){0,3}?) (?:is|are) ", "my {thing}"),
        (r"^the (?P<thing>\w+(?: \w+){0,3}?) (?:is|are) ", _OF_OTHERS),
    )
)
_REMEMBER = re.compile(r"^(?:please )?(?:remember|note|keep in mind)(?: that|:)? ", re.I)
_FILLER = re.compile(r"\b(?:actually|now|by the way|just so you know|these days)\b,? ?", re.I)
_UNSURE = re.compile(r"\b(?:i think|maybe|perhaps|probably|possibly|might)\b,? ?", re.I)
_NO_MORE = re.compile(r"\bno longer ", re.I)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_THANKS = re.compile(r"^\s*(?:thanks|thank you|great|well done|wrong|that is (?:wrong|right))\b", re.I)


def classify(text: str, schema: Json) -> Json:
    """What a user's words come to, in the form that `schema` describes; no facts where none of the forms fits."""
    facts = [fact for sentence in _SENTENCE_END.split(text) if (fact := _fact(sentence.strip()))]
    said = {"intent": _intent(text, facts), "entities": list(dict.fromkeys(_NAME.findall(text)))[:10], "facts": facts}
    shaped: Json = _shaped(said, schema, schema)
    return shaped


def _fact(sentence: str) -> Json | None:
    if sentence.endswith("?"):
        return None
    told, to_remember = _REMEMBER.subn("", sentence)
    sure, unsure = _UNSURE.subn("", _FILLER.sub("", told).rstrip(".! "))
    holds, no_more = _NO_MORE.subn("", sure)
    for form, slot in _FORMS:
        if (found := form.match(holds)) and (to_remember or slot != _OF_OTHERS):
            named = {name: text.lower() for name, text in found.groupdict().items() if name != "value"}
            fact = {"slot": slot.format(**named), "value": found["value"].strip()}
            return fact | {"certain": not unsure, "retracts": bool(no_more)}
    return None


def _intent(text: str, facts: list[Json]) -> str:
    if facts:
        return "statement"
    if text.rstrip().endswith("?"):
        return "question"
    return "feedback" if _THANKS.match(text) else "other"


def _shaped(value: Any, schema: Any, root: Json) -> Any:
    """The value with the keys that the schema has, and the smallest values of those that it requires besides."""
    schema = resolve(schema["$ref"], root) if "$ref" in schema else schema
    if isinstance(value, list):
        return [_shaped(item, schema.get("items") or {}, root) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return value
    known = {key: _shaped(value[key], properties[key], root) for key in properties if key in value}
    return smallest(schema, root) | known

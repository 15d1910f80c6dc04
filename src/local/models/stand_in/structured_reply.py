"""Replies in the form of a JSON Schema: the facts in what a user says, or the smallest value there is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

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
        (r"^i(?: am|'m) (?:(?:\w+ly|very|so) )?allergic to ", "allergies"),
        (r"^i(?: have|'ve got| have got| suffer from) an? (?:\w+ )??(?P<value>[\w-]+) allergy", "allergies"),
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
_EXCHANGE = re.compile(r"^\[(?P<number>\d+)\] The user said:\n(?P<said>.*)", re.M)
_DREAMS = 3
_SOUL = re.compile(r"The assistant's soul, as it reads now:\n(?P<lines>(?:>.*\n?)*)")
_QUOTED = re.compile(r"^> ?(.*)$", re.M)
_REMIND_ME = re.compile(r"^remind me (?:to )?", re.I)
_IS_DONE = re.compile(r"\bthe goal is reached\b", re.I)
_FROM_NOW_ON = re.compile(r"from now on\b", re.I)
NOTHING = "(nothing)"
_THANKS = re.compile(r"^\s*(?:thanks|thank you|great|well done|wrong|that is (?:wrong|right))\b", re.I)


def classify(text: str, schema: Json) -> Json:
    """What a user's words come to, in the form that `schema` describes; no facts where none of the forms fits."""
    facts = [fact for sentence in _SENTENCE_END.split(text) if (fact := _fact(sentence.strip()))]
    said = {"intent": _intent(text, facts), "entities": list(dict.fromkeys(_NAME.findall(text)))[:10], "facts": facts}
    shaped: Json = _shaped(said, schema, schema)
    return shaped


def dream(text: str) -> Json:
    """What the user has said in the first exchanges that are shown, each with its number."""
    found = list(_EXCHANGE.finditer(text))[:_DREAMS]
    said = [(each["said"].strip(" |>"), int(each["number"])) for each in found]
    dreams = [{"text": f"The user said: {words}", "sources": [number]} for words, number in said]
    return {"dreams": dreams, "soul": _soul(text), "skill": {"name": "", "description": "", "instructions": ""}}


def thought(text: str) -> Json:
    """What the user has said in the last exchange that is shown."""
    said = [each["said"].strip(" |>") for each in _EXCHANGE.finditer(text)]
    return {"thought": f"The user said: {said[-1]}" if said else ""}


def check(text: str) -> Json:
    """A goal that begins with “Remind me” is said once; one that the user says is done is reached."""
    goal, *before = _QUOTED.findall(text) or [""]
    wanted = _REMIND_ME.sub("", goal)
    is_done = any(_IS_DONE.search(each["said"]) for each in _EXCHANGE.finditer(text))
    is_said = wanted != goal and before[:1] == [NOTHING]
    return {"has_something_to_say": is_said, "text": f"You wanted to {wanted}" if is_said else "", "is_done": is_done}


def _soul(text: str) -> str:
    """The soul with what the user wants from now on, if anything."""
    wanted = [said for each in _EXCHANGE.finditer(text) if _FROM_NOW_ON.match(said := each["said"].strip(" >"))]
    now = _SOUL.match(text)
    lines = [line.removeprefix(">").strip() for line in now["lines"].splitlines()] if now else []
    return "\n".join([*(line for line in lines if line != NOTHING), *wanted]) if wanted else ""


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


_MAX_DEPTH = 20


def smallest(schema: Any, root: Json | None = None, depth: int = 0) -> Any:
    """A minimal value valid for the schema: required properties only; `pattern` and `not` are not looked at."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        return smallest(resolve(schema["$ref"], root), root, depth + 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return smallest(schema[key][0], root, depth + 1)
    if schema.get("allOf"):
        merged = {key: value for part in schema["allOf"] for key, value in part.items()}
        return smallest({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, root, depth + 1)
    return _of_type(schema, root, depth)


def resolve(reference: str, root: Json) -> Any:
    """What a local `$ref` points at."""
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if part and isinstance(node, dict) else node
    return node


def _of_type(schema: Json, root: Json, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: smallest(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
        case "array":
            return [smallest(schema.get("items", {}), root, depth + 1) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number" as numeric:
            return _number(schema, whole=numeric == "integer")
        case "boolean":
            return False
        case "null":
            return None
    return "-" * schema.get("minLength", 0)


def _number(schema: Json, *, whole: bool) -> float:
    if "exclusiveMinimum" in schema:
        above = float(schema["exclusiveMinimum"])
        return math.floor(above) + 1 if whole else above + 1e-6
    low: float = schema.get("minimum", min(0, schema.get("maximum", 0)))
    return math.ceil(low) if whole else low

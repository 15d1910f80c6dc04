"""Facts that plain English sentences state or deny, found by rules without a model.

There are few forms, each of which leaves nothing to guess. They are looked for as soon as an exchange is stored, so
that the next conversation knows the fact, whenever the model that classifies may have its turn. What is found here is a
claim like a model's: it has to stand the same examination (`grounding.decide`).
"""

from __future__ import annotations

import re

from local.services.classifying.prompt import Claim

_AFTER = (
    r"(?=\s*(?:[.!?\n,;:()–—]|$"
    r"| (?:and|but|because|so|which|since|now|not|instead|rather|any ?more|too|though|either|as well|by the way)\b))"
)
_VALUE = r"(?P<value>[^.!?\n,;:()]{1,80}?)" + _AFTER
_WORD = (
    r"(?!(?:and|or|but|not|i|my|we|it|is|are|am|was|have|has|had|this|that|so|because|which|since|now|any ?more|too"
    r"|though|either|instead|rather|keep|please|can|could|will|would|live|love|like|hate|work|take|need|want)\b)[\w'’-]+"
)
_ITEM = rf"{_WORD}(?: {_WORD}){{0,2}}"
_LIST = rf"(?P<list>{_ITEM}(?:(?:, {_ITEM})*,? (?:and|or) {_ITEM})?){_AFTER}"
_BETWEEN = re.compile(r",? (?:and|or) |, ")
_I_AM = r"\bi(?: am|['’]m) (?:not |no longer )?"
_I = r"\bi (?:no longer |do(?:n['’]t| not) )?"
_FORMS = tuple(
    (re.compile(form, re.IGNORECASE), slot)
    for form, slot in (
        (_I_AM + r"(?:\w+ly |very |also )?allergic to " + _LIST, "allergies"),
        (r"\bi(?: have| have got|['’]ve got) an? (?:\w+ )?allergy to " + _LIST, "allergies"),
        (
            r"\bi(?: have| have got|['’]ve got) an? (?:(?:very|severe|serious|bad|mild|strong) )*"
            rf"(?P<value>{_WORD}) allergy\b",
            "allergies",
        ),
        (r"\bmy allerg(?:ies are|y is)(?: to)? " + _LIST, "allergies"),
        (r"\bmy name is " + _VALUE, "my name"),
        (_I + r"live (?:in|at|near) " + _VALUE, "where I live"),
        (_I + r"work (?:at|for) " + _VALUE, "where I work"),
        (_I + r"work as (?:an? )?" + _VALUE, "what I work as"),
        (r"\bi was born (?:on|in) " + _VALUE, "when I was born"),
        (r"\bmy birthday is (?:on )?" + _VALUE, "my birthday"),
        (_I_AM + r"(?:a )?(?=(?:vegan|vegetarian|pescatarian)\b)" + _VALUE, "my diet"),
        (_I_AM + r"(?:a )?(?=(?:diabetic|coeliac|celiac|lactose intolerant)\b)" + _VALUE, "my health"),
    )
)  # fmt: skip


def stated_plainly(own_words: str) -> tuple[Claim, ...]:
    """What the user's own words state in one of these forms, each once; each item of a list is a claim of its own."""
    found = (
        Claim(slot=slot, value=value.strip())
        for form, slot in _FORMS
        for hit in form.finditer(own_words)
        for value in (_BETWEEN.split(hit["list"]) if "list" in form.groupindex else [hit["value"]])
    )
    return tuple(dict.fromkeys(claim for claim in found if claim.value))

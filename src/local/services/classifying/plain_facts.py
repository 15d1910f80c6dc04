"""Facts that plain English sentences state, found without a model: few forms, each of which leaves nothing to guess.

They count where the model that classifies has failed its self-test. What is found here is a claim like a model's: it
has to stand the same examination (`grounding.decide`).
"""

from __future__ import annotations

import re

from local.services.classifying.prompt import Claim

_END = r"(?P<value>[^.!?\n,;:()]{1,80}?)(?=\s*(?:[.!?\n,;:()]|$| (?:and|but|because|so|which|since|now)\b))"
_LIST = r"(?P<value>[^.!?\n;:()]{1,120}?)(?=\s*(?:[.!?\n;:()]|$|,? (?:and|but|because|so) (?:i|my|we)\b))"
_I_AM = r"\bi(?: am|['’]m) "
_FORMS = tuple(
    (re.compile(form + (_LIST if slot == "allergies" else _END), re.IGNORECASE), slot)
    for form, slot in (
        (_I_AM + r"(?:\w+ly |very |also )?allergic to ", "allergies"),
        (r"\bi have an? (?:\w+ )?allergy to ", "allergies"),
        (r"\bmy name is ", "my name"),
        (r"\bi live (?:in|at|near) ", "where I live"),
        (r"\bi work (?:at|for) ", "where I work"),
        (r"\bi work as (?:an? )?", "what I work as"),
        (r"\bi was born (?:on|in) ", "when I was born"),
        (r"\bmy birthday is (?:on )?", "my birthday"),
        (_I_AM + r"(?:a )?(?=(?:vegan|vegetarian|pescatarian)\b)", "my diet"),
        (_I_AM + r"(?:a )?(?=(?:diabetic|coeliac|celiac|lactose intolerant)\b)", "my health"),
    )
)  # fmt: skip


def stated_plainly(own_words: str) -> tuple[Claim, ...]:
    """What the user's own words state in one of these forms, each once."""
    found = (Claim(slot=slot, value=hit["value"].strip()) for form, slot in _FORMS for hit in form.finditer(own_words))
    return tuple(dict.fromkeys(claim for claim in found if claim.value))

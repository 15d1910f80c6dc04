"""What a slot may be called: in words of the user's, or in plain ones for what people say about themselves.

A slot is the model's own choice of words, and it stands in prompts beside the value: it must not be a way to smuggle
anything in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from local.services.engrams.words import content_words

MAX_WORDS = 10
_STEM = 4  # letters that a word has in common with another form of it
_PLAIN = re.compile(r"[\w '’/&(),-]+")
_COMMON = content_words("""
name nickname age birthday birth date place home town city country address street house flat residence hometown
location live living job work occupation profession employer company workplace boss colleague school university study
studies degree language languages speak nationality religion family partner wife husband spouse girlfriend boyfriend
son daughter child children kid kids mother father parents brother sister sibling siblings friend friends neighbour
grandmother grandfather aunt uncle cousin pet pets dog cat animal phone email number contact favourite favorite
preferred preference preferences like likes liked dislike dislikes disliked hate love interest interests hobby hobbies
sport sports music band song film movie book books author game games colour color season food foods drink drinks dish
meal meals breakfast lunch dinner cuisine diet dietary coffee tea take taken milk sugar allergy allergies allergic
intolerance health condition medication doctor blood type height weight size shoe clothing car vehicle bike bicycle
computer laptop operating system editor tool tools device travel trip holiday vacation destination plan plans
appointment meeting event anniversary schedule time zone timezone goal goals project projects task habit habits
routine budget currency unit units style tone way kind status marital relationship year month day week weekday morning
evening
""")


def is_plain(slot: str, own_words: str, slots: Collection[str]) -> bool:
    """Whether each word of a slot is a form of one that the user has written, stands in a slot that there is already,
    or is a common one for such a thing."""
    if not _PLAIN.fullmatch(slot) or len(slot.split()) > MAX_WORDS:
        return False
    known = content_words(" ".join([own_words, *slots]))
    return all(word in _COMMON or word in known or _is_form(word, known) for word in content_words(slot))


def _is_form(word: str, known: Iterable[str]) -> bool:
    return len(word) >= _STEM and any(other[:_STEM] == word[:_STEM] for other in known)

"""Whether a sentence states something of the user's life, or why it does not."""

from __future__ import annotations

import re
from typing import Final

from local.services.classifying import moods
from local.services.classifying.grammar import ANIMALS, AS_A, MINE, PEOPLE, PREPOSITION
from local.services.classifying.lexicon import is_of_health, matters
from local.services.classifying.sentence import Sentence
from local.services.classifying.speaker import Speaker
from local.services.engrams.words import content_words

OF_OTHERS: Final = "the user did not say so of themselves"
DENIED: Final = "the user says that it is not so"
OVER: Final = "the user says that it was so once"


def against(sentence: Sentence, at: int, slot: str, value: str, is_known: bool = False) -> str | None:
    """Why a sentence that says a value states nothing of the user's life; None if it does. With `is_known` something is
    known already in that slot, so that a sentence which puts it right need not say again of whom it is."""
    if sentence.is_fiction:
        return "the user tells or asks for a story"
    if not sentence.is_request_to_remember:
        if sentence.is_question(at) and not _is_taken_for_granted(sentence, at, slot, value):
            return f"{OF_OTHERS}: it is a question"
        if sentence.is_conditional(at):
            return "the user only supposes it"
    is_about_what_is_known = is_known and (sentence.is_correction(at, len(value)) or _goes_on(sentence, slot))
    is_put_right = is_about_what_is_known and sentence.speaker(at, len(value)) is Speaker.NOBODY
    if not is_put_right and not _is_of_the_user(sentence, at, slot, value):
        return OF_OTHERS
    says_not = moods.NOT.search(value) or moods.NOT_SLOT.search(slot) or _is_averse(slot, sentence.clause(at))
    says_not = says_not or _says_why(sentence, at, slot)
    if sentence.is_denied(at) and not says_not:
        return DENIED
    if sentence.is_over(at) and not says_not and not moods.ENDED_SLOT.search(slot):
        return OVER
    if sentence.is_put_right(value, at):
        return "the user puts it right"
    if sentence.is_wish(at) and not moods.WISHED_SLOT.search(slot):
        return "the user only wants it so"
    return None


def _is_averse(slot: str, clause: str) -> bool:
    """Whether a slot is for what the user keeps away from, and a clause with a "not" says that the user does."""
    return moods.AVERSE.search(slot) is not None and moods.AVERSE.search(clause) is None


def _is_of_the_user(sentence: Sentence, at: int, slot: str, value: str) -> bool:
    """Whether a sentence says a value of the user, or of somebody whom the slot names as the user's."""
    speaker, subject = sentence.speaker(at, len(value)), sentence.subject(at)
    if _OWN_NAME.fullmatch(slot) and _WITH_SOMEBODY.search(sentence.plain[:at]):
        return False
    if speaker is not Speaker.OTHER:
        is_said = speaker is Speaker.USER or sentence.is_request_to_remember
        return is_said or sentence.is_about_the_user or _says_why(sentence, at, slot)
    if is_a_pet(subject):
        return ANIMALS.search(slot) is not None or "pet" in matters(slot)
    is_a_relation = PEOPLE.search(slot) is not None and not _TITLE.fullmatch(subject)
    names_them = is_a_relation or bool(content_words(subject) & content_words(slot))
    if sentence.is_request_to_remember:
        return names_them
    return names_them and PEOPLE.search(subject) is not None and _names(slot, value)


_TITLE: Final = re.compile(r"(?:an )?(?:frau|herrn?)", re.IGNORECASE)  # of a name, where it has no article
_MY_PERSON: Final = re.compile(rf"(?:{MINE})\s+(?:{PEOPLE.pattern})\s+$", re.IGNORECASE)
_MY_ALLERGY: Final = re.compile(
    rf"(?:{MINE}|(?<!\w)(?:with|avec|mit|con|com) (?:an?|une|einer|una|uma))\s+(?:[\w-]+\s+)?"
    r"(?:allerg\w+|alerg\w+|intoleran\w+|intoléran\w+|unverträglichkeit)\s+(?:[\w’']+\s+){0,2}$",
    re.IGNORECASE,
)
_AS_A: Final = re.compile(rf"{AS_A}(?:[\w-]+\s+){{0,2}}$", re.IGNORECASE)


def _is_taken_for_granted(sentence: Sentence, at: int, slot: str, value: str) -> bool:
    """Whether a question says of the user what it does not ask: "… for me and my husband Olu?", and of health "What can
    I eat as a diabetic?"."""
    before = sentence.plain[:at]
    if PEOPLE.search(slot) and _names(slot, value):
        return _MY_PERSON.search(before) is not None
    if not is_of_health(slot) or not sentence.speaks_of_the_user or PEOPLE.search(before):
        return False
    return sentence.is_mine(at) or any(each.search(before) for each in (_AS_A, _MY_ALLERGY))


def _says_why(sentence: Sentence, at: int, slot: str) -> bool:
    """Whether a sentence that wants something without a value says that this is for an allergy of the user's: "A recipe
    without nuts, as I am allergic"."""
    return "allergy" in matters(slot) and sentence.is_denied(at) and moods.ALLERGIC.search(sentence.plain) is not None


MOST_WORDS: Final = 7  # of a sentence that leaves out what one before it has said


def _goes_on(sentence: Sentence, slot: str) -> bool:
    """Whether a short sentence only adds to what is known of the user's health: "And milk, too"."""
    return is_of_health(slot) and sentence.adds and len(sentence.plain.split()) <= MOST_WORDS


def is_a_pet(subject: str) -> bool:
    """Whether the words for somebody else are those for an animal of the user's."""
    return ANIMALS.search(subject) is not None and not PEOPLE.search(subject)


_OWN_NAME: Final = re.compile(
    r"(?:(?:my|the|users?|user['’]s|first|last|full|given|family|middle|preferred)\s+)*(?:name|nickname|surname)",
    re.IGNORECASE,
)
# Whom somebody is with, meets or tells something is somebody else.
_WITH_SOMEBODY: Final = re.compile(
    rf"(?:{PREPOSITION.pattern}|(?<!\w)(?:call|ask|meet|invite|message|text|see|saw)\s+$)(?<!\bgo by )(?<!\bgoes by )",
    re.IGNORECASE,
)
_ABOUT_A_NAME = re.compile(
    r"[\s'’]|names?|maiden|middle|full|family|nickname|called|birth\w*|born|s|of|my|the|who|is|name|nom|nombre|nome|名字|生日|名前|の|的"
)


def _names(slot: str, value: str) -> bool:
    """Whether a slot of somebody else asks for no more than who they are, and the value is a name or a day."""
    rest = _ABOUT_A_NAME.sub("", PEOPLE.sub("", slot.casefold()))
    return not rest and (value[:1].isupper() or value[:1].isdigit() or not value[:1].isascii())

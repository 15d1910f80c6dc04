"""One sentence of what a user typed: who says what of whom, and whether it is meant as a statement of what is.

It is a reading by tables (`grammar`, `moods`), not by a model: nothing that a model reads can change it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from local.services.classifying import corrections, grammar, moods
from local.services.classifying.questions import is_asked
from local.services.classifying.speaker import CLAUSE_BREAK, MARKERS, SELF, Speaker, who
from local.services.engrams.words import all_words, content_words

_SUBJECTS: Final = frozenset({"together", "i", "they", "person", "somebody", "verb_i", "name"})
_IMPERSONAL: Final = re.compile(
    rf"\s*(?:{grammar.YOU}|(?:it|that|this|es|das|dir|ça|cela|te|ti|isso|quieres|necesitas|vuoi|ti serve|quiser"
    r"|precisar|nötig|nécessaire)(?!\w))",
    re.IGNORECASE,
)
_TELL: Final = re.compile(
    r"(?:know|tell|see|check|wonder|care|sure|mind|ask|me|sag\w*|weiß\w*|dis|sais|dime|sabes|dimmi|sai|diga|sabe)\s*$",
    re.IGNORECASE,
)
_MINE_BEFORE: Final = re.compile(rf"(?:{grammar.MINE})\s*$", re.IGNORECASE)
_SE: Final = re.compile(r"se", re.IGNORECASE)
_REFLEXIVE: Final = re.compile(r"\s+(?:me|te|le|nos|os|les|lo|la|ll?ama|puede|dice|habla)(?!\w)", re.IGNORECASE)
QUOTED: Final = "\x00"
MOST_PLACES: Final = 10  # of a value in one sentence; who says it more often does not make it clearer


@dataclass(frozen=True)
class Sentence:
    """`text` as it was typed, `plain` the same with every quotation's characters as `QUOTED`."""

    text: str
    plain: str
    is_fiction: bool = False
    is_about_the_user: bool = False

    def places(self, value: str) -> list[int]:
        """Where a value is said: the whole of it, else its telling words, none of them within a quotation."""
        text, wanted = folded(self.text), folded(value.strip().strip(".,;:!?…。！？\"'“”„«»「」"))
        found = [at for at in occurrences(text, wanted) if self._is_own(at, at + len(wanted))] if wanted else []
        words = content_words(value)
        is_one_word = wanted.isascii() and " " not in wanted
        if found or is_one_word or len(words) < 2 or not words <= all_words(self.plain):
            return found[:MOST_PLACES]
        firsts = [occurrences(folded(self.plain), word)[:1] for word in words]
        return [max(first for (first,) in firsts)] if all(firsts) else []

    def _is_own(self, start: int, end: int) -> bool:
        """Whether a span is no part of a quotation, but the user's own or a whole name in quotation marks."""
        if QUOTED not in self.plain[start:end]:
            return True
        around = (self.plain[start - 1 : start], self.plain[end : end + 1])
        return QUOTED not in around and bool(re.match(r"[.,;:!?…。]?[\"'“”‘’»«」』》]", self.text[end : end + 2]))

    @property
    def is_request_to_remember(self) -> bool:
        """Whether the user asks to have it remembered."""
        return moods.REMEMBER.search(self.plain) is not None

    @property
    def is_request_to_forget(self) -> bool:
        """Whether the user asks to have it forgotten."""
        return moods.FORGET.search(self.plain) is not None

    def is_question(self, at: int) -> bool:
        """Whether what stands there is asked, with or without a question mark."""
        return is_asked(self.plain, at)

    def is_correction(self, at: int, length: int) -> bool:
        """Whether what stands there is put in the place of something that was said before: "Sorry, it's the 5th"."""
        before, behind = self.plain[:at], self.plain[at + length :]
        return bool(corrections.CORRECTS.fullmatch(before) and corrections.CLOSED.match(behind))

    def is_replaced(self, at: int, length: int) -> bool:
        """Whether something else is put in the place of what stands there: "Tino, not Timo"."""
        before, behind = self.plain[:at], self.plain[at + length :]
        return bool(corrections.INSTEAD_OF.search(before) and corrections.CLOSED.match(behind))

    def is_put_right(self, value: str, at: int) -> bool:
        """Whether what stands there is put right by what stands behind it: "in 1987, sorry, 1978"."""
        found = corrections.PUT_RIGHT.match(self.plain, at + len(value))
        if found is None or found["digit"] or found["capital"] is None:
            return found is not None and (found["digit"] is None or value[-1:].isdigit())
        return value[:1].isupper()

    def speaker(self, at: int, length: int = 1) -> Speaker:
        """Whom what stands there is about: the last subject before it, else the first one after it in its clause."""
        return who(self.plain, at, length)[0]

    def is_first_person(self, at: int) -> bool:
        """Whether the user speaks of themselves in the clause around a place, as a subject or not."""
        return any(found.lastgroup in SELF for found in MARKERS.finditer(self.clause(at)))

    @property
    def speaks_of_the_user(self) -> bool:
        """Whether the user is in it anywhere."""
        return any(found.lastgroup in SELF | {"mine"} for found in MARKERS.finditer(self.plain))

    def is_mine(self, at: int) -> bool:
        """Whether the user calls what stands there their own."""
        return _MINE_BEFORE.search(self.plain[:at]) is not None

    def is_named_alone(self, at: int, length: int) -> bool:
        """Whether a sentence begins with what stands there."""
        return length > 1 and not self.plain[:at].strip()

    def subject(self, at: int) -> str:
        """The words for somebody else whom what stands there is about."""
        return who(self.plain, at, 1)[1]

    @cached_property
    def _breaks(self) -> list[re.Match[str]]:
        return list(CLAUSE_BREAK.finditer(self.plain))

    def clause(self, at: int) -> str:
        """The part of the sentence around a place, from its subject on."""
        breaks = self._breaks
        end = next((each.start() for each in breaks if each.start() >= at), len(self.plain))
        start = 0
        for each in reversed([each for each in breaks if each.end() <= at]):
            start = each.end()
            has_subject = any(m.lastgroup in _SUBJECTS | {"mine"} for m in MARKERS.finditer(self.plain, start, end))
            if has_subject or each.lastgroup:
                return self.plain[start:end]
            start = 0
        return self.plain[start:end]

    def is_conditional(self, at: int) -> bool:
        """Whether what stands there would be so, or is so if."""
        if moods.WOULD.search(self.clause(at)) or moods.WHEN_THERE.search(self.plain[:at]):
            return True
        text = moods.DOUBT.sub(lambda found: " " * len(found[0]), self.plain)
        return any(self._depends(found, text, at) for found in moods.IF.finditer(text))

    def _depends(self, found: re.Match[str], text: str, at: int) -> bool:
        before = text[: found.start()].rstrip()
        if _SE.fullmatch(found[0]) and (before[-1:] not in ("", ",", ";") or _REFLEXIVE.match(text, found.end())):
            return False
        end = next((each.start() for each in CLAUSE_BREAK.finditer(text, found.end())), len(text))
        if found.start() <= at < end:
            return True
        if _TELL.search(before) or _IMPERSONAL.match(text, found.end()) or found[0].lower() in ("whether", "ob"):
            return False
        between = text[min(at, found.start()) : max(at, found.start())]
        return at >= end or not re.search(r"(?<!\w)(?:so|and|und|et|y|e)(?!\w)", between)

    def is_denied(self, at: int) -> bool:
        """Whether what stands there is said not to be so."""
        clause = _without(self._clause_in_its_language(at), moods.NOT_ONLY, moods.REMEMBER, moods.DOUBT)
        return moods.NOT.search(clause) is not None or self.is_without(at)

    def is_without(self, at: int) -> bool:
        """Whether what stands there is what something is to be without."""
        return moods.WITHOUT.search(self.plain[:at]) is not None

    def is_over(self, at: int) -> bool:
        """Whether what stands there is said to have been so and to be so no more."""
        return moods.ENDED.search(self.clause(at)) is not None

    def is_given_up(self, at: int) -> bool:
        """Whether what stands there may be said to be over: denied, ended, or told of in the past."""
        clause = self._clause_in_its_language(at)
        if moods.ENDED.search(clause):
            return True
        return not moods.UNDONE.search(clause) and any(each.search(clause) for each in (moods.NOT, moods.PAST))

    def _clause_in_its_language(self, at: int) -> str:
        clause = self.clause(at)
        return _without(clause, moods.IN_THE) if moods.PORTUGUESE.search(self.plain) else clause

    def is_wish(self, at: int) -> bool:
        """Whether what stands there is only wanted or planned."""
        return moods.WISH.search(self.clause(at)) is not None

    def is_doubtful(self, at: int) -> bool:
        """Whether the user is not sure of what stands there."""
        return moods.DOUBT.search(self.clause(at)) is not None or moods.DOUBT.match(self.plain.strip()) is not None

    @property
    def adds(self) -> bool:
        """Whether something is said to be so as well."""
        return moods.ALSO.search(self.plain) is not None

    @property
    def replaces(self) -> bool:
        """Whether something is said to be so alone."""
        return moods.INSTEAD.search(self.plain) is not None


def folded(text: str) -> str:
    """As long as the text, whatever its case."""
    return "".join(low if len(low := character.casefold()) == 1 else character for character in text)


_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # of a script with spaces between words


def occurrences(text: str, wanted: str) -> list[int]:
    """Where the words stand in a text, in whatever context; both are `folded`."""
    start = rf"(?<!{_LETTER})(?<!\d[.,:])" if re.match(_LETTER, wanted) else ""
    end = rf"(?!{_LETTER}|[.,:]\d)" if re.match(_LETTER, wanted[-1:]) else ""
    if "." in wanted or "@" in wanted:  # no part of a longer address
        start, end = r"(?<!\w[.@])" + start, end + r"(?!@|\.\w)"
    return [found.start() for found in re.finditer(start + re.escape(wanted) + end, text)]


def _without(text: str, *patterns: re.Pattern[str]) -> str:
    for pattern in patterns:
        text = pattern.sub(" ", text)
    return text

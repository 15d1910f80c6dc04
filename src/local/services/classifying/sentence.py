"""One sentence of what a user typed: who says what of whom, and whether it is meant as a statement of what is.

It is a reading by tables (`grammar`, `moods`), not by a model: nothing that a model reads can change it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from local.services.classifying import grammar, moods
from local.services.classifying.questions import ASKS
from local.services.engrams.words import all_words, content_words


class Speaker(StrEnum):
    """Whom a part of a sentence is about."""

    USER = "user"
    OTHER = "other"
    NOBODY = "nobody"


_NAME: Final = r"(?-i:(?<![\w’'-])[A-ZÀ-ÖØ-ÞА-Я][\w-]+)"
_MARKERS: Final = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in (
            ("together", rf"(?:{grammar.SELF}){grammar.AND}(?:{grammar.PERSON}|{grammar.PET}|[A-Z]\w+)"),
            ("person", rf"(?:{grammar.PERSON}|{grammar.PET})"),
            ("i", grammar.SELF),
            ("they", grammar.THEY),
            ("theirs", rf"{grammar.THEIRS}\s+(?=\w)"),
            ("mine", grammar.MINE),
            ("verb_i", grammar.VERB_I),
            ("me", grammar.ME),
            ("you", grammar.YOU),
            ("name", rf"{_NAME}(?:\s{_NAME})?(?={grammar.VERB})"),
            ("break", grammar.BREAK),
        )
    ),
    re.IGNORECASE,
)
_SELF: Final = frozenset({"i", "together", "me", "verb_i"})
_VERB: Final = re.compile(grammar.VERB, re.IGNORECASE)
_TOPIC: Final = ("は", "が", "も")
_NO_NAME: Final = re.compile(
    r"(?:vielleicht|heute|jetzt|hier|dort|leider|seitdem|übrigens|talvez|hoje|agora|forse|oggi|adesso|hoy|ahora|quizás?|aquí"
    r"|peut-être|maintenant|aujourd|maybe|perhaps|today|now|here|there|this|that|it|what|which|how|breakfast|lunch|dinner"
    r"|work|school)(?!\w)",
    re.IGNORECASE,
)
# In German every noun has a capital: one behind an article or an adjective is no name.
_NOUN: Final = re.compile(
    r"(?<!\w)(?:\w+(?:em|en|er|es)|die|das|mein|unser|ein\w?|im|am|zum|zur|vom)\s+$", re.IGNORECASE
)
_REPORTS: Final = re.compile(r"(?:觉得|认为|说|知道|听说|希望|以为|告诉)$")
_CONTRAST: Final = r"but|aber|sondern|mais|pero|sino|bensì|maar|но|ale"
_CLAUSE_BREAK: Final = re.compile(
    r"(?P<turn>,\s*(?:ma|mas|men)(?!\w))|[,;:–—()、，；：]| - "
    rf"|(?<!\w)(?:(?P<contrast>{_CONTRAST})|because|while|whereas|although|though|so|weil|während|obwohl"
    rf"|dass|parce que|tandis que|alors que|porque|mientras|aunque|perché|mentre|enquanto|embora"
    rf"|(?:and|or|und|oder|et|ou|y|o|e)(?=\s+(?:{grammar.SELF}|{grammar.THEY}|{grammar.YOU}|{grammar.MINE}|{grammar.VERB_I})))(?!\w)"
    "|(?P<contrasting>但是|但|而是|而且|不过(?!敏)|けど|けれど|ですが|ますが)|因为|所以",
    re.IGNORECASE,
)
_SUBJECTS: Final = frozenset({"together", "i", "they", "person", "verb_i", "name"})
_IMPERSONAL: Final = re.compile(
    rf"\s*(?:{grammar.YOU}|(?:it|that|this|es|das|dir|ça|cela|te|ti|isso|quieres|necesitas|vuoi|ti serve|quiser"
    r"|precisar|nötig|nécessaire)(?!\w))",
    re.IGNORECASE,
)
_TELL: Final = re.compile(
    r"(?:know|tell|see|check|wonder|care|sure|mind|ask|me|sag\w*|weiß\w*|dis|sais|dime|sabes|dimmi|sai|diga|sabe)\s*$",
    re.IGNORECASE,
)
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

    def places(self, value: str) -> list[int]:
        """Where a value is said: the whole of it, else its telling words, none of them within a quotation."""
        text, wanted = folded(self.text), folded(value.strip().strip(".,;:!?…。！？\"'“”„«»「」"))
        found = [at for at in occurrences(text, wanted) if self._is_own(at, at + len(wanted))] if wanted else []
        words = content_words(value)
        if found or len(words) < 2 or not words <= all_words(self.plain):
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

    @cached_property
    def is_question(self) -> bool:
        """Whether the sentence asks, with or without a question mark."""
        return ASKS.search(self.plain.strip()) is not None

    def speaker(self, at: int, length: int = 1) -> Speaker:
        """Whom what stands there is about: the last subject before it, else the first one after it in its clause."""
        return self._who(at, length)[0]

    def is_first_person(self, at: int) -> bool:
        """Whether the user speaks of themselves in the clause around a place, as a subject or not."""
        return any(found.lastgroup in _SELF for found in _MARKERS.finditer(self.clause(at)))

    @property
    def speaks_of_the_user(self) -> bool:
        """Whether the user is in it anywhere."""
        return any(found.lastgroup in _SELF | {"mine"} for found in _MARKERS.finditer(self.plain))

    def subject(self, at: int) -> str:
        """The words for somebody else whom what stands there is about."""
        return self._who(at, 1)[1]

    def _who(self, at: int, length: int) -> tuple[Speaker, str]:
        owner, words, has_subject, addressed = Speaker.NOBODY, "", False, False
        for found in _MARKERS.finditer(self.plain):
            if found.end() > at:
                break
            kind = found.lastgroup or ""
            if kind == "break":
                has_subject = False
                continue
            who = self._role(found, kind, has_subject and not (kind == "mine" and addressed))
            if who is None or (kind == "me" and owner is not Speaker.NOBODY):
                continue
            owner, words, has_subject, addressed = who, found[0], has_subject or kind != "me", kind == "you"
        return (owner, words) if owner is not Speaker.NOBODY else self._who_after(at, at + length)

    def _who_after(self, start: int, end: int) -> tuple[Speaker, str]:
        clause_end = next((each.start() for each in _CLAUSE_BREAK.finditer(self.plain, end)), len(self.plain))
        if not self.plain[:start].strip() and not self.plain[end:clause_end].strip():
            clause_end = len(self.plain)
        for found in _MARKERS.finditer(self.plain, end, clause_end):
            kind = found.lastgroup or ""
            if kind in ("i", "mine", "me", "together", "verb_i"):
                return Speaker.USER, ""
            if kind in ("they", "person", "theirs", "name"):
                return Speaker.OTHER, found[0]
        return Speaker.NOBODY, ""

    def _role(self, found: re.Match[str], kind: str, has_subject: bool) -> Speaker | None:
        match kind:
            case "i" | "together":
                return Speaker.USER
            case "they":
                return Speaker.OTHER
            case "verb_i" | "mine":
                return None if has_subject else Speaker.USER
            case "me":
                return Speaker.USER
            case "name" if _NO_NAME.match(found[0]) or _NOUN.search(self.plain[: found.start()]):
                return None
            case "you" | "theirs" | "name":
                is_free = not has_subject or (kind == "you" and _REPORTS.search(self.plain[: found.start()]))
                return Speaker.OTHER if is_free else None
        has_verb = _VERB.match(self.plain, found.end()) or self.plain[found.end() : found.end() + 1] in _TOPIC
        is_object = grammar.PREPOSITION.search(self.plain[: found.start()]) is not None
        return Speaker.OTHER if has_verb or not (has_subject or is_object) else None

    @cached_property
    def _breaks(self) -> list[re.Match[str]]:
        return list(_CLAUSE_BREAK.finditer(self.plain))

    def clause(self, at: int) -> str:
        """The part of the sentence around a place, from its subject on."""
        breaks = self._breaks
        end = next((each.start() for each in breaks if each.start() >= at), len(self.plain))
        start = 0
        for each in reversed([each for each in breaks if each.end() <= at]):
            start = each.end()
            has_subject = any(m.lastgroup in _SUBJECTS | {"mine"} for m in _MARKERS.finditer(self.plain, start, end))
            if has_subject or each.lastgroup:
                return self.plain[start:end]
            start = 0
        return self.plain[start:end]

    def is_conditional(self, at: int) -> bool:
        """Whether what stands there would be so, or is so if."""
        if moods.WOULD.search(self.clause(at)):
            return True
        text = moods.DOUBT.sub(lambda found: " " * len(found[0]), self.plain)
        return any(self._depends(found, text, at) for found in moods.IF.finditer(text))

    def _depends(self, found: re.Match[str], text: str, at: int) -> bool:
        before = text[: found.start()].rstrip()
        if _SE.fullmatch(found[0]) and (before[-1:] not in ("", ",", ";") or _REFLEXIVE.match(text, found.end())):
            return False
        end = next((each.start() for each in _CLAUSE_BREAK.finditer(text, found.end())), len(text))
        if found.start() <= at < end:
            return True
        if _TELL.search(before) or _IMPERSONAL.match(text, found.end()) or found[0].lower() in ("whether", "ob"):
            return False
        between = text[min(at, found.start()) : max(at, found.start())]
        return at >= end or not re.search(r"(?<!\w)(?:so|and|und|et|y|e)(?!\w)", between)

    def is_denied(self, at: int) -> bool:
        """Whether what stands there is said not to be so."""
        clause = _without(self.clause(at), moods.NOT_ONLY, moods.REMEMBER, moods.DOUBT)
        return (moods.NOT.search(clause) or moods.WITHOUT.search(self.plain[:at])) is not None

    def is_over(self, at: int) -> bool:
        """Whether what stands there is said to have been so and to be so no more."""
        return moods.ENDED.search(self.clause(at)) is not None

    def is_given_up(self, at: int) -> bool:
        """Whether what stands there may be said to be over: denied, ended, or told of in the past."""
        clause = self.clause(at)
        return any(each.search(clause) for each in (moods.NOT, moods.ENDED, moods.PAST))

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
    return [found.start() for found in re.finditer(start + re.escape(wanted) + end, text)]


def _without(text: str, *patterns: re.Pattern[str]) -> str:
    for pattern in patterns:
        text = pattern.sub(" ", text)
    return text

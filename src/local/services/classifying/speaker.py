"""Whom a part of a sentence is about: the user, somebody else, or nobody who is named."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from local.services.classifying import grammar


class Speaker(StrEnum):
    """Whom a part of a sentence is about."""

    USER = "user"
    OTHER = "other"
    NOBODY = "nobody"


_NAME: Final = r"(?-i:(?<![\w’'-])[A-ZÀ-ÖØ-ÞА-Я][\w-]+)"
MARKERS: Final = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in (
            ("together", rf"(?:{grammar.SELF}){grammar.AND}(?:{grammar.PERSON}|{grammar.PET}|[A-Z]\w+)"),
            ("person", rf"(?:{grammar.PERSON}|{grammar.PET})"),
            ("somebody", grammar.SOMEBODY),
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
SELF: Final = frozenset({"i", "together", "me", "verb_i"})
_VERB: Final = re.compile(grammar.VERB, re.IGNORECASE)
_TOPIC: Final = ("は", "が", "も")
_NO_NAME: Final = re.compile(
    r"(?:vielleicht|heute|jetzt|hier|dort|leider|seitdem|übrigens|talvez|hoje|agora|forse|oggi|adesso|hoy|ahora|quizás?|aquí"
    r"|peut-être|maintenant|aujourd|maybe|perhaps|today|now|here|there|this|that|it|what|which|how|breakfast|lunch|dinner"
    r"|work|school)(?!\w)",
    re.IGNORECASE,
)
_ILL: Final = re.compile(  # said of whoever stands right before it
    r"\s+(?:allergic|allergisch|allergique|alérgic[oa]|allergic[oa]|with an? (?:\w+ )?(?:allergy|intolerance)"
    r"|mit einer \w*allergie)(?!\w)",
    re.IGNORECASE,
)
# In German every noun has a capital: one behind an article or an adjective is no name.
_NOUN: Final = re.compile(
    r"(?<!\w)(?:\w+(?:em|en|er|es)|die|das|mein|unser|ein\w?|im|am|zum|zur|vom)\s+$", re.IGNORECASE
)
_ELLIPTIC: Final = re.compile(
    rf"\W*(?:(?:btw|by the way|also|oh|fyi|and|but|hi|hello|hey|yes|so|well)\W+)*"
    rf"(?:{grammar.ELLIPSIS}|(?P<as_a>{grammar.AS_A}))",
    re.IGNORECASE,
)
# Who is asked for something with "me" in it is told nothing of the user: "find me a hotel".
_REQUEST: Final = re.compile(
    r"^\W*(?:(?:hey|hi|hello|ok(?:ay)?|so|and|now|then|just|please|kindly|also|bitte)\W+)*"
    r"(?:(?:tell|give|show|find|book|get|send|bring|buy|make|help|teach|remind|recommend|suggest|explain|write|draft|plan"
    r"|let|order|read|play|sing|lend|inform|update|brief|convince|ask|quiz|wake|translate|cook|draw|build|create|list"
    r"|offer|fetch|reserve|pick|search|look)(?: for| to| with)?\s+(?:me|us)|\w+[ -](?:mir|uns|moi|mij)|\w*[ae]-me)$",
    re.IGNORECASE,
)
_REPORTS: Final = re.compile(r"(?:觉得|认为|说|知道|听说|希望|以为|告诉)$")
_CONTRAST: Final = r"but|aber|sondern|mais|pero|sino|bensì|maar|но|ale"
CLAUSE_BREAK: Final = re.compile(
    r"(?P<turn>,\s*(?:ma|mas|men)(?!\w))|[,;:–—()、，；：]| - "
    rf"|(?<!\w)(?:(?P<contrast>{_CONTRAST})|because|while|whereas|although|though|so|weil|während|obwohl"
    rf"|dass|parce que|tandis que|alors que|porque|mientras|aunque|perché|mentre|enquanto|embora"
    rf"|(?:and|or|und|oder|et|ou|y|o|e)(?=\s+(?:{grammar.SELF}|{grammar.THEY}|{grammar.YOU}|{grammar.MINE}|{grammar.VERB_I})))(?!\w)"
    "|(?P<contrasting>但是|但|而是|而且|不过(?!敏)|けど|けれど|ですが|ますが)|因为|所以",
    re.IGNORECASE,
)


def who(plain: str, at: int, length: int) -> tuple[Speaker, str]:
    """Whom what stands there is about, and the words for somebody else: the last subject before it, else the first one
    after it in its clause."""
    owner, words, has_subject, addressed = Speaker.NOBODY, "", False, False
    for found in MARKERS.finditer(plain):
        if found.end() > at:
            break
        kind = found.lastgroup or ""
        if kind == "break":
            has_subject = False
            continue
        role = _role(plain, found, kind, has_subject and not (kind == "mine" and addressed))
        if role is None or (kind == "me" and owner is not Speaker.NOBODY):
            continue
        owner, words, has_subject, addressed = role, found[0], has_subject or kind != "me", kind == "you"
    if owner is Speaker.NOBODY and _is_elliptic(plain, at):
        return Speaker.USER, ""
    return (owner, words) if owner is not Speaker.NOBODY else _who_after(plain, at, at + length)


def _is_elliptic(plain: str, at: int) -> bool:
    """Whether the sentence needs no subject to be about the user: "Allergic to nuts.", "As a nurse, I …"."""
    found = _ELLIPTIC.match(plain)
    if found is None:
        return False
    if found["as_a"]:
        apart = plain.find(",", at)
        others = {each.lastgroup for each in MARKERS.finditer(plain, max(apart, 0))}
        return apart >= 0 and "i" in others and "you" not in others
    return not _VERB.search(re.split(r"[,.;:]", plain[found.end() :], maxsplit=1)[0])


def _who_after(plain: str, start: int, end: int) -> tuple[Speaker, str]:
    clause_end = next((each.start() for each in CLAUSE_BREAK.finditer(plain, end)), len(plain))
    if not plain[:start].strip() and not plain[end:clause_end].strip():
        clause_end = len(plain)
    for found in MARKERS.finditer(plain, end, clause_end):
        kind = found.lastgroup or ""
        if kind in ("i", "mine", "me", "together", "verb_i"):
            return Speaker.USER, ""
        if kind in ("they", "person", "somebody", "theirs", "name"):
            return Speaker.OTHER, found[0]
    return Speaker.NOBODY, ""


def _role(plain: str, found: re.Match[str], kind: str, has_subject: bool) -> Speaker | None:
    match kind:
        case "i" | "together":
            return Speaker.USER
        case "they" | "somebody":
            return Speaker.OTHER
        case "verb_i" | "mine":
            return None if has_subject else Speaker.USER
        case "me":
            return None if _REQUEST.search(plain[: found.end()]) else Speaker.USER
        case "name" if _NO_NAME.match(found[0]) or _NOUN.search(plain[: found.start()]):
            return None
        case "you" | "theirs" | "name":
            is_free = not has_subject or (kind == "you" and _REPORTS.search(plain[: found.start()]))
            return Speaker.OTHER if is_free else None
    has_verb = (
        _VERB.match(plain, found.end())
        or _ILL.match(plain, found.end())
        or plain[found.end() : found.end() + 1] in _TOPIC
    )
    is_object = grammar.PREPOSITION.search(plain[: found.start()]) is not None
    return Speaker.OTHER if has_verb or not (has_subject or is_object) else None

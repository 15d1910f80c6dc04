"""Whether a model may say of a user what it says: only what the user has said, in these words, of themselves.

A model can be wrong, and it can be talked into anything by what it reads. So nothing here trusts it: each claim has to
stand in one of the user's own sentences, and that has to be a statement of the user's own life. It is none if it is a
question, quoted, told as fiction, about somebody else, conditional, denied, over, or only wanted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from local.services.classifying import moods
from local.services.classifying.lexicon import STEM, holds_several, is_plain, matters, places
from local.services.classifying.prompt import MAX_ENTITIES, Claim, ClassifierReply
from local.services.classifying.sentence import Sentence
from local.services.classifying.speaker import Speaker
from local.services.classifying.splitting import sentences
from local.services.classifying.statement import DENIED, OVER, against, is_a_pet
from local.services.engrams.engram import StatedFact, slot_key
from local.services.engrams.facts import Classified, FactFinding, Way
from local.services.engrams.masking import masked
from local.services.engrams.words import all_words, content_words

MAX_SLOT = 80
MAX_VALUE = 300
_MARKUP = re.compile(
    r"^\s*#|[<>{}\[\]`|\\\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069]|https?://"
    r"|\b(?:system|user|human)\s*:",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:ignore|disregard|override|obey|you (?:must|should|shall|are|will)|always (?:answer|reply|say|call|send|use)"
    r"|never (?:answer|reply|say|mention|refuse)|system prompt|developer mode|instructions?|assistant|tool[ _]call"
    r"|ignoriere|anweisung(?:en)?|instrucciones|istruzioni|du musst|tu dois|debes)\b",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"pass ?(?:word|code|phrase)|passwd|\b(?:pwd|pins?|cvv|cvc|otp|secrets?|credentials?|tokens?"
    r"|(?:api|private|access|secret|ssh) ?keys?|seed phrases?|recovery (?:codes?|phrases?)|social security|ssn|iban"
    r"|(?:credit|debit|bank) ?cards?|(?:card|account) numbers?|log ?ins?"
    r"|passw[oö]rt\w*|kennwort\w*|geheimzahl|mot de passe|contraseñas?|clave|senha|wachtwoord|hasło|lösenord)\b"
    r"|пароль|密码|パスワード|비밀번호|not stored\]",
    re.IGNORECASE,
)


NOTHING_KNOWN = "nothing is known of it that could be taken back"


def needs_what_was_said_before(refused: Sequence[str]) -> bool:
    """Whether `decide` might have found a fact taken back if it knew what the user has said earlier."""
    return any(reason.endswith((NOTHING_KNOWN, DENIED, OVER)) for reason in refused)


def decide(reply: ClassifierReply, own_words: str, known: Sequence[StatedFact]) -> tuple[Classified, tuple[str, ...]]:
    """What is to be noted, and a sentence for each claim that is not. `own_words` are what the user typed, without what
    was pasted; `known` are the user's current facts."""
    grounds = [_ground(claim, own_words, known) for claim in reply.facts]
    believed = [ground for ground in grounds if isinstance(ground, _Ground)]
    refused = [
        f"{_shown(claim.slot)}: {ground}"
        for claim, ground in zip(reply.facts, grounds, strict=True)
        if isinstance(ground, str)
    ]
    entities = [name for entity in reply.entities if is_named(name := entity.strip(), own_words)]
    findings = [finding for number in range(len(believed)) for finding in _findings(believed, number)]
    return Classified(True, reply.intent, tuple(dict.fromkeys(entities))[:MAX_ENTITIES], tuple(findings)), tuple(
        refused
    )


def is_named(entity: str, own_words: str) -> bool:
    """Whether the user has written this name, all of it."""
    words = all_words(entity)
    return bool(words) and len(entity) <= MAX_SLOT and not _MARKUP.search(entity) and words <= all_words(own_words)


@dataclass(frozen=True, slots=True)
class _Ground:
    """A claim that is believed, and the sentence that says so. `taken_back` are the facts that hold no more,
    `put_right` those that the sentence says not to be so beside it."""

    claim: Claim
    sentence: Sentence
    certain: bool = True
    taken_back: tuple[StatedFact, ...] = ()
    put_right: tuple[StatedFact, ...] = ()


def _ground(claim: Claim, own_words: str, known: Sequence[StatedFact]) -> _Ground | str:
    """What a claim rests on, or why it is not believed."""
    slot, value = claim.slot.strip(), claim.value.strip()
    both = f"{slot} {value}"
    if not slot or len(slot) > MAX_SLOT or len(value) > MAX_VALUE:
        return f"a slot has 1 to {MAX_SLOT} characters, a value at most {MAX_VALUE}"
    if _SECRET.search(both.replace("_", " ")) or masked(both) != both:
        return "secrets are not kept"
    if _MARKUP.search(slot) or _MARKUP.search(value):
        return "there is markup or an address in it"
    if _ORDER.search(both):
        return "it is an instruction, not a fact"
    if not is_plain(slot, own_words, [fact.slot for fact in known]):
        return "the user did not speak of that"
    if claim.retracts:
        return _taken_back(claim, own_words, known)
    is_known = any(slot_key(fact.slot) == slot_key(slot) for fact in known)
    stated = _stated(claim, own_words, is_known)
    if stated in (DENIED, OVER) or (isinstance(stated, _Ground) and moods.PARTED.search(stated.sentence.plain)):
        same = [fact for fact in known if slot_key(fact.slot) == slot_key(slot) and _is_like(fact.value, value)]
        taken_back = _taken_back(claim, own_words, same) if same else stated
        return stated if isinstance(taken_back, str) else taken_back
    return stated if isinstance(stated, str) else replace(stated, put_right=_put_right(stated, known))


def _put_right(ground: _Ground, known: Sequence[StatedFact]) -> tuple[StatedFact, ...]:
    """The facts of the same slot in whose place the sentence puts a certain one: "Tino, not Timo"."""
    same = (fact for fact in known if slot_key(fact.slot) == slot_key(ground.claim.slot) and ground.certain)
    sentence = ground.sentence
    return tuple(
        fact
        for fact in same
        if not _is_like(fact.value, ground.claim.value)
        and any(sentence.is_replaced(at, len(fact.value)) for at in sentence.places(fact.value))
    )


def _stated(claim: Claim, own_words: str, is_known: bool) -> _Ground | str:
    slot, value = claim.slot.strip(), claim.value.strip()
    if not content_words(value) and not _is_written_large(value, own_words) and not _PRONOUNS.search(slot):
        return "it has no value"
    reason = "the user did not say so in these words"
    for sentence in sentences(own_words, value):
        for at in sentence.places(value):
            objection = against(sentence, at, slot, value, is_known)
            if objection is None:
                return _Ground(claim, sentence, claim.certain and not sentence.is_doubtful(at))
            reason = objection
    return reason


_PRONOUNS = re.compile(r"pronoun|pronom", re.IGNORECASE)


def _is_written_large(value: str, own_words: str) -> bool:
    """Whether a value of small words alone is a name, such as IT or May."""
    return value not in ("I", "Me", "My") and value[:1].isupper() and value in own_words


def _taken_back(claim: Claim, own_words: str, known: Sequence[StatedFact]) -> _Ground | str:
    meant = _meant(claim, own_words, known)
    if not meant:
        return NOTHING_KNOWN
    for sentence in sentences(own_words, claim.value):
        taken = tuple(fact for fact in meant if _takes_back(sentence, fact, claim))
        if taken:
            return _Ground(claim, sentence, taken_back=taken)
    return "the user did not take it back"


def _meant(claim: Claim, own_words: str, known: Sequence[StatedFact]) -> list[StatedFact]:
    """The facts that a claim takes back: those with its value, in its slot if there are any; where it has none that the
    user has written, those of its slot, or of what that is about."""
    same = [fact for fact in known if slot_key(fact.slot) == slot_key(claim.slot)]
    like = [fact for fact in known if _is_like(fact.value, claim.value)]
    if like:
        return [fact for fact in like if fact in same] or like
    if content_words(claim.value) and content_words(claim.value) <= all_words(own_words):
        return []
    return same or [fact for fact in known if matters(fact.slot) & matters(claim.slot)]


def _is_like(value: str, other: str) -> bool:
    """Whether two values say the same, perhaps one of them more of it or in another form."""
    short, long = sorted((content_words(value), content_words(other)), key=len)
    return bool(short) and all(any(a.startswith(b) or b.startswith(a) for b in long) for a in short)


def _takes_back(sentence: Sentence, fact: StatedFact, claim: Claim) -> bool:
    """Whether a sentence of the user's names a fact's value or its slot as something that is over."""
    named = _places_of(sentence, fact, claim)
    if sentence.is_request_to_forget:
        return bool(named)
    if sentence.is_fiction:
        return False
    return any(
        _concerns_the_user(sentence, at, length)
        and sentence.is_given_up(at)
        and not sentence.is_question(at)
        and not sentence.is_doubtful(at)
        and not sentence.is_conditional(at)
        and not sentence.is_wish(at)
        for at, length in named
    )


def _concerns_the_user(sentence: Sentence, at: int, length: int) -> bool:
    """Whether the user is in what is said there, not only as its subject: "they fired me"."""
    if sentence.is_mine(at) or (sentence.is_named_alone(at, length) and moods.DIED.search(sentence.clause(at))):
        return True
    match sentence.speaker(at, length):
        case Speaker.USER:
            return True
        case Speaker.OTHER:
            return is_a_pet(sentence.subject(at)) or sentence.is_first_person(at)
    return sentence.speaks_of_the_user


def _places_of(sentence: Sentence, fact: StatedFact, claim: Claim) -> list[tuple[int, int]]:
    """Where a sentence names a fact, and how long that is: its value, a word of its slot, or what it is about."""
    values = [(at, len(value)) for value in {fact.value, claim.value.strip()} - {""} for at in sentence.places(value)]
    stems = [word[:STEM] for word in content_words(fact.slot) if len(word) >= STEM - 1]
    words = [
        (found.start(), 1)
        for stem in stems
        for found in re.finditer(rf"(?<!\w){re.escape(stem)}", sentence.plain, re.I)
    ]
    about = [(at, 0) for matter in matters(fact.slot) for at in places(matter, sentence.plain)]
    return [*values, *words, *about]


def _findings(believed: Sequence[_Ground], number: int) -> list[FactFinding]:
    ground = believed[number]
    if ground.taken_back:
        return [FactFinding(Way.RETRACT, fact.slot, fact.value) for fact in ground.taken_back]
    claim = ground.claim
    found = FactFinding(_way(believed, number), claim.slot.strip(), claim.value.strip(), ground.certain)
    return [found, *(FactFinding(Way.RETRACT, fact.slot, fact.value) for fact in ground.put_right)]


def _way(believed: Sequence[_Ground], number: int) -> Way:
    """What a fact does to the others of its slot: by the words of the sentence that states it, and by what it is."""
    ground = believed[number]
    others = [each for each in believed if _is_another(each, ground)]
    if not ground.certain or (others and moods.OR.search(ground.sentence.plain)):
        return Way.CONTRADICT
    if any(each is other for each in others for other in believed[:number]):
        return Way.ADD  # the second of a list
    if ground.sentence.replaces:
        return Way.SUPERSEDE
    return Way.ADD if ground.sentence.adds or holds_several(ground.claim.slot) else Way.SUPERSEDE


def _is_another(one: _Ground, other: _Ground) -> bool:
    return (
        not one.taken_back
        and slot_key(one.claim.slot) == slot_key(other.claim.slot)
        and one.claim.value.strip().casefold() != other.claim.value.strip().casefold()
    )


_SHOWN = 80


def _shown(slot: str) -> str:
    """A slot in a report: what was refused may be anything, a secret, too, so that no value is repeated."""
    printable = "".join(character if character.isprintable() else " " for character in slot)
    return " ".join(printable.split())[:_SHOWN] or "(no slot)"

"""Whether a model may say of a user what it says: only what the user has said, in these words, in the first person.

A model can be wrong, and it can be talked into anything by what it reads. So nothing here trusts it: each claim has to
stand in one of the user's own sentences, whatever the model was shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from local.services.classifying.prompt import MAX_ENTITIES, Claim, ClassifierReply
from local.services.engrams.engram import slot_key
from local.services.engrams.facts import Classified, FactFinding, Way
from local.services.engrams.masking import masked
from local.services.engrams.words import all_words, content_words

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


MAX_SLOT = 80
MAX_VALUE = 300
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s*|\n+")
_QUESTION = re.compile(r"[?？]\W*$")
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|mine|myself|we|(?-i:us)|our|ours"
    r"|ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2}"
    r"|je|j|moi|mon|nous|notre|nos"
    r"|yo|mi|mis|me|nosotros|nuestr[ao]s?|soy|tengo|vivo|trabajo|prefiero"
    r"|io|mio|mia|miei|mie|noi|nostr[oaie]|sono|abito|preferisco"
    r"|eu|meu|minha|meus|minhas|nós|nosso|nossa|moro|trabalho|prefiro"
    r"|ik|mij|mijn|wij|ons|onze|jag|mig|mitt|mina|jeg|meg"
    r"|mnie|mój|moja|moje|mam|jestem|mieszkam|я|мне|меня|мой|моя|моё|мое|мои|мы|наш\w?)\b"
    r"|我|私|僕|俺|わたし|ぼく|나는|내|저는|제가",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"\b(?:remember|(?:please|take) note|note that|keep in mind|don['’]?t forget|do not forget|for the record"
    r"|merke? dir|denk daran|vergiss nicht|notiere?|retiens|souviens-toi|n['’]oublie pas"
    r"|recuerda|no olvides|anota|ricorda|ricordati|non dimenticare|lembra|onthoud)\b|记住|覚えて|기억",
    re.IGNORECASE,
)
_FORGET = re.compile(
    r"\b(?:forget|vergiss|oublie|olvida|dimentica|esquece|vergeet)\b|忘れて|忘记",
    re.IGNORECASE,
)
_NO_LONGER = re.compile(
    r"n['’]t\b.{0,60}\bany ?more\b|\b(?:no longer|(?:not|never)\b.{0,60}\bany ?more|stopped|quit|gave up|used to"
    r"|nicht mehr|kein\w*\b.{0,60}\bmehr|aufgehört|ne\b.{0,60}\bplus|ya no|non\b.{0,60}\bpiù|já não|niet meer)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKUP = re.compile(
    r"^\s*#|[<>{}\[\]`|\\\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069]|https?://|www\."
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


def refusal(claim: Claim, own_words: str, slots: Collection[str] = ()) -> str | None:
    """Why a claim is not believed; None if it is. `own_words` are what the user typed, without what was quoted; `slots`
    those of the user's facts so far."""
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
    if not is_plain(slot, own_words, slots):
        return "the user did not speak of that"
    return _not_taken_back(both, own_words) if claim.retracts else _unfounded(value, own_words)


def is_named(entity: str, own_words: str) -> bool:
    """Whether the user has written this name, all of it."""
    words = all_words(entity)
    return bool(words) and len(entity) <= MAX_SLOT and not _MARKUP.search(entity) and words <= all_words(own_words)


def _unfounded(value: str, own_words: str) -> str | None:
    words = content_words(value)
    if not words:
        return "it has no value"
    said = [sentence for sentence in _sentences(own_words) if words <= all_words(sentence)]
    if not said:
        return "the user did not say so in these words"
    return None if any(map(_is_statement, said)) else "the user did not say so of themselves"


def _not_taken_back(matter: str, own_words: str) -> str | None:
    about = content_words(matter)
    said = any(about & content_words(sentence) and _takes_back(sentence) for sentence in _sentences(own_words))
    return None if said else "the user did not take it back"


def _takes_back(sentence: str) -> bool:
    if _FORGET.search(sentence):
        return True
    return _NO_LONGER.search(sentence) is not None and _is_statement(sentence)


def _is_statement(sentence: str) -> bool:
    if _REMEMBER.search(sentence):
        return True
    return _FIRST_PERSON.search(sentence) is not None and not _QUESTION.search(sentence)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence and not sentence.isspace()]


_SHOWN = 80


def decide(reply: ClassifierReply, own_words: str, slots: Collection[str]) -> tuple[Classified, tuple[str, ...]]:
    """What is to be noted, and a sentence for each claim that is not. `slots` are those of the user's current facts."""
    believed, refused = list[Claim](), list[str]()
    for claim in reply.facts:
        reason = refusal(claim, own_words, slots)
        if reason is None and claim.retracts and slot_key(claim.slot) not in map(slot_key, slots):
            reason = "nothing is known of it that could be taken back"
        if reason is None:
            believed.append(claim)
        else:
            refused.append(f"{_shown(claim.slot)}: {reason}")
    entities = [name for entity in reply.entities if is_named(name := entity.strip(), own_words)]
    findings = tuple(FactFinding(_way(claim, believed), claim.slot.strip(), claim.value.strip()) for claim in believed)
    return Classified(True, reply.intent, tuple(dict.fromkeys(entities))[:MAX_ENTITIES], findings), tuple(refused)


def _way(claim: Claim, believed: Collection[Claim]) -> Way:
    if claim.retracts:
        return Way.RETRACT
    values = {
        other.value.strip().casefold()
        for other in believed
        if slot_key(other.slot) == slot_key(claim.slot) and not other.retracts
    }
    return Way.SUPERSEDE if claim.certain and len(values) == 1 else Way.CONTRADICT


def _shown(slot: str) -> str:
    """A slot in a report: what was refused may be anything, a secret, too, so that no value is repeated."""
    printable = "".join(character if character.isprintable() else " " for character in slot)
    return " ".join(printable.split())[:_SHOWN] or "(no slot)"

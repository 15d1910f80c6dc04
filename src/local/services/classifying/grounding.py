"""Whether a model may say of a user what it says: only what the user has said, in these words, in the first person.

A model can be wrong, and it can be talked into anything by what it reads. So nothing here trusts it: each claim has to
stand in one of the user's own sentences, whatever the model was shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from local.services.classifying.reply import Claim
from local.services.classifying.slot_words import is_plain
from local.services.engrams.masking import masked
from local.services.engrams.words import all_words, content_words

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

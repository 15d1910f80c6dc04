"""The words of a text: their language, and which of them are characteristic of the topic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum


class Language(StrEnum):
    """The language of a text in the word index: English is stemmed, all other text is indexed as written."""

    ENGLISH = "english"
    OTHER = "other"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"\w+")
# Scripts without spaces between words: Thai, Lao, Khmer and Myanmar, kana, Han, and the marks used with them.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)

_ENGLISH_MARKS = _set(
    "the is are of and to what which who how when where why my your you it its this that these those with for from"
    " have has had do does did can could would should will not be been there they them we our about"
)
_OTHER_MARKS = _set(
    # German, French, Spanish, Italian, Portuguese, Dutch, Polish, Scandinavian
    "der das und ist nicht ich du wir mein meine wie wo wann ein eine mit für auf von den dem zu im le la les des est"
    " et une je mon ma mes que qui où avec pour dans sur du el los las es y un una mi con por para qué cómo en il lo"
    " gli di che è sono mio mia per come o os as um uma meu minha não de het een ik mijn hoe waar met voor van nie jest"
    " w na że się jak co moja mój og är jag min mitt hur och att det en som ikke jeg hvordan quel quelle"
)
_STOP_WORDS = _set(
    "a an the and or but if then than of to in on at by for from with about as into over after before is are was were"
    " be been being am do does did done have has had having can could will would shall should may might must i me my"
    " mine we us our you your yours he him his she her it its they them their this that these those there here what"
    " which who whom whose when where why how not no so too very just also again some any all more most much many such"
    " please tell told know remember remind say said mention mentioned talk talked discuss discussed"
    " s t m re ve ll d don"
)
OF_THE_USER = _set(  # words for the user and their data: they match all facts
    "user users fact facts everything anything profile personal information info details learned learnt myself"
    " alles weißt weisst über mich fakten nutzer tout sais tu sur moi faits utilisateur todo sabes sobre mí datos"
    " usuario tutto sai di te cosa tudo você sabe mim wat weet je ik over mij"
    " 知道 你知 你对 对我 我了 了解 解多 多少 什么"
)
MAX_TERMS = 24


def language_of(text: str) -> Language:
    """Return English if English function words prevail over those of other languages; otherwise the language is
    unknown.
    """
    words = _WORD.findall(text.casefold())[:200]
    english = sum(word in _ENGLISH_MARKS for word in words)
    other = sum(word in _OTHER_MARKS for word in words)
    return Language.ENGLISH if english > other else Language.OTHER


def indexable(text: str) -> str:
    """The text with scripts that have no spaces cut into single characters and overlapping pairs."""
    return _UNSPACED.sub(lambda run: f" {' '.join(_pieces(run[0]))} ", text)


def terms_of(question: str) -> list[str]:
    """Return the words to search for, each once, in order; small words only if there are no others."""
    words = list(dict.fromkeys(_words(question.lower())))  # not casefold(): the index keeps ß
    return ([word for word in words if _is_telling(word)] or words)[:MAX_TERMS]


def is_telling(question: str) -> bool:
    """Whether any of its words is characteristic of the topic."""
    return any(map(_is_telling, _words(question.lower())))


def _is_telling(word: str) -> bool:
    return word not in _STOP_WORDS and word not in _OTHER_MARKS


def telling_words(text: str) -> frozenset[str]:
    """Return the words that are characteristic of a text's topic, in any language."""
    return frozenset(word for word in _words(text.casefold()) if _is_telling(word))


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text."""
    return frozenset(_words(text.casefold())) - _STOP_WORDS


def all_words(text: str) -> frozenset[str]:
    """Every word of a text, the small ones included."""
    return frozenset(_words(text.casefold()))


def _words(text: str) -> Iterable[str]:
    if text.isascii() or not _UNSPACED.search(text):  # most texts, and twice as fast
        return _WORD.findall(text)
    return _words_and_pairs(text)


def _words_and_pairs(text: str) -> Iterator[str]:
    for word in _WORD.findall(_UNSPACED.sub(lambda run: f" {run[0]} ", text)):
        if _UNSPACED.match(word) and len(word) > 1:
            yield from (word[start : start + 2] for start in range(len(word) - 1))
        else:
            yield word


def _pieces(run: str) -> list[str]:
    return [*run, *(run[start : start + 2] for start in range(len(run) - 1))]

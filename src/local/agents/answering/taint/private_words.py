"""Which words of a search stand in what is private and were not said by the user in this conversation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from local.services.engrams.masking import masked
from local.services.engrams.words import content_words

RUN = 4  # words in a row
LEAST_CODE = 4  # characters of a code that is found in a longer word, or put together from pieces
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_SQUEEZED = re.compile(r"[^\w]|_")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{8}")  # of a script that has no spaces
_PLAIN = re.compile(r"[^\W\d_]*(?:['’-][^\W\d_]+)*|[a-z]*(?:[A-Z][a-z]{2,})+")
_LONGEST_PIECE = 3


def _squeezed(text: str) -> str:
    return _SQUEEZED.sub("", text).casefold()


class PrivateWords:
    """`private` are texts with what a user has not said here; `spoken` is what they have said, and `public` what stands
    in every prompt."""

    def __init__(self, private: Iterable[str], spoken: Iterable[str], public: str = "") -> None:
        self._private, self._spoken = "\n".join(private), "\n".join([*spoken, public])

    def found_in(self, query: str) -> list[str]:
        """The words of a search that are not to be told, each once: numbers, codes and addresses, and four or more
        words in a row."""
        found = [*self._secrets(query), *self._codes(query), *self._pieced(query), *self._runs(query)]
        return list(dict.fromkeys(found))

    def _secrets(self, query: str) -> Iterator[str]:
        if masked(query) != query and _squeezed(query) not in self._squeezed_spoken:
            yield query

    def _codes(self, query: str) -> Iterator[str]:
        for word in query.split():
            if not _is_plain(word) and self._is_private_code(word):
                yield word

    def _is_private_code(self, word: str) -> bool:
        code = _squeezed(word)
        if len(code) < 2 or code in self._spoken_numbers:
            return False
        if code.isdigit() and len(code) <= LEAST_CODE:
            return code in self._numbers
        if code in self._squeezed_spoken:
            return False
        if any(number in self._numbers and number not in self._spoken_numbers for number in _long(word)):
            return True
        return code in self._squeezed_private or self._holds_code(code)

    def _holds_code(self, text: str) -> bool:
        return any(code in text for code in self._private_codes)

    def _pieced(self, query: str) -> Iterator[str]:
        """Codes that were taken apart: letters and digits with spaces between them."""
        run: list[str] = []
        for word in [*query.split(), "." * 9]:
            if len(_squeezed(word)) <= _LONGEST_PIECE and len(word) < 9:
                run.append(word)
                continue
            pieces, run = run, []
            whole = _squeezed("".join(pieces))
            if len(pieces) > 1 and any(char.isdigit() for char in whole) and self._is_pieced_code(whole):
                yield " ".join(pieces)

    def _is_pieced_code(self, whole: str) -> bool:
        if len(whole) < LEAST_CODE or whole in self._squeezed_spoken:
            return False
        return whole in self._numbers or whole in self._squeezed_private or self._holds_code(whole)

    def _runs(self, query: str) -> Iterator[str]:
        words = _words(query)
        for start in range(len(words) - RUN + 1):
            run = words[start : start + RUN]
            if self._is_private_run(run):
                yield " ".join(run)
        for found in _DENSE.finditer(query):
            if found[0] in self._private and found[0] not in self._spoken:
                yield found[0]

    def _is_private_run(self, run: Sequence[str]) -> bool:
        text = f" {' '.join(run)} "
        if text not in self._running_private or text in self._running_spoken:
            return False
        return bool(set(content_words(text)) - self._spoken_words)

    @cached_property
    def _squeezed_spoken(self) -> str:
        return _squeezed(self._spoken)

    @cached_property
    def _squeezed_private(self) -> str:
        """The words of it, one a line."""
        return "\n".join(map(_squeezed, self._private.split()))

    @cached_property
    def _private_codes(self) -> Collection[str]:
        words = {_squeezed(word) for word in self._private.split() if not _is_plain(word)}
        return {
            word
            for word in words
            if len(word) > (LEAST_CODE if word.isdigit() else LEAST_CODE - 1)
            and any(char.isdigit() for char in word)
            and word not in self._squeezed_spoken
        }

    @cached_property
    def _numbers(self) -> Collection[str]:
        whole = {code for word in self._private.split() if (code := _squeezed(word)).isdigit()}
        return {*whole, *_NUMBER.findall(self._private)}

    @cached_property
    def _spoken_numbers(self) -> Collection[str]:
        return set(_NUMBER.findall(self._spoken))

    @cached_property
    def _running_private(self) -> str:
        return f" {' '.join(_words(self._private))} "

    @cached_property
    def _running_spoken(self) -> str:
        return f" {' '.join(_words(self._spoken))} "

    @cached_property
    def _spoken_words(self) -> frozenset[str]:
        return content_words(self._spoken)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _long(word: str) -> list[str]:
    """The numbers of more than one digit within a word."""
    return [number for number in _NUMBER.findall(word) if len(number) > 1]


def _is_plain(word: str) -> bool:
    """Whether it is a word as people write them: no digits, no marks within, no strange mixture of cases."""
    bare = word.strip("\"'“”‘’«»()[]{}.,;:!?…-–—*_`")
    if _PLAIN.fullmatch(bare) is None:
        return False
    return bare.islower() or bare.istitle() or len(bare) < 8 or not bare.isupper()

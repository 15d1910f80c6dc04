"""The rule of taint: the permissions of a turn once untrusted content is in front of its model.

Problem: a page, a file, a mail or a tool's result may contain instructions, and a model may obey them. Their author
wants to obtain private content: by an address that is opened, a host name that is looked up, a search, a link in the
answer, or a tool that writes.

Idea: the model is not trusted to notice. From the first untrusted content on, the conversation is tainted, and code
outside the model decides by provenance: where an address or a word comes from. An address is opened if it is, letter
for letter, from the user, a search hit or a page that was read. Of those from untrusted content, only few are opened
for one question and in one conversation, by all agents together (`LinkBudget`); an agent whose task was written after
untrusted content was read opens only what the turn that wrote it could open. A search must not hold private words that
the user has not written here; a tool with effects runs only with a person's approval; links of unknown provenance in
the answer are left out (`links.py`).

Invariants: taint never goes away within a conversation, its branches, its summaries and its memories; unreadable
content counts as tainted; a model's own words never add provenance.

Rejected: asking a model whether a text contains instructions, which misses those that it does not recognise; and a
fixed list of good hosts, since a good host may lead to any other.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import from_json

from local.bus.messages import ToolCallRecord
from local.bus.vocabulary import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH
from local.core.errors import FetchRefused
from local.core.text import MARGIN, masked
from local.core.web_url import WebUrl, parse_web_url
from local.core.words import content_words

# Addresses of the web as people and pages write them, and the set of those with a known provenance.

CLOSERS = ".,;:!?…'\")]}>*_`|”’»›。，、！？；：）】》」』"  # characters that may follow an address
_SCHEMED = re.compile(r"https?://[^\s<>\"`]+", re.IGNORECASE)
_BARE = re.compile(r"(?<![\w@/:.-])(?:[\w-]+\.)+(?:[^\W\d_][\w-]+|\d+)(?::\d+)?(?:[/?][^\s<>\"`]*)?")
_WEB_PORTS = (80, 443)
_FIRST_OTHER = re.compile(r"[^!-~]")
_MOST_CLOSERS = 4
_LONGER = 32  # characters that an address may have more than the one that it is: a port, a www., a fragment

Key = tuple[str, int | None, str]


def parsed(text: str) -> WebUrl | None:
    """Return an address; None if the text is not one."""
    try:
        return parse_web_url(text)
    except FetchRefused:
        return None


def addresses_in(text: str) -> Iterator[str]:
    """Return the http(s) addresses in a text, each also without possible punctuation at its end."""
    for found in _SCHEMED.finditer(text):
        yield from _variants(found[0])


def spoken_addresses_in(text: str) -> Iterator[str]:
    """The addresses of a text, and those that people write without a scheme, with either."""
    yield from addresses_in(text)
    for found in _BARE.finditer(text):
        for each in _variants(found[0]):
            yield from (f"https://{each}", f"http://{each}")


def _variants(written: str) -> Iterator[str]:
    other = _FIRST_OTHER.search(written)
    for text in dict.fromkeys((written, written[: other.start()] if other else written)):
        yield text
        for _ in range(_MOST_CLOSERS):
            if text[-1:] not in CLOSERS or not text:
                break
            text = text[:-1]
            yield text


def key_of(url: WebUrl) -> Key:
    """Equal for addresses that differ in scheme, case, a www. or a slash at the end alone."""
    port = None if url.port in _WEB_PORTS else url.port
    return url.host.removeprefix("www."), port, url.target.rstrip("/").casefold()


class AllowedUrls:
    """The set of addresses with a known provenance. A request for an equivalent address uses the known one, so that its
    spelling cannot carry information.
    """

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        self._exact: set[str] = set()
        self._written: set[str] = set()  # with their fragments
        self._by_key: dict[Key, str] = {}
        self._longest = 0
        for address in addresses:
            self.add(address)

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, address: str) -> None:
        """Add an address; text that is not one is ignored."""
        url = parsed(address)
        if url is not None:
            self._exact.add(str(url))
            self._written.add(address)
            self._by_key.setdefault(key_of(url), str(url))
            self._longest = max(self._longest, len(address), len(str(url)))

    def matching(self, address: str) -> str | None:
        """Return the known address that is equivalent to this one, in its known form; None if there is none."""
        url = parsed(address) if len(address) <= self._longest + _LONGER else None
        if url is None:
            return None
        if str(url) in self._exact:
            return address if "#" not in address or address in self._written else str(url)
        return self._by_key.get(key_of(url))


RUN = 4  # words in a row
LEAST_CODE = 4  # characters of a code that is found in a longer word, or put together from pieces
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_SQUEEZED = re.compile(r"[^\w]|_")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{8}")  # of a script that has no spaces
_PLAIN = re.compile(r"[^\W\d_]*(?:['’-][^\W\d_]+)*|[a-z]*(?:[A-Z][a-z]{2,})+")
_LONGEST_PIECE = 3
_LONGEST_WORD = 30


# The same text in other letters: of other alphabets, or encoded.

_HAS_ALIKE = re.compile("[\u0370-\u058f]")
_ALIKE = str.maketrans(  # Cyrillic, Greek and Armenian letters that look like those of English
    "аеорсухіјѕԁһԛԝкмтвнгАЕОРСУХІЈЅКМТВНαορντυικεηχβγΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոց",
    "aeopcyxijsdhqwkmtbhrAEOPCYXIJSKMTBHaopvtuikenxbyABEZHIKMNOPTYXoshng",
)
_SPELLED = re.compile(r"(?<![^\W_])[^\W_](?:(?:[\W_]{1,3})[^\W_]){3,}(?![^\W_])")  # l-e-t-t-e-r-s
_HEX = re.compile(r"(?:(?:0x|\\x|%|&#x)?[0-9a-f]{2}[\s:;,_-]?){4,}", re.IGNORECASE)
_HEX_DIGITS = re.compile(r"(?:0x|\\x|%|&#x)?([0-9a-f]{2})", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}")


class _Letters(dict[int, str]):
    """The letters as they are read, by their codes; each is looked up once."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        digit, bare = unicodedata.digit(letter, None), unicodedata.normalize("NFD", letter)[0]
        if digit is not None:
            read = str(digit)
        elif unicodedata.category(letter) in ("Cf", "Mn", "Me"):
            read = ""
        else:
            read = bare if bare.isascii() else letter
        self[code] = read
        return read


_LETTERS = _Letters()


def _as_read(text: str) -> str:
    """Return a text as a person reads it: digits and letters that look like ASCII are ASCII, and marks that show as
    nothing, or are put on other letters, are left out."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text).translate(_LETTERS)
    return _WORD.sub(lambda found: _alike(found[0]), text) if _HAS_ALIKE.search(text) else text


def _alike(word: str) -> str:
    """Return a word in English letters if each of its letters looks like one."""
    alike = word.translate(_ALIKE)
    return alike if alike.isascii() else word


def _decoded_from(text: str) -> Iterator[tuple[str, str]]:
    """Yield each part of a text that may be encoded, with what it says: letter by letter, in hex, in base64."""
    for found in _SPELLED.finditer(text):
        yield found[0], _SQUEEZED.sub("", found[0])
    for found in _HEX.finditer(text):
        yield found[0], _printed(bytes.fromhex("".join(_HEX_DIGITS.findall(found[0]))))
    for found in _BASE64.finditer(text):
        letters = found[0].translate({ord("-"): "+", ord("_"): "/"})
        with suppress(ValueError):
            yield found[0], _printed(base64.b64decode(letters + "=" * (-len(letters) % 4)))


def _printed(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if text.isprintable() and "\ufffd" not in text else ""


def _squeezed(text: str) -> str:
    return _SQUEEZED.sub("", text).casefold()


class PrivateWords:
    """A search for private words. `private` are texts with content that the user has not written here; `spoken` are the
    user's words, and `public` the texts of every prompt. All of them are compared as a person reads them, whatever
    alphabet their letters are of.
    """

    def __init__(self, private: Iterable[str], spoken: Iterable[str], public: str = "") -> None:
        self._private, self._spoken = _as_read("\n".join(private)), _as_read("\n".join([*spoken, public]))

    def found_in(self, query: str) -> list[str]:
        """Return the private words of a search, each once: numbers, codes and addresses, four or more words in a row,
        and any word that is encoded, which nobody does with what is not private.
        """
        query = _as_read(query)
        found = [*self._secrets(query), *self._codes(query), *self._pieced(query), *self._runs(query)]
        return list(dict.fromkeys([*found, *self._encoded(query)]))

    def _encoded(self, query: str) -> Iterator[str]:
        for written, said in _decoded_from(query):
            letters = _squeezed(_as_read(said))
            parts = (
                letters[at:end] for at in range(len(letters)) for end in range(at + LEAST_CODE, at + _LONGEST_WORD)
            )
            if any(part in self._private_words for part in parts):
                yield written

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
        return code in self._squeezed_private or self._has_code(code)

    def _has_code(self, text: str) -> bool:
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
        return whole in self._numbers or whole in self._squeezed_private or self._has_code(whole)

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
    def _private_words(self) -> Collection[str]:
        """The words and codes that are private even alone, if somebody has encoded them."""
        words = {*_words(self._private), *map(_squeezed, self._private.split())}
        return {word for word in words if len(word) >= LEAST_CODE} - {*_words(self._spoken)}

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


# The provenance of what a model may use: words of the user, addresses from searches and pages, and private content.

MOST_IN_TEXT = 200  # addresses of one result's text
FETCH, SEARCH, RECALL, READ_ON = "web_fetch", "web_search", "search_memory", "read_result"
_SAID = re.compile(r" \(said [^)]*\)")  # the time of an exchange is not private


@dataclass(frozen=True, slots=True)
class Provenance:
    """The known origin of words and addresses. `spoken` are the user's own words in this conversation, `private` their
    texts from elsewhere. `hits` are the addresses that the user has written, or that a search before untrusted content
    returned; `links` those of later searches, those on pages, and those that were opened: few of them are opened
    (`LinkBudget`). A host that is `always_readable` is one where outsiders can neither publish nor see requests.
    """

    spoken: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    hits: AllowedUrls = field(default_factory=AllowedUrls)
    links: AllowedUrls = field(default_factory=AllowedUrls)
    always_readable: Collection[str] = ()

    @classmethod
    def of(
        cls,
        spoken: Sequence[str],
        private: Iterable[str],
        calls: Iterable[ToolCallRecord],
        always_readable: Collection[str] = (),
        given: Iterable[ToolCallRecord] | None = None,
    ) -> Provenance:
        """Return the provenance of a conversation up to now. Where other calls have `given` addresses, those of the
        conversation itself add none.
        """
        calls = list(calls)
        giving = calls if given is None else list(given)
        spoken = (*spoken, *(own for call in giving if (own := own_words(call))))
        read = (_private_in(call) for call in calls if call.result and not _is_public(call))
        hits = AllowedUrls(address for text in spoken for address in spoken_addresses_in(text))
        links = AllowedUrls()
        for call in giving:
            _note(call, hits, links)
        return cls(spoken, (*private, *read), hits, links, always_readable)

    def address(self, address: str) -> str | None:
        """Return an address in the form that may be shown: the known form, or one on a host that is always readable."""
        given = self.hits.matching(address) or self.links.matching(address)
        return given or (address if "#" not in address and self.is_always_readable(address) else None)

    def is_always_readable(self, address: str) -> bool:
        """Whether a request to that address reveals nothing to outsiders."""
        url = parsed(address)
        return url is not None and url.netloc in self.always_readable and "?" not in url.target


def _note(call: ToolCallRecord, hits: AllowedUrls, links: AllowedUrls) -> None:
    if call.tool not in (FETCH, SEARCH) or call.result is None:
        return
    if call.tool == SEARCH and not call.after_taint:
        for address in call.sources:
            hits.add(address)
    for address in (*call.sources, *call.links, *islice(addresses_in(call.result), MOST_IN_TEXT)):
        links.add(address)


def own_words(call: ToolCallRecord) -> str | None:
    """Return the user's own words in an answer to a question of the model; empty if it is one of the options, which the
    model wrote and which may be untrusted content.
    """
    if call.tool != CLARIFICATION or call.result is None:
        return None
    is_option = any(_plain(str(option)) == _plain(call.result) for option in call.args.get("options") or ())
    return None if is_option else call.result


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_public(call: ToolCallRecord) -> bool:
    """Whether a call's result is from the web, from this conversation, or from LoCAL2 itself."""
    return call.tool in (FETCH, SEARCH, CLARIFICATION, TODO_LIST, PROPOSE_PLAN, PLAN_STEP, TOOL_SEARCH) or (
        call.tool == READ_ON and bool(call.sources)
    )


def _private_in(call: ToolCallRecord) -> str:
    """Return the private content in the result of any other tool: all of it, of memories the user's words."""
    return user_words_in(call.result or "") if call.tool == RECALL else call.result or ""


def user_words_in(recollection: str) -> str:
    """Return the user's part of the text of search_memory: quotations, and the values of facts."""
    lines = (_SAID.sub("", line) for line in recollection.splitlines() if line.startswith((MARGIN, "- ")))
    return "\n".join(line.removeprefix(MARGIN) for line in lines)


def calls_in(outcomes: Iterable[str]) -> list[ToolCallRecord]:
    """The calls in the stored ends of turns, which are JSON."""
    return [ToolCallRecord.model_validate(call) for outcome in outcomes for call in _calls(from_json(outcome))]


def _calls(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    return list(outcome.get("tool_calls") or ())


# The decision which calls of a tainted turn are made, and how: outside the model, whatever its prompt contains.

MOST_LINKS = 5  # of those that pages have given, opened for one question, by its agents too
MOST_IN_CONVERSATION = 10  # of them, for all questions of a conversation together
NOT_GIVEN, PRIVATE_WORDS, TAINTED = "not_given", "private_words", "tainted"
REFUSALS = frozenset({NOT_GIVEN, PRIVATE_WORDS, TAINTED})  # kinds
_WHY = "This conversation holds text of strangers (a page, a search, a file or a tool's result)"
_SHOWN = 300  # characters of refused content


class TaintRefusal(NamedTuple):
    """Why a call is not made: a word for programs, and a sentence for the model and the user."""

    kind: str
    message: str


@dataclass(slots=True, weakref_slot=True)
class LinkBudget:
    """The addresses from untrusted content that were opened in one conversation, by the user's question whose turn, or
    whose agents' turns, have opened them. All turns of the conversation share one, so that the openings of concurrent
    agents count together. `unsaved` are the pairs of question and address that are not stored yet.
    """

    opened: dict[str, set[str]] = field(default_factory=dict)
    unsaved: list[tuple[str, str]] = field(default_factory=list)

    def refusal(self, question: str, address: str) -> str:
        """Why an address is not opened for a question; empty if it is, which is counted."""
        opened = self.opened.setdefault(question, set())
        if address in opened:
            return ""
        if len(opened) >= MOST_LINKS:
            return f"{MOST_LINKS} links of pages were followed for this question already"
        if sum(map(len, self.opened.values())) >= MOST_IN_CONVERSATION:
            return f"{MOST_IN_CONVERSATION} links of pages were followed in this conversation already"
        opened.add(address)
        self.unsaved.append((question, address))
        return ""


@dataclass(slots=True)
class TaintPolicy:
    """The rule's decisions for the calls of one message of the model, which must be passed in their order. `budget`
    counts the links that are opened for the user's `question`, `may_write` are tools with effects that may be used all
    the same, `public` are the texts of every prompt.
    """

    provenance: Provenance
    budget: LinkBudget = field(default_factory=LinkBudget)
    question: str = ""
    may_write: Collection[str] = ()
    public: str = ""

    def refusal(
        self, tool: str, args: Mapping[str, Any], effect: str, *, sends_out: bool = False
    ) -> TaintRefusal | None:
        """Return why that call is not made, or None if it is. A tool with `sends_out` is judged like a search."""
        if effect == "write" and tool not in self.may_write:
            return TaintRefusal(TAINTED, f"{tool} was not run, because it changes something. {_WHY}; {_TO_WRITE}")
        if tool == FETCH:
            return self._fetch_refusal(str(args.get("url", "")))
        if tool == SEARCH:
            return self._words_refusal(str(args.get("query", "")), "nothing was searched for", _TO_SEARCH)
        if sends_out:
            return self._words_refusal(" ".join(_texts_in(args)), f"{tool} was not run", _TO_SEND)
        return None

    def as_given(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call that is made: an address is opened as it was given, however the model writes it."""
        address = str(args.get("url", ""))
        if tool != FETCH:
            return dict(args)
        return {**args, "url": self.provenance.address(address) or address}

    def stays_on_host(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether redirects of that call to other hosts must be refused."""
        address = str(args.get("url", ""))
        given = self.provenance.hits.matching(address) or self.provenance.links.matching(address)
        return tool == FETCH and given is None

    def _fetch_refusal(self, address: str) -> TaintRefusal | None:
        if self.provenance.hits.matching(address) or self.provenance.is_always_readable(address):
            return None
        given = self.provenance.links.matching(address)
        shown = address[:_SHOWN]
        if given is None:
            return TaintRefusal(NOT_GIVEN, f"{shown} was not opened. {_WHY}, and that address {_TO_READ}")
        if why := self.budget.refusal(self.question, given):
            text = f"{shown} was not opened: {why}"
            return TaintRefusal(NOT_GIVEN, f"{text}. {_WHY}; the user can have that address opened by naming it.")
        return None

    def _words_refusal(self, text: str, outcome: str, instead: str) -> TaintRefusal | None:
        found = PrivateWords(self.provenance.private, self.provenance.spoken, self.public).found_in(text)
        if not found:
            return None
        words = ", ".join(f"“{word[:_SHOWN]}”" for word in found)
        return TaintRefusal(PRIVATE_WORDS, f"{outcome}. {_WHY}, and {words} {instead}")


def _texts_in(value: Any) -> Iterator[str]:
    """The names and values of arguments, one after the other."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from _texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts_in(each)
    else:
        yield str(value)


_TO_READ = (
    "stands neither in the user's words nor in a search hit nor among the links of a page that was read. The user can"
    " have it opened by naming it."
)
_TO_SEARCH = "stands in what is private to the user. Search in other words; the user can have it searched by saying it."
_TO_SEND = (
    "stands in what is private to the user, and this tool sends its arguments to others. Call it with other words;"
    " the user can have it sent by saying it."
)
_TO_WRITE = "a tool with effects runs then only if it is on the list may_write in generator.yaml."

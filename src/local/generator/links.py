"""The filter that removes links of unknown provenance from a tainted text while it streams.

Problem: a link or a picture in the answer reveals the content of its address to the owner of its host. What matters is
not how the text looks but how a reader of Markdown parses it, and readers differ: GitHub's, the page's, linkify-it.

Idea: parse as the most eager of them does. The parts of Markdown that carry an address are read by the parser's own
rules: destinations, titles, autolinks, escapes, entities (`markdown_it`). Nothing around them protects: code, escaped
brackets and block structure count as plain text, because a reader may parse them differently once more text has
arrived. A tag with attributes stays only if its values are words, relative addresses or known addresses, in whatever
way a browser reads them: it takes a backslash for a slash. Bare addresses have one expression, `HEAD`, because no
library finds everything that the others find; it has no left boundary that emphasis could hide behind. Three names with
dots are an address if the last is a top-level domain. `tests/taint/link_forms.py` checks it against four real readers.

Invariants: the output never contains a link of unknown provenance, wherever the stream is cut or ends; a known address
is not continued by the text after it; the output does not depend on how the text was cut. Only an unfinished link is
held, and at most `MOST_HELD` characters of it.

Rejected: parsing the whole answer at each token, which takes the square of its length, and cannot take back its output;
adding a linkifier, each of which misses what another links (`_www.` for linkify-it, `host.tld/x` for GFM).
"""

from __future__ import annotations

import html
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from markdown_it.common.utils import unescapeAll
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline.autolink import AUTOLINK_RE, EMAIL_RE

from local.generator.taint_policy import CLOSERS, Provenance
from local.models.chat import ContentDelta, Degraded, Delta, Done, RestartDelta, ThinkingDelta

# The links in a text, as any reader may recognise them, and which of them may stay.

LEFT_OUT = "(link left out)"
SCHEMES = (
    *("https", "http", "ftps", "ftp", "sftp", "ssh", "git", "file", "wss", "ws", "data", "javascript", "vbscript"),
    *("mailto", "xmpp", "sips", "sip", "tel", "sms", "magnet", "irc", "intent", "blob"),
)
_NO_TLDS = ("example", "test", "invalid", "onion", "local", "internal", "lan", "home", "web")  # linked all the same


def _top_level_domains() -> str:
    """Return an expression for the endings of hosts that have more than two letters, from the list of `tld`."""
    package = importlib.util.find_spec("tld")
    assert package is not None and package.origin is not None, "it is among the requirements"
    file = Path(package.origin).with_name("res") / "effective_tld_names.dat.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    endings = (line for line in lines if line.isascii() and line.isalpha() and len(line) > 2)
    return _any_of(sorted({*_NO_TLDS, *endings}))


def _any_of(words: Sequence[str]) -> str:
    """Return an expression for some sorted words that is read letter by letter, without trying one after the other."""
    groups = groupby(filter(None, words), itemgetter(0))
    branches = [f"{letter}{_any_of([word[1:] for word in group])}" for letter, group in groups]
    return f"(?:{'|'.join(branches)}){'?' if '' in words else ''}" if branches else ""


_LETTERS_OF_HOST = r"A-Za-z0-9$\x80-\U0010ffff"
_LABEL = rf"(?:[{_LETTERS_OF_HOST}](?:[{_LETTERS_OF_HOST}`_-]{{0,62}}[{_LETTERS_OF_HOST}`-])?|[+=^|~])\."
_NOT_SEEN = r"\u00ad\u200b-\u200f\u2060\ufeff"
HEAD = re.compile(
    r"[a-z][a-z0-9+.-]{0,30}://"
    rf"|(?<![^\W_])(?:{'|'.join(SCHEMES)}):(?=[^\s\"'])"
    r"|(?:mailto|xmpp):(?=[^\s\"'])"
    r"|www\."
    rf"|(?<![:/\\])(?<![^\W_])[/\\]{{2}}(?=[{_NOT_SEEN}]*[^\W_][\w{_NOT_SEEN}-]*[.:][^\s.,;:)])"
    r"|[\w.+%-]{0,64}[^\s@<>]@[^\s@<>()\[\],;]+\.\w"
    rf"|(?:{_LABEL}){{1,20}}[^\W\d_]\w{{1,62}}(?::\d{{1,5}})?[/\\?#](?=[^\s\w%]{{0,80}}[\w%])"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?[/\\?#](?=[^\s\w%]{0,80}[\w%])"
    rf"|(?:{_LABEL}){{2,20}}(?:{_top_level_domains()}|[a-z]{{2}}|xn--[a-z0-9-]{{1,59}}|[^\W\d_a-zA-Z]{{2,62}})(?!_*[^\W_]|-|\.\w)",
    re.IGNORECASE,
)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(rf"[a-z][a-z0-9+.-]*://|(?:{'|'.join(SCHEMES)}):|[^/]*@", re.IGNORECASE)
_OF_AN_ADDRESS = re.compile(r"[A-Za-z0-9._~:/?#@!$&'()*+,;=%\\-]*")
_ENDS = re.compile(r"[^A-Za-z0-9/%=&_~+@-]")  # before such a character an address may end
_TRIED = 24  # ends from either side
_WIDE = str.maketrans(
    {0xFEE0 + code: chr(code) for code in (*b"./\\@#", *range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B))}
)
_UNSEEN = re.compile(r"[\s\x00-\x20\u200b-\u200f\u2060\ufeff]")
_ANY_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_IN_TAG = re.compile(rf"//|(?:{'|'.join(SCHEMES)}):", re.IGNORECASE)
_STYLE = re.compile(r"""\bstyle\s*=\s*(?:"[\w\s:;.,#%+-]*"|'[\w\s:;.,#%+-]*')""", re.IGNORECASE)
_HARMLESS = re.compile(r"""(?!.*(?://|\bon\w+\s*=))[\w\s.,;#%+/"'=-]*""", re.IGNORECASE | re.DOTALL)  # names and values
_HAS_ATTRIBUTES = re.compile(r"[a-z][a-z0-9]*(?:[\s/]|\Z)", re.IGNORECASE)
_ADDRESS_IN_TAG = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_MOST_CLOSERS = 3


def decoded(text: str) -> str:
    """A text as Markdown reads it, without escapes and entities; nor those that appear only then: some read twice."""
    before = ""
    while text != before and ("&" in text or "\\" in text):
        before, text = text, unescapeAll(text)
    return text


def read(text: str) -> str:
    """Return a text as link detectors may read it: decoded, with wide letters and slashes as plain ones."""
    before = ""
    while text != before:
        before = text
        text = decoded(text if text.isascii() else text.translate(_WIDE))
    return text


def _as_browsers_read(written: str) -> Iterator[str]:
    """Yield a text as readers of Markdown and of HTML may give it to a browser, and as that takes it: with backslashes
    as slashes, also without the characters that it drops.
    """
    forms = {written, html.unescape(written), read(written)}
    before, text = "", written
    while text != before:
        before, text = text, unescapeAll(text)
        forms.add(text)
    for form in forms:
        slashed = form.replace("\\", "/")
        yield from (slashed, _UNSEEN.sub("", slashed))


def loose_words_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the words in these texts that may be taken for a link although they have no scheme of the web."""
    found: set[str] = set()
    for text in texts:
        for word in text.split() if HEAD.search(text) else ():
            for head in HEAD.finditer(word):
                found.update(_readings(word[head.start() :], len(head[0])))
    return frozenset(found)


def _readings(written: str, least: int) -> list[str]:
    """Return the possible addresses at the start of this text, the longest first, each with at least `least`
    characters.
    """
    cuts = [end.start() for end in _ENDS.finditer(written, least)]
    if len(cuts) > 2 * _TRIED:
        cuts = cuts[:_TRIED] + cuts[-_TRIED:]
    return [written, *(written[:cut] for cut in reversed(cuts))]


class Word(NamedTuple):
    """One word of an answer without its links: the text, the number of links left out, and the number of closing
    brackets after an address that may continue with the next word; None if it cannot.
    """

    text: str
    left_out: int
    closers: int | None


class LinkPolicy:
    """The decision which links may stay, by the provenance of addresses. `loose` are words that were in front of the
    model.
    """

    def __init__(self, provenance: Provenance, loose: frozenset[str] = frozenset()) -> None:
        self._provenance, self._loose = provenance, loose

    def target(self, written: str) -> str | None:
        """Return the target of a link in its permitted form; None if it is not permitted."""
        forms = _as_browsers_read(written)
        leads_out = any(form.startswith("//") or _ANY_SCHEME.match(form) or HEAD.search(form) for form in forms)
        return self.address(decoded(written)) if leads_out else written

    def address(self, written: str) -> str | None:
        """Return an address in its permitted form; None if it is not permitted."""
        if _WEB.match(written):
            return self._provenance.address(written)
        if written in self._loose:
            return written
        if _OTHER_SCHEME.match(written):
            return None
        bare = written.lstrip("/")
        given = self._provenance.address(f"https://{bare}")
        return written if given is not None and given.partition("://")[2].rstrip("/") == bare.rstrip("/") else None

    def may_be_tag(self, written: str) -> bool:
        """Whether the content between < and > may stay."""
        if written in self._loose:
            return True
        rest = _ADDRESS_IN_TAG.sub(lambda found: "" if self.address(found[0]) == found[0] else found[0], written)
        if "=" in rest and not _HARMLESS.fullmatch(_STYLE.sub("", rest)):
            return False
        return not any(_IN_TAG.search(form) or HEAD.search(form) for form in _as_browsers_read(rest))

    def word(self, word: str, said: int, *, is_glued: bool = False) -> Word:
        """Return what follows the first `said` characters of a word, which are already published. `is_glued` means that
        text follows the word directly, which may be taken for a part of it.
        """
        plain = word[:said] + read(word[said:])
        if plain != word and HEAD.search(plain):
            word = plain.replace("<", "&lt;")
        pieces, position, search_from, number, is_open = list[str](), said, 0, 0, False
        whole = f"{word}x" if is_glued and not word[-1:].isalnum() else word
        while (head := _head(whole, len(word), search_from)) is not None:
            search_from = head.end()
            if head.end() <= position:
                continue
            start = max(head.start(), position)
            pieces.append(word[position:start])
            stays = self._that_stays(word, head, start)
            if stays is None:
                pieces.append(_mark(word[:said] + "".join(pieces)))
                position, number = max(head.end(), _end_of_address(word, start)), number + 1
                is_open = False
            else:
                text, position = stays
                is_open = not _runs_on(word[position:], is_glued=is_glued)
                pieces.append(text if is_open else f"{text} ")
            search_from = position
        rest = word[position:]
        return Word("".join(pieces) + rest, number, len(rest) if is_open else None)

    def _that_stays(self, word: str, head: re.Match[str], out: int) -> tuple[str, int] | None:
        """Return the rest of the address that begins so, of which the characters before `out` are published, and where
        it ends; None if no address may stay.
        """
        begins = head.start()
        found = [(self.address(written), written) for written in _readings(word[begins:], len(head[0]))]
        for given, written in sorted(found, key=lambda each: each[0] != each[1]):  # exact spellings first
            end = begins + len(written)
            if given is not None and end > out and given.startswith(word[begins:out]):
                return given[out - begins :], end
        return None


def _head(whole: str, length: int, at: int) -> re.Match[str] | None:
    """Return where the next link of a word begins, which has that length and a letter behind it where text follows."""
    head = HEAD.search(whole, at)
    return head if head is None or head.end() <= length else HEAD.search(whole[:length], at)


def _runs_on(rest: str, *, is_glued: bool) -> bool:
    is_closing = len(rest) <= _MOST_CLOSERS and all(char in CLOSERS for char in rest)
    return is_glued or not is_closing


def _mark(before: str) -> str:
    return f" {LEFT_OUT}" if before[-1:].isalnum() else LEFT_OUT


def _end_of_address(word: str, start: int) -> int:
    found = _OF_AN_ADDRESS.match(word, start)
    end = found.end() if found else start
    return end - len(_closers(word[start:end]))


def _closers(text: str) -> str:
    bare = text.rstrip(CLOSERS)
    return text[len(bare) :] if len(text) - len(bare) <= _MOST_CLOSERS else ""


MOST_HELD = 2048  # characters of a link that does not end
MOST_LABEL, MOST_TAG = 500, 1024
_STARTS = frozenset(name[:length] for name in (*SCHEMES, "www") for length in range(1, len(name) + 1))
_NAMES = frozenset((*SCHEMES, "www"))
_SPACE = re.compile(r"\s+")
_PLAIN = re.compile(r"[^\s<\[\]!.:/\\@&]+")
_LETTERS = re.compile(r"[A-Za-z]{1,12}\Z")
_END = re.compile(r"[\s<\[\]]")
_BREAK = re.compile(r"[,;()\"“”„«»…|*`~、。，！？；：（）【】《》「」『』\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LABEL_END = re.compile(r"[\[\]\n]")
_TAG_END = re.compile(r"[<>]|\n[ \t]*\n")
_BLANK = re.compile(r"\n[ \t]*\n")
_GAP, _LINE_GAP = re.compile(r"[ \t\n]*"), re.compile(r"[ \t]*\n?[ \t]*")
_ANGLED, _SOLID = re.compile(r"<[^<>\n]*"), re.compile(r"[^\x00-\x20\x7f]+")
_MAY_GO_ON = re.compile(r"[\w.+%@:/\\&`$=^|~-]{0,80}\Z")  # as a continuation of a published link


class _Done(NamedTuple):
    text: str
    end: int
    closers: int | None = None  # as in `Word`


class _Target(NamedTuple):
    """The target of a link between its brackets, with its title."""

    before: str
    written: str
    after: str
    end: int


class LinkFilter:
    """A filter of the links in one text: feed it piece by piece, wherever it is cut, then close it. The output is the
    same for every way to cut it. `left_out` counts.
    """

    def __init__(self, links: LinkPolicy) -> None:
        self._links = links
        self._held = ""
        self._word = ""  # the published part of the current word
        self._closers: int | None = None  # closing brackets after an address that the next word would continue
        self._goes_on = False
        self.left_out = 0

    def feed(self, text: str) -> str:
        """Return the text that can be published by now."""
        return self._go_on(self._held + text, is_last=False)

    def close(self, *, goes_on: bool = False) -> str:
        """Return the rest. Later input does not continue it, unless a reader of the text sees it behind this one
        (`goes_on`)."""
        self._goes_on = goes_on
        rest = self._go_on(self._held, is_last=True)
        self._word = ""
        return rest

    def _go_on(self, text: str, *, is_last: bool) -> str:
        said, position = list[str](), 0
        while position < len(text):
            done = self._next(text, position, is_last=is_last)
            if done is None:
                break
            said.append(self._parted(done.text))
            self._closers = self._closers if done.closers is None else done.closers
            position = done.end
        self._held = text[position:]
        return "".join(said)

    def _parted(self, text: str) -> str:
        """Return a text with a space before it, if it would continue a published address."""
        if self._closers is None or text.startswith("]("):
            return text
        for at, char in enumerate(text):
            if char in " \t\n":
                break
            self._closers += 1
            if char not in CLOSERS or self._closers > _MOST_CLOSERS:
                self._closers = None
                return f"{text[:at]} {text[at:]}"
        else:
            return text
        self._closers = None
        return text

    def _next(self, text: str, at: int, *, is_last: bool) -> _Done | None:
        """Return the next text and the position of its end; None if more input is needed."""
        char = text[at]
        if char.isspace():
            return self._raw(text, at, _end(_SPACE, text, at))
        if char == "!" and at + 1 == len(text) and not is_last:
            return None
        if char == "[" or text.startswith("![", at):
            return self._bracket(text, at, is_last=is_last)
        if char == "]":
            return self._closing_bracket(text, at, is_last=is_last)
        if char == "<":
            return self._tag(text, at, is_last=is_last)
        return self._plain(text, at, is_last=is_last)

    def _raw(self, text: str, start: int, end: int) -> _Done:
        """Return text after which a new word begins."""
        self._word = ""
        return _Done(text[start:end], end)

    def _instead(self, text: str, end: int, closers: int | None = None) -> _Done:
        self._word = ""
        return _Done(text, end, closers)

    def _no_link(self, end: int, before: str = "") -> _Done:
        self.left_out += 1
        return self._instead(f"{before} {LEFT_OUT}" if before else LEFT_OUT, end)

    # Words

    def _plain(self, text: str, at: int, *, is_last: bool) -> _Done | None:
        if text[at] == "!":
            return self._pass_on(text, at, at + 1)
        end = _end(_PLAIN, text, at)
        letters = _LETTERS.search(text, at, end)
        goes_on = (
            letters is not None and letters.start() == at and self._word[-1:].isascii() and self._word[-1:].isalpha()
        )
        name = letters[0].lower() if letters and not goes_on else ""
        if name and end == len(text) and not is_last and name in _STARTS:
            start = end - len(name)
            return self._pass_on(text, at, start) if start > at else None
        if name in _NAMES and text[end : end + 1] in (":", "."):
            start = end - len(name)
            return self._pass_on(text, at, start) if start > at else self._linked(text, at, end, is_last=is_last)
        return self._pass_on(text, at, end) if end > at else self._linked(text, at, at + 1, is_last=is_last)

    def _pass_on(self, text: str, start: int, end: int) -> _Done:
        said = text[start:end]
        going_on = _MAY_GO_ON.search(self._word + said[-80:])
        self._word = going_on[0] if going_on else ""
        return _Done(said, end)

    def _linked(self, text: str, at: int, after: int, *, is_last: bool) -> _Done | None:
        """A word from the character on that may make a link of it."""
        found = _END.search(text, after, at + MOST_HELD)
        stop = found.start() if found else min(len(text), at + MOST_HELD)
        if (broken := self._broken_off(text, at, after, stop)) is not None:
            return broken
        is_cut = found is None and stop == at + MOST_HELD
        if found is None and not is_cut and not is_last:
            return None
        if text[stop : stop + 1] == "[" and text[stop - 1] == "!" and stop - 1 > at:
            stop -= 1
        is_glued = is_cut or text[stop : stop + 1] in ("[", "]", "!")
        said, number, closers = self._links.word(self._word + text[at:stop], len(self._word), is_glued=is_glued)
        self.left_out += number
        return self._instead(f"{said} " if is_cut else said, stop, closers)

    def _broken_off(self, text: str, at: int, after: int, stop: int) -> _Done | None:
        """Return the text up to a mark that ends most words, if there is no link before it."""
        mark = _BREAK.search(text, after, stop)
        if mark is None or "&" in text[at : mark.end()] or "\\" in text[at : mark.end()]:
            return None
        if HEAD.search(read(f"{self._word}{text[at : mark.end()]}x")) is not None:
            return None
        return self._pass_on(text, at, mark.end())

    # Links of Markdown

    def _bracket(self, text: str, at: int, *, is_last: bool) -> _Done | None:
        opened = text.index("[", at) + 1
        end = _LABEL_END.search(text, opened, opened + MOST_LABEL)
        if end is None or (end[0] == "]" and end.end() == len(text)):
            is_long = end is None and len(text) - opened >= MOST_LABEL
            return self._raw(text, at, opened) if is_last or is_long else None
        if end[0] != "]" or text[end.end()] != "(":
            return self._raw(text, at, opened)
        target = _in_brackets(text, end.end(), is_last=is_last)
        if not isinstance(target, _Target):
            return None if target is None else self._raw(text, at, opened)
        label = self._label(text[opened : end.start()])
        stays = self._with_target(target)
        if stays is None:
            return self._no_link(target.end, label or "")
        return self._instead(f"{text[at:opened]}{label}]{stays}", target.end, 1 if HEAD.search(stays) else None)

    def _label(self, text: str) -> str:
        inner = LinkFilter(self._links)
        said = inner.feed(text) + inner.close()
        self.left_out += inner.left_out
        return said

    def _closing_bracket(self, text: str, at: int, *, is_last: bool) -> _Done | None:
        following = text[at + 1 : at + 2]
        if not following and not is_last:
            return None
        if following == ":":
            return self._definition(text, at, is_last=is_last)
        if following != "(":
            return self._raw(text, at, at + 1)
        target = _in_brackets(text, at + 1, is_last=is_last)
        if target is None:
            return None
        if not isinstance(target, _Target):
            return self._instead("] " if _might_lead_out(text[at + 1 : target + 1]) else "]", at + 1)
        stays = self._with_target(target)
        if stays is None:
            return self._no_link(target.end, "]")
        return self._instead(f"]{stays}", target.end, 1 if HEAD.search(stays) else None)

    def _with_target(self, found: _Target) -> str | None:
        """Return the round brackets in their permitted form; None if they are not a permitted link."""
        bare = found.written[1:-1] if found.written.startswith("<") else found.written
        given = self._links.target(bare)
        if given is None or HEAD.search(found.after) is not None:
            return None
        return f"{found.before}{found.written if given == bare else given}{found.after}"

    def _definition(self, text: str, at: int, *, is_last: bool) -> _Done | None:
        limit = at + MOST_HELD
        begins = _end(_LINE_GAP, text, at + 2)
        ends = _end(_ANGLED if text.startswith("<", begins) else _SOLID, text, begins)
        if ends >= len(text) and not is_last and ends < limit:
            return None
        written = text[begins:ends].removeprefix("<")
        is_bare = HEAD.search(written) is not None and not self._links.word(written, 0).left_out
        if not is_bare and self._links.target(written) is None:
            return self._no_link(ends + text.startswith(">", ends), "]:")
        return self._raw(text, at, at + 2)

    # Tags of HTML

    def _tag(self, text: str, at: int, *, is_last: bool) -> _Done | None:
        following = text[at + 1 : at + 2]
        if not following and not is_last:
            return None
        if not (following.isascii() and following.isalpha()) and following not in ("/", "!", "?"):
            return self._raw(text, at, at + 1)
        end = _TAG_END.search(text, at + 1, at + MOST_TAG)
        if end is None and not is_last and len(text) < at + MOST_TAG:
            return None
        if end is None or end[0] != ">":
            inside = text[at + 1 : end.start() if end else at + MOST_TAG]
            is_over = end is None and len(text) < at + MOST_TAG and not self._goes_on
            may_be_tag = self._links.may_be_tag(inside) and (is_over or not _HAS_ATTRIBUTES.match(inside))
            return self._instead("<" if may_be_tag else "< ", at + 1)
        inside = text[at + 1 : end.start()]
        if "=" in inside and (inside.count('"') % 2 or inside.count("'") % 2):
            return self._instead("< ", at + 1)
        if AUTOLINK_RE.search(inside) or EMAIL_RE.search(inside):
            given = self._links.address(inside)
            return self._no_link(end.end()) if given is None else self._instead(f"<{given}>", end.end(), 1)
        return self._raw(text, at, end.end()) if self._links.may_be_tag(inside) else self._no_link(end.end())


def _in_brackets(text: str, at: int, *, is_last: bool) -> _Target | int | None:
    """Return the content of a link's round brackets, by the rules of CommonMark; if they are not a link, the position
    that shows it; None if that is not known yet.
    """
    limit = min(len(text), at + MOST_HELD)
    begins = _end(_GAP, text, at + 1)
    destination = parseLinkDestination(text, begins, limit)
    if destination.ok:
        ends = destination.pos
    elif text.startswith("<", begins):
        line_end = text.find("\n", begins, limit)
        return line_end if line_end >= 0 else _undecided(text, at, limit, is_last=is_last)
    elif text.startswith(")", begins):
        ends = begins
    else:
        ends = _end(_SOLID, text, begins)
        return ends if ends < limit else _undecided(text, at, limit, is_last=is_last)
    closes = _end(_GAP, text, ends)
    if closes > ends and (title := parseLinkTitle(text, closes, limit)).marker:
        if not title.ok:
            return _undecided(text, at, limit, is_last=is_last) if title.can_continue else closes
        closes = _end(_GAP, text, title.pos)
    if closes >= limit:
        return _undecided(text, at, limit, is_last=is_last)
    if text[closes] != ")" or _BLANK.search(text, at, closes) is not None:
        return closes
    return _Target(text[at:begins], text[begins:ends], text[ends : closes + 1], closes + 1)


def _undecided(text: str, at: int, limit: int, *, is_last: bool) -> int | None:
    blank = _BLANK.search(text, at, limit)
    if blank is not None:
        return blank.end() - 1
    return limit if is_last or limit == at + MOST_HELD else None


def _might_lead_out(tried: str) -> bool:
    """Whether round brackets without a link target might be read as one by other programs."""
    return bool(set(tried) & set(":/\\&")) or _BLANK.search(tried) is not None


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


# The link filter of one message of the model, for its thinking and its content separately.

Said = ContentDelta | ThinkingDelta


class DeltaFilter:
    """A filter of one message of the model: passes its deltas on without links of unknown provenance."""

    def __init__(self, links: LinkPolicy) -> None:
        self._links = links
        self._begin()

    def _begin(self) -> None:
        self._filters: dict[type[Said], LinkFilter] = {
            kind: LinkFilter(self._links) for kind in (ThinkingDelta, ContentDelta)
        }
        self._kind: type[Said] | None = None
        self._is_interrupted: set[type[Said]] = set()

    def receive(self, delta: Delta) -> Iterator[Delta]:
        """Yield the filtered deltas."""
        if isinstance(delta, ContentDelta | ThinkingDelta):
            yield from self._pass_on(delta)
            return
        if isinstance(delta, RestartDelta):
            self._begin()
        elif isinstance(delta, Done):
            yield from self._end()
        yield delta

    def _pass_on(self, delta: Said) -> Iterator[Delta]:
        kind = type(delta)
        if self._kind is not None and kind is not self._kind:
            yield from self._pause(self._kind)
        self._kind = kind
        text = delta.text
        if kind in self._is_interrupted and text:
            self._is_interrupted.discard(kind)
            text = text if text[0].isspace() else f"\n{text}"  # so that the two pieces make no link
        if said := self._filters[kind].feed(text):
            yield kind(said)

    def _pause(self, kind: type[Said]) -> Iterator[Delta]:
        """Publish the rest of this kind, because the other kind continues."""
        if rest := self._filters[kind].close(goes_on=True):
            yield kind(rest)
        self._is_interrupted.add(kind)

    def _end(self) -> Iterator[Delta]:
        for kind, links in self._filters.items():
            if rest := links.close():
                yield kind(rest)
        if number := self._filters[ContentDelta].left_out:
            what = "a link was left out of the answer" if number == 1 else f"{number} links were left out of the answer"
            yield Degraded(f"{what}: neither you nor a search or a page of this conversation gave it")

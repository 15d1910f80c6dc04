"""What in a text may become a link wherever it is shown, and which of that may stand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape

from local.agents.answering.taint.address_book import CLOSERS
from local.agents.answering.taint.provenance import Provenance

LEFT_OUT = "(link left out)"
SCHEMES = (
    *("https", "http", "ftps", "ftp", "sftp", "ssh", "git", "file", "wss", "ws", "data", "javascript", "vbscript"),
    *("mailto", "xmpp", "sips", "sip", "tel", "sms", "magnet", "irc", "intent", "blob"),
)
_TLDS = (
    "com|org|net|edu|gov|mil|int|info|biz|name|pro|aero|asia|coop|museum|web|xxx|shop|app|dev|cloud|online|site|store"
    "|tech|xyz|top|club|live|news|blog|page|link|click|example|test|invalid|onion|local|internal|lan|home"
)
_LABEL = r"[^\W_](?:[\w-]{0,62}[^\W_])?\."
HEAD = re.compile(
    r"[a-z][a-z0-9+.-]{0,30}://"
    rf"|\b(?:{'|'.join(SCHEMES)}):(?=[^\s\"'])"
    r"|\bwww\."
    r"|(?<![:/\\\w])[/\\]{2}(?=[^\W_][\w-]*[.:]\w)"
    r"|[\w.+%-]{1,64}@[\w-]{1,63}\.\w"
    rf"|(?:{_LABEL}){{1,20}}[^\W\d_]\w{{1,62}}(?::\d{{1,5}})?[/\\?#](?=[^\s\w%]{{0,80}}[\w%])"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?[/\\?#](?=[^\s\w%]{0,80}[\w%])"
    rf"|(?:{_LABEL}){{2,20}}(?:{_TLDS}|[a-z]{{2}}|xn--[a-z0-9-]{{1,59}}|[^\W\d_a-zA-Z]{{2,62}})(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(rf"[a-z][a-z0-9+.-]*://|(?:{'|'.join(SCHEMES)}):|[^/]*@", re.IGNORECASE)
_OF_AN_ADDRESS = re.compile(r"[A-Za-z0-9._~:/?#@!$&'()*+,;=%\\-]*")
_ENDS = re.compile(r"[^A-Za-z0-9/%=&_~+@-]")  # before such a character an address may end
_TRIED = 24  # ends from either side
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&#?\w{1,32};")
_UNSEEN = re.compile(r"[\s\x00-\x20\u200b-\u200f\u2060\ufeff]")
_ANY_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_IN_TAG = re.compile(rf"//|(?:{'|'.join(SCHEMES)}):", re.IGNORECASE)
_ADDRESS_IN_TAG = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_MOST_CLOSERS = 3


def decoded(text: str) -> str:
    """A text as Markdown reads it: without escapes and entities."""
    if "&" not in text and "\\" not in text:
        return text
    return _ESCAPED.sub(r"\1", _ENTITY.sub(lambda found: unescape(found[0]), text))


def loose_words_in(texts: Iterable[str]) -> frozenset[str]:
    """What stands in these texts that could be taken for a link though it names no scheme of the web."""
    found: set[str] = set()
    for text in texts:
        for word in text.split() if HEAD.search(text) else ():
            for head in HEAD.finditer(word):
                found.update(_readings(word[head.start() :], len(head[0])))
    return frozenset(found)


def _readings(written: str, least: int) -> list[str]:
    """What may be meant by an address and what follows it, the longest first, of so many characters at least."""
    cuts = [end.start() for end in _ENDS.finditer(written, least)]
    if len(cuts) > 2 * _TRIED:
        cuts = cuts[:_TRIED] + cuts[-_TRIED:]
    return [written, *(written[:cut] for cut in reversed(cuts))]


class LinkPolicy:
    """Judges by what is known of where addresses come from. `loose` are words that stood before the model."""

    def __init__(self, provenance: Provenance, loose: frozenset[str] = frozenset()) -> None:
        self._provenance, self._loose = provenance, loose

    def target(self, written: str) -> str | None:
        """The target of a link as it may stand; None if it may not."""
        plain = _UNSEEN.sub("", decoded(written)).replace("\\", "/")
        leads_out = plain.startswith("//") or _ANY_SCHEME.match(plain) or HEAD.search(plain)
        return self.address(decoded(written)) if leads_out else written

    def address(self, written: str) -> str | None:
        """An address as it may stand; None if it may not."""
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
        """Whether what stands between < and > may stay."""
        rest = _ADDRESS_IN_TAG.sub(lambda found: "" if self.address(found[0]) == found[0] else found[0], written)
        plain = _UNSEEN.sub("", decoded(rest)).replace("\\", "/")
        return written in self._loose or (_IN_TAG.search(plain) is None and HEAD.search(plain) is None)

    def word(self, word: str, said: int, *, is_glued: bool = False) -> tuple[str, int]:
        """What is to follow the first characters of a word that are out already, and how many links were left out of
        it. `is_glued` says that something follows the word at once, which might be taken for a part of it."""
        plain = word[:said] + decoded(word[said:])
        if plain != word and HEAD.search(plain):
            word = plain.replace("<", "&lt;")
        pieces, position, search_from, number = list[str](), said, 0, 0
        whole = f"{word}x" if is_glued and not word[-1:].isalnum() else word
        while (head := HEAD.search(whole, search_from)) is not None and head.end() <= len(word):
            search_from = head.end()
            if head.end() <= position:
                continue
            start = max(head.start(), position)
            pieces.append(word[position:start])
            stays = self._that_stays(word, head, start)
            if stays is None:
                pieces.append(_mark(word[:said] + "".join(pieces)))
                position, number = max(head.end(), _end_of_address(word, start)), number + 1
            else:
                text, position = stays
                rest = word[position:]
                pieces.append(text + (" " if _runs_on(rest, is_glued=is_glued) else ""))
            search_from = position
        return "".join(pieces) + word[position:], number

    def _that_stays(self, word: str, head: re.Match[str], out: int) -> tuple[str, int] | None:
        """The rest of the address that begins so, of which the characters before `out` are out, and where it ends;
        None if none may stay."""
        begins = head.start()
        found = [(self.address(written), written) for written in _readings(word[begins:], len(head[0]))]
        for given, written in sorted(found, key=lambda each: each[0] != each[1]):  # as it stands is better than nearly
            end = begins + len(written)
            if given is not None and end > out and given.startswith(word[begins:out]):
                return given[out - begins :], end
        return None


def _runs_on(rest: str, *, is_glued: bool) -> bool:
    is_closing = len(rest) <= _MOST_CLOSERS and all(char in CLOSERS for char in rest)
    return is_glued or not is_closing


def _mark(before: str) -> str:
    return f" {LEFT_OUT}" if before[-1:].isalnum() or (before[-1:] in CLOSERS and before) else LEFT_OUT


def _end_of_address(word: str, start: int) -> int:
    found = _OF_AN_ADDRESS.match(word, start)
    end = found.end() if found else start
    return end - len(_closers(word[start:end]))


def _closers(text: str) -> str:
    bare = text.rstrip(CLOSERS)
    return text[len(bare) :] if len(text) - len(bare) <= _MOST_CLOSERS else ""

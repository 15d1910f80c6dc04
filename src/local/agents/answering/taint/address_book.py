"""Addresses of the web as people and pages write them, and the book of those that somebody has given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from local.errors import FetchRefused
from local.services.pages.web_url import WebUrl, parse_web_url

CLOSERS = ".,;:!?…'\")]}>*_`|”’»›。，、！？；：）】》」』"  # what may follow an address without being a part of it
_SCHEMED = re.compile(r"https?://[^\s<>\"`]+", re.IGNORECASE)
_BARE = re.compile(r"(?<![\w@/:.-])(?:[\w-]+\.)+(?:[^\W\d_][\w-]+|\d+)(?::\d+)?(?:[/?][^\s<>\"`]*)?")
_WEB_PORTS = (80, 443)
_FIRST_OTHER = re.compile(r"[^!-~]")
_MOST_CLOSERS = 4
_LONGER = 32  # characters that an address may have more than the one that it is: a port, a www., a fragment

Key = tuple[str, int | None, str]


def parsed(text: str) -> WebUrl | None:
    """An address, or None for what is none."""
    try:
        return parse_web_url(text)
    except FetchRefused:
        return None


def addresses_in(text: str) -> Iterator[str]:
    """The http(s) addresses in a text, each also without what may be punctuation at its end."""
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


class AddressBook:
    """Addresses that somebody has given. Where one is asked for that is as good as the same, it is the given one that
    is to be used: so nobody can say anything by the way in which it is written."""

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
        """Somebody has given this one; what is no address is ignored."""
        url = parsed(address)
        if url is not None:
            self._exact.add(str(url))
            self._written.add(address)
            self._by_key.setdefault(key_of(url), str(url))
            self._longest = max(self._longest, len(address), len(str(url)))

    def given(self, address: str) -> str | None:
        """The given address that this one is, in the form in which it was given; None if it is none of them."""
        url = parsed(address) if len(address) <= self._longest + _LONGER else None
        if url is None:
            return None
        if str(url) in self._exact:
            return address if "#" not in address or address in self._written else str(url)
        return self._by_key.get(key_of(url))

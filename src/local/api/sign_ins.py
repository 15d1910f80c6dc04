"""Sign-ins of browsers: the one-time codes that begin them, and the sign-ins, of which only hashes are stored.

A browser proves a sign-in by two random halves. One is an HttpOnly cookie, which no script of the page can read.
Cookies are shared by all ports of a host, though, so a server on another port reads it, and may overwrite it. The other
half is the key, which the page keeps in the storage of its own origin (scheme, host and port) and sends in a header. So
a cookie that another port has read or set is useless alone, and a page of another site can send neither half.

A sign-in depends on the token that it was made with: it ends with that token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from local.api.http import RequestRefused
from local.core.errors import LocalError, refused_by_disk
from local.core.files import write_private

log = logging.getLogger(__name__)

# Codes: each works once, for ten minutes, and is in the memory of this process alone.

CODE_SECONDS = 600
MAX_LINKS = 16
MAX_TRIES = 5
WRONG_SECONDS, MAX_WRONG = 60, 10
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # without I, L, O and U; `_typed` reads those that look alike
TYPED_LENGTH = 10
_ALIKE = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})


class OneTimeCodes:
    """The unused codes that sign the owner in. Links have 256 bits. A code to type has 50, so it is withdrawn after
    five wrong ones, and there is one at a time. `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._links: dict[bytes, float] = {}  # until when each is good, by its hash
        self._typed: tuple[bytes, float] | None = None
        self._tries = 0
        self._wrong: deque[float] = deque()

    def link(self) -> str:
        """A new code for a link."""
        now, code = self._clock(), secrets.token_urlsafe(32)
        self._links = {each: until for each, until in self._links.items() if until > now}
        while len(self._links) >= MAX_LINKS:
            del self._links[next(iter(self._links))]
        self._links[_digest(code)] = now + CODE_SECONDS
        return code

    def typed(self) -> str:
        """A new code to be typed, as `XXXXX-XXXXX`; the one before it stops working."""
        code = "".join(secrets.choice(ALPHABET) for _ in range(TYPED_LENGTH))
        self._typed, self._tries = (_digest(code), self._clock() + CODE_SECONDS), 0
        return f"{code[:5]}-{code[5:]}"

    def is_link(self, code: str) -> bool:
        """Whether a link has this code now."""
        return self._links.get(_digest(code), 0.0) > self._clock()

    def use_link(self, code: str) -> bool:
        """Whether a link had this code, which is used now."""
        return self._links.pop(_digest(code), 0.0) > self._clock()

    def use_typed(self, text: str) -> bool:
        """Whether this is the code to be typed, which is used now. Raises `RequestRefused` (rate_limit) after ten wrong
        codes in a minute."""
        code = text.upper().translate(_ALIKE)
        if len(code) != TYPED_LENGTH or not set(code) <= set(ALPHABET):
            return False
        now = self._clock()
        while self._wrong and self._wrong[0] <= now - WRONG_SECONDS:
            self._wrong.popleft()
        if len(self._wrong) >= MAX_WRONG:
            raise RequestRefused("rate_limit", "too many wrong codes were entered: wait a minute, then try again")
        if self._typed is not None and self._typed[1] > now and hmac.compare_digest(self._typed[0], _digest(code)):
            self._typed = None
            return True
        self._wrong.append(now)
        self._tries += 1
        if self._tries >= MAX_TRIES:
            self._typed = None
        return False

    def withdraw(self) -> None:
        """Make all of them worthless."""
        self._links.clear()
        self._typed = None


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()


# Sign-ins, which outlive this process.

FILE_NAME = "sign_ins.json"
DISUSED_DAYS = 90
MAX_SIGN_INS = 32  # of one user
KEY_HEADER = "x-local2-key"
COOKIE_SECONDS = 400 * 86400  # the longest that browsers allow; when a sign-in ends is decided here
MAX_COOKIES = 8  # of one name: another port may have added some
NAME_LENGTH = 12
_DAY = 86400.0
_BROWSERS = {
    "Edg": "Edge", "OPR/": "Opera", "SamsungBrowser": "Samsung Internet", "Firefox/": "Firefox", "FxiOS": "Firefox",
    "Chrom": "Chrome", "CriOS": "Chrome", "Safari/": "Safari",
}  # fmt: skip
_SYSTEMS = {
    "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "CrOS": "ChromeOS", "Windows": "Windows",
    "Mac OS X": "macOS", "Linux": "Linux",
}  # fmt: skip


def browser_in(user_agent: str) -> str:
    """The browser that a `User-Agent` header names, for a person to recognise: `Firefox on Android`; empty for none
    that is known. Of a browser that names others, too, the first one in our order counts."""
    browser, system = (
        next((name for mark, name in known.items() if mark in user_agent), "") for known in (_BROWSERS, _SYSTEMS)
    )
    return f"{browser} on {system}" if browser and system else browser or system


@dataclass(frozen=True, slots=True)
class SignIn:
    """One browser that is signed in. `user` is None for the owner. `id` is the hash of both halves, `seal` binds them
    to the token; a reader of the file cannot derive the token from either. `browser` is the browser's own name, from
    `browser_in`; `used_at` is exact to a day.
    """

    id: str
    user: str | None
    seal: str
    begun_at: float
    used_at: float
    browser: str = ""

    @property
    def name(self) -> str:
        """The beginning of its id, by which a person names it."""
        return self.id[:NAME_LENGTH]


@dataclass(frozen=True, slots=True)
class Halves:
    """The two secrets of one sign-in, which count only together: the cookie and the key that the page stores."""

    cookie: str
    key: str


class SignIns:
    """The sign-ins of one data directory. `token_of(user)` returns the hash of the user's present token, None if there
    is none; `clock` returns seconds since 1970; `port` is in the cookies' names.
    """

    def __init__(
        self, data_dir: Path, port: int, token_of: Callable[[str | None], str | None],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._path, self._token_of, self._clock = data_dir / FILE_NAME, token_of, clock
        self._names = (f"local2-{port}", f"__Host-local2-{port}")
        self._known = {each.id: each for each in self._read()}
        self._writing = threading.Lock()

    def begin(self, user: str | None, browser: str = "") -> Halves:
        """Sign a browser in, with new random halves. Raises `RequestRefused`, `StoreUnwritable`."""
        token = self._token_of(user)
        if token is None:
            raise RequestRefused("unauthorized", "there is no token for this sign-in")
        key = secrets.token_urlsafe(32) + (f"@{user}" if user else "")  # the name tells other cells whose it is
        halves, now = Halves(secrets.token_urlsafe(32), key), self._clock()
        found = SignIn(_id(halves), user, _seal(halves, token), now, now, browser)
        self._known[found.id] = found
        own = sorted((each for each in self._all() if each.user == user), key=lambda each: each.used_at)
        for each in own[:-MAX_SIGN_INS]:
            self._known.pop(each.id, None)
        try:
            self._write()
        except LocalError:
            self._known.pop(found.id, None)
            raise
        return halves

    def of(self, headers: Mapping[str, str]) -> SignIn | None:
        """The sign-in that a request proves; None if it proves none. Header names are in lower case."""
        key = headers.get(KEY_HEADER, "")
        for cookie in self._cookies(headers.get("cookie", "")):
            halves = Halves(cookie, key)
            found = self._known.get(_id(halves))
            if found is not None and self._is_good(found, halves):
                return self._used(found)
        return None

    def holds(self, sign_in_id: str) -> bool:
        """Whether a sign-in has not ended."""
        return sign_in_id in self._known

    def all_of(self, user: str | None) -> list[SignIn]:
        """The sign-ins of a user that are still good, the one that was used last first."""
        oldest = self._clock() - DISUSED_DAYS * _DAY
        own = [each for each in self._all() if each.user == user and each.used_at >= oldest]
        return sorted(own, key=lambda each: (each.used_at, each.begun_at), reverse=True)

    def named(self, user: str | None, name: str) -> SignIn:
        """The sign-in of a user whose name begins so. Raises `RequestRefused` (not_found)."""
        found = [each for each in self.all_of(user) if each.name.startswith(name)]
        if len(found) != 1:
            what = (
                "several signed-in browsers have ids that begin"
                if found
                else "no signed-in browser has an id that begins"
            )
            raise RequestRefused("not_found", f"{what} with {name[:80]!r}; `local2 browsers list` shows them")
        return found[0]

    def end(self, sign_in_id: str) -> int:
        """End one; returns how many that were. Raises `StoreUnwritable`; it has ended until a restart all the same."""
        return self._end(lambda each: each.id == sign_in_id)

    def end_all(self, user: str | None) -> int:
        """End all of a user, as `end`."""
        return self._end(lambda each: each.user == user)

    def cookie(self, value: str, *, is_secure: bool) -> str:
        """Return the header that sets a browser's cookie; an empty value deletes it."""
        parts = [f"{self._names[is_secure]}={value}", "Path=/", "HttpOnly", "SameSite=Strict"]
        parts += [f"Max-Age={COOKIE_SECONDS if value else 0}", *(["Secure"] if is_secure else [])]
        return "; ".join(parts)

    def _cookies(self, header: str) -> list[str]:
        pairs = (part.strip().partition("=") for part in header.split(";"))
        return [value for name, _, value in pairs if name in self._names and value][:MAX_COOKIES]

    def _is_good(self, found: SignIn, halves: Halves) -> bool:
        if self._clock() - found.used_at > DISUSED_DAYS * _DAY:
            return False
        token = self._token_of(found.user)
        return token is not None and hmac.compare_digest(found.seal, _seal(halves, token))

    def _used(self, found: SignIn) -> SignIn:
        """Note the day of its use; where that cannot be written, it is noted for this process."""
        now = self._clock()
        if now - found.used_at < _DAY:
            return found
        self._known[found.id] = found = replace(found, used_at=now)
        try:
            self._write()
        except LocalError as error:
            log.warning("the use of a sign-in was not noted: %s", error)
        return found

    def _end(self, ends: Callable[[SignIn], bool]) -> int:
        ended = [each.id for each in self._all() if ends(each)]
        for each in ended:
            self._known.pop(each, None)
        if ended:
            self._write()
        return len(ended)

    def _all(self) -> list[SignIn]:
        return list(self._known.values())  # other threads begin and end some

    def _read(self) -> Iterator[SignIn]:
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))["sign_ins"]
            fields = SignIn.__dataclass_fields__
            yield from [SignIn(**{name: row[name] for name in fields if name in row}) for row in rows]
        except FileNotFoundError:
            return
        except (OSError, ValueError, LookupError, TypeError) as error:
            log.error("%s cannot be read, so every browser has to sign in again: %s", self._path, error)

    def _write(self) -> None:
        oldest = self._clock() - DISUSED_DAYS * _DAY
        try:
            with self._writing:
                rows = [asdict(each) for each in self._all() if each.used_at >= oldest]
                write_private(self._path, json.dumps({"sign_ins": rows}, indent=1))
        except OSError as error:
            what = f"{self._path} cannot be written: {error.strerror}"
            raise refused_by_disk(self._path, error.errno) or RequestRefused("unavailable", what) from None


def _id(halves: Halves) -> str:
    return hashlib.sha256(f"{halves.cookie}.{halves.key}".encode()).hexdigest()


def _seal(halves: Halves, token: str) -> str:
    return hmac.new(f"{halves.cookie}.{halves.key}".encode(), token.encode(), "sha256").hexdigest()

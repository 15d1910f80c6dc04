"""Signing in, attacked: codes are guessed and replayed, halves are stolen, fixed and mixed, requests come from other
sites, ports, names and Unix users, on every route that changes something."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from local.api import server as peer
from local.api.app import routed
from local.api.http import RequestRefused
from local.api.security import GuardMiddleware, GuardPolicy, Principal, Principals, hosts_of, open_to_anybody
from local.api.sign_ins import (
    CODE_SECONDS,
    DISUSED_DAYS,
    FILE_NAME,
    KEY_HEADER,
    MAX_TRIES,
    WRONG_SECONDS,
    Halves,
    OneTimeCodes,
    SignIns,
    browser_in,
)
from local.core.data_dir import make_owner_token
from local.core.users import Users

System = Any  # of conftest.py
DAY = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


# Codes, without a socket.


def test_a_code_works_once_and_for_ten_minutes() -> None:
    codes = OneTimeCodes(clock := Clock())
    link, typed = codes.link(), codes.typed()
    assert len(link) >= 43  # 256 bits
    assert [codes.use_link(link), codes.use_link(link)] == [True, False]
    assert [codes.use_typed(typed.lower().replace("0", "o")), codes.use_typed(typed)] == [True, False]
    late = codes.link(), codes.typed()
    clock.now += CODE_SECONDS
    assert not (codes.is_link(late[0]) or codes.use_link(late[0]) or codes.use_typed(late[1]))
    link, typed = codes.link(), codes.typed()
    codes.withdraw()
    assert not (codes.use_link(link) or codes.use_typed(typed))


def test_a_code_is_withdrawn_after_five_guesses_and_guesses_are_slow() -> None:
    codes = OneTimeCodes(clock := Clock())
    typed, link = codes.typed(), codes.link()
    for _ in range(MAX_TRIES - 1):
        assert not codes.use_typed("0000000000")
    assert codes.use_typed(typed), "the fifth may be right"
    typed = codes.typed()
    for _ in range(MAX_TRIES):
        assert not codes.use_typed("00000-00000")
    assert not codes.use_typed(typed)
    with pytest.raises(RequestRefused, match="wait a minute"):
        codes.use_typed(codes.typed())
    assert codes.use_link(link), "somebody who guesses keeps nobody from a link"
    clock.now += WRONG_SECONDS
    assert codes.use_typed(codes.typed())


# Sign-ins, without a socket.


class Store:
    """The sign-ins of one folder, in one process after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.tokens = folder, Clock(), dict[str | None, str]({None: "owner's", "ann": "ann's"})
        self.sign_ins = self.restarted()

    def restarted(self) -> SignIns:
        self.sign_ins = SignIns(self.folder, 8765, lambda user: self.tokens.get(user), self.clock)
        return self.sign_ins

    def user_of(self, halves: Halves) -> str | bool | None:
        """Whose that is; False if nobody's."""
        headers = {"cookie": f"a=b; local2-8765={halves.cookie}", KEY_HEADER: halves.key}
        found = self.sign_ins.of(headers)
        return found.user if found else False


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_sign_in_survives_a_restart_and_its_file_is_of_no_use_to_a_reader(store: Store) -> None:
    owner, ann = store.sign_ins.begin(None), store.sign_ins.begin("ann")
    store.restarted()
    assert (store.user_of(owner), store.user_of(ann)) == (None, "ann")
    file = store.folder / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    for secret in (*(half for each in (owner, ann) for half in (each.cookie, each.key)), "owner's", "ann's"):
        assert secret not in text
    for row in json.loads(text)["sign_ins"]:
        for stolen in (row["id"], row["seal"]):
            assert store.user_of(Halves(stolen, stolen)) is False
    assert "Path=/; HttpOnly; SameSite=Strict" in store.sign_ins.cookie("x", is_secure=False)
    secure = store.sign_ins.cookie("x", is_secure=True)
    assert secure.startswith("__Host-local2-8765=x;") and secure.endswith("; Secure")
    assert "Domain" not in secure


def test_one_half_and_halves_of_two_sign_ins_are_worth_nothing(store: Store) -> None:
    owner, ann = store.sign_ins.begin(None), store.sign_ins.begin("ann")
    for mixed in (
        Halves(owner.cookie, ""),
        Halves("", owner.key),
        Halves(ann.cookie, owner.key),  # another port has set a cookie of its own
        Halves(owner.cookie, ann.key),
        Halves(owner.key, owner.cookie),
    ):
        assert store.user_of(mixed) is False
    tossed = f"local2-8765={ann.cookie}; local2-8765={owner.cookie}"  # and it is sent before the right one
    found = store.sign_ins.of({"cookie": tossed, KEY_HEADER: owner.key})
    assert found is not None and found.user is None


@pytest.mark.parametrize("what", ["signed out", "signed out everywhere", "removed", "another token", "disused"])
def test_a_sign_in_ends(store: Store, what: str) -> None:
    halves, other = store.sign_ins.begin("ann"), store.sign_ins.begin(None)
    found = store.sign_ins.of({"cookie": f"local2-8765={halves.cookie}", KEY_HEADER: halves.key})
    assert found is not None
    if what == "signed out":
        assert store.sign_ins.end(found.id) == 1
    elif what == "signed out everywhere":
        assert store.sign_ins.end_all("ann") == 1
    elif what == "removed":
        del store.tokens["ann"]
    elif what == "another token":
        store.tokens["ann"] = "ann's new one"
    else:
        for _ in range(3):
            store.clock.now += (DISUSED_DAYS - 1) * DAY
            assert store.user_of(other) is None, "use keeps it"
        assert store.user_of(store.sign_ins.begin("ann")) == "ann"
    for _ in range(2):
        assert (store.user_of(halves), store.user_of(other)) == (False, None)
        store.restarted()


def test_the_browsers_of_a_user_are_listed_also_those_of_an_older_file(store: Store) -> None:
    store.sign_ins.begin(None)
    store.clock.now += DAY
    phone, ann = store.sign_ins.begin(None, "Firefox on Android"), store.sign_ins.begin("ann")
    file = store.folder / FILE_NAME
    rows = json.loads(file.read_text())["sign_ins"]
    file.write_text(
        json.dumps(
            {
                "sign_ins": [
                    {**rows[1]},
                    *({k: v for k, v in row.items() if k != "browser"} for row in (rows[0], rows[2])),
                ]
            }
        )
    )
    listed = store.restarted().all_of(None)
    assert [each.browser for each in listed] == ["Firefox on Android", ""]
    with pytest.raises(RequestRefused, match="local2 browsers list"):
        store.sign_ins.named("ann", listed[0].name)
    store.sign_ins.end(store.sign_ins.named(None, listed[0].name[:6]).id)
    assert (store.user_of(phone), store.user_of(ann), len(store.sign_ins.all_of(None))) == (False, "ann", 1)
    store.clock.now += (DISUSED_DAYS + 1) * DAY
    assert store.sign_ins.all_of("ann") == []


AGENTS = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0": "Firefox on Linux",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
    " Edg/142.0.0.0": "Edge on Windows",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36": (
        "Chrome on Android"
    ),
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6"
    " Mobile/15E148 Safari/604.1": "Safari on iPhone",
    "<script>curl</script>": "",
}


@pytest.mark.parametrize(("user_agent", "browser"), AGENTS.items())
def test_a_browser_is_named_by_words_of_ours(user_agent: str, browser: str) -> None:
    assert browser_in(user_agent) == browser


def test_a_damaged_file_signs_everybody_out_and_is_replaced(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    before = store.sign_ins.begin(None)
    (store.folder / FILE_NAME).write_text('{"sign_ins": [{"id": 1}]}')
    store.restarted()
    assert store.user_of(before) is False and "sign in again" in caplog.text
    after = store.sign_ins.begin(None)
    store.restarted()
    assert store.user_of(after) is None


# The guard before every route, without a socket.

PORT = 8765
HERE = {"host": f"127.0.0.1:{PORT}", "origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}
ATTACKS: dict[str, dict[str, str]] = {
    "another site": {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    "another site, old browser": {"origin": "https://evil.example", "sec-fetch-site": ""},
    "another port": {"origin": f"http://127.0.0.1:{PORT + 1}", "sec-fetch-site": "same-site"},
    "another port, old browser": {"origin": f"http://127.0.0.1:{PORT + 1}", "sec-fetch-site": ""},
    "a frame in a sandbox": {"origin": "null", "sec-fetch-site": "cross-site"},
    "a form of another site": {"origin": "", "sec-fetch-site": "cross-site", "content-type": "text/plain"},
    "a form of another port": {"origin": "", "sec-fetch-site": "same-site", "content-type": "text/plain"},
    "a typed address": {"origin": "", "sec-fetch-site": "none"},
    "a page that does not say which it is": {"origin": "", "sec-fetch-site": ""},
    "a rebound name": {"host": f"evil.example:{PORT}", "origin": f"http://evil.example:{PORT}"},
}


class Frontend:
    """The guard of an API without its own Unix user, with the routes behind it; admitted callers are in `reached`."""

    def __init__(self, folder: Path) -> None:
        self.users, token = Users(folder), make_owner_token(folder)
        self.tokens = {None: token, "ann": self.users.add("ann")}
        self.sign_ins = SignIns(folder, PORT, lambda user: token if user is None else self.users.hash_of(user))
        self.halves = {user: self.sign_ins.begin(user) for user in self.tokens}
        principals = Principals(lambda: token, self.users, self.sign_ins)
        policy = GuardPolicy(hosts_of("127.0.0.1", PORT))
        self._guard = GuardMiddleware(self._route, policy, principals, open_to_anybody(routed().routes))
        self.reached: list[Principal | None] = []

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached.append(scope["principal"])
        await Response()(scope, receive, send)

    async def status(self, method: str, path: str, headers: dict[str, str]) -> int:
        """What a request with the body `{}` is answered; headers that are empty are left out."""
        statuses: list[int] = []
        sent = {"content-type": "application/json", "content-length": "2", **headers}
        raw = [(name.encode(), value.encode()) for name, value in sent.items() if value]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: Message) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        await self._guard({"type": "http", "method": method, "path": path, "headers": raw}, receive, send)
        return statuses[0]


def shown(cookie: str, key: str) -> dict[str, str]:
    return {"cookie": f"local2-{PORT}={cookie}", KEY_HEADER: key}


def changing() -> list[tuple[str, str]]:
    """Every route that may change something, with names for its parameters."""
    routes: list[Any] = list(routed().routes)
    methods = [(method, route.path) for route in routes for method in sorted(route.methods - {"GET", "HEAD"})]
    return [(method, re.sub(r"\{[^}]+\}", "x" * 20, path)) for method, path in methods]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_other_page_reaches_a_route_that_changes_something(tmp_path: Path, attack: str) -> None:
    frontend = Frontend(tmp_path)
    both = shown(frontend.halves[None].cookie, frontend.halves[None].key)
    assert len(changing()) > 40
    for method, path in changing():
        assert await frontend.status(method, path, {**both, **HERE, **ATTACKS[attack]}) == 403, (method, path)
    assert frontend.reached == []


async def test_our_own_page_reaches_every_route_with_json(tmp_path: Path) -> None:
    frontend = Frontend(tmp_path)
    both = shown(frontend.halves[None].cookie, frontend.halves[None].key)
    over_http = {**HERE, "sec-fetch-site": ""}  # of another machine without TLS browsers do not say it
    for method, path in changing():
        assert [await frontend.status(method, path, {**both, **here}) for here in (HERE, over_http)] == [200, 200]
        is_form = {**both, **HERE, "content-type": "application/x-www-form-urlencoded"}
        assert path in ("/attachments", "/sessions/import") or await frontend.status(method, path, is_form) == 415, (
            method,
            path,
        )
    assert {each.by_token and each.is_owner for each in frontend.reached if each} == {True}
    assert None not in frontend.reached
    ann = shown(frontend.halves["ann"].cookie, frontend.halves["ann"].key)
    assert await frontend.status("GET", "/sessions", {**ann, **HERE}) == 200
    assert frontend.reached[-1] and frontend.reached[-1].user_id == "ann"


async def test_a_cookie_that_another_port_has_read_or_set_lets_nobody_in(tmp_path: Path) -> None:
    frontend = Frontend(tmp_path)
    owner, ann = frontend.halves[None], frontend.halves["ann"]
    routes = [route for route in [*changing(), ("GET", "/sessions"), ("GET", "/stream")] if route[1] != "/sign-in"]
    for cookie, key in ((owner.cookie, ""), ("", owner.key), (ann.cookie, owner.key), (owner.cookie, ann.key)):
        for method, path in routes:
            assert await frontend.status(method, path, {**shown(cookie, key), **HERE}) == 401, (method, path)
    assert frontend.reached == []
    assert await frontend.status("POST", "/sign-in", {**shown(owner.cookie, ann.key), **HERE}) == 200
    assert frontend.reached == [None], "who signs in is nobody yet, whatever they show"


# The real frontend.


class Browser(NamedTuple):
    """A browser with its halves of a sign-in; `origin` is that of the page."""

    client: httpx.AsyncClient
    origin: str
    halves: Halves

    @property
    def name(self) -> str:
        return f"local2-{self.origin.rpartition(':')[2]}"

    @property
    def cookie(self) -> dict[str, str]:
        return {"cookie": f"{self.name}={self.halves.cookie}"}

    @property
    def both(self) -> dict[str, str]:
        return {**self.cookie, KEY_HEADER: self.halves.key}

    async def status(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> int:
        return (await self.client.request(method, path, headers=headers, json=body)).status_code


async def signed_in(client: httpx.AsyncClient, secret: str, **headers: str) -> Halves:
    response = await client.post("/sign-in", json={"secret": secret}, headers=headers)
    assert response.status_code == 200, response.text
    found = re.match(r"(?:__Host-)?local2-\d+=([\w-]{43}); Path=/; HttpOnly; ", response.headers["set-cookie"])
    assert found is not None
    client.cookies.clear()  # each request says what it sends
    return Halves(found[1], response.json()["key"])


async def code(client: httpx.AsyncClient, owner: dict[str, str], *, link: bool = False) -> str:
    made = await client.post("/sign-in/codes", json={"link": link}, headers=owner)
    assert made.status_code == 201 and made.headers["cache-control"] == "no-store"
    return str(made.json()["code"])


@pytest.fixture
def owner(system: System) -> dict[str, str]:
    return {"authorization": f"Bearer {make_owner_token(system.journal_file.parent)}"}


@pytest.fixture
async def browser(system: System, owner: dict[str, str]) -> AsyncIterator[Browser]:
    async with system.frontend() as client:
        yield Browser(client, system.url, await signed_in(client, await code(client, owner, link=True)))


async def test_a_signed_in_browser_is_the_owner_until_it_signs_out(
    system: System, browser: Browser, owner: dict[str, str]
) -> None:
    own, path = {**browser.both, "origin": browser.origin}, "/users"
    other = await signed_in(browser.client, await code(browser.client, own))  # made by a signed-in browser
    another = browser._replace(halves=other)
    await signed_in(browser.client, Users(system.journal_file.parent).add("eve"))
    rows = (await browser.client.get("/sign-ins", headers=own)).json()["sign_ins"]
    assert [row["is_this"] for row in rows].count(True) == 1 and len(rows) == 2, "those of eve are not among them"
    [gone] = [row["id"] for row in rows if not row["is_this"]]
    assert await browser.status("DELETE", f"/sign-ins/{gone}", own) == 200
    assert await browser.status("GET", path, another.both) == 401
    another = browser._replace(halves=await signed_in(browser.client, await code(browser.client, own)))
    assert await browser.status("GET", path, {}) == 401, "the Unix user alone is not enough"
    assert await browser.status("POST", path, own, {"name": "ann"}) == 201
    async with browser.client.stream("GET", "/events?subject=query.received", headers=browser.both) as events:
        lines = events.aiter_lines()
        assert await anext(lines) == ": subscribed"
        out = await browser.client.post("/sign-out", json={}, headers=own)
        assert out.json() == {"signed_out": 1} and f"{browser.name}=; Path=/" in out.headers["set-cookie"]
        assert (await browser.client.post("/query", json={"query": "hello"})).status_code == 200
        assert [line async for line in lines if line] == [], "its streams end before"
    assert await browser.status("GET", path, browser.both) == 401
    assert await browser.status("GET", "/sessions", browser.both) == 401, "nor is it the Unix user's all of a sudden"
    assert await browser.status("GET", "/sessions", browser.cookie) == 200
    assert await browser.status("GET", path, another.both) == 200
    waiting = await code(browser.client, owner)
    assert await browser.status("POST", "/sign-out", owner, {"everywhere": True}) == 200
    assert await browser.status("GET", path, another.both) == 401
    assert await browser.status("POST", "/sign-in", {}, {"secret": waiting}) == 401


async def test_codes_are_made_by_the_owner_alone_and_a_link_is_for_that_unix_user(
    system: System, owner: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ann = Users(system.journal_file.parent).add("ann")
    async with system.frontend(allowed_hosts=["box.example"]) as client:
        for headers, status in (({}, 401), ({"authorization": f"Bearer {ann}"}, 403)):
            assert (await client.post("/sign-in/codes", json={}, headers=headers)).status_code == status
        link = await code(client, owner, link=True)
        for headers in ({"x-forwarded-for": "10.0.0.9"}, {"via": "1.1 proxy"}):
            refused = await client.post("/sign-in", json={"secret": link}, headers=headers)
            assert refused.status_code == 403 and "local2 code" in refused.text
        tls = {"host": "box.example", "origin": "https://box.example", "x-forwarded-for": "10.0.0.9"}
        halves = await signed_in(client, await code(client, owner), **tls)
        shown = {**tls, "cookie": f"__Host-local2-{system.port}={halves.cookie}", KEY_HEADER: halves.key}
        assert (await client.get("/users", headers=shown)).status_code == 200
        assert (await client.post("/sign-in", json={"secret": "local2-guess"})).status_code == 401
        first = await signed_in(client, link)
        assert (await client.post("/sign-in", json={"secret": link})).status_code == 401, "replayed"
        logged = " ".join(each.getMessage() for each in caplog.records if not each.name.startswith("http"))
        assert not [secret for secret in (link, first.cookie, first.key, halves.key) if secret in logged]
        link = await code(client, owner, link=True)
    async with system.frontend() as client:
        assert (await client.post("/sign-in", json={"secret": link})).status_code == 401, "codes are of one process"
        monkeypatch.setattr(peer, "socket_by_netlink", lambda *_: peer.HeldSocket(65534, 1))
        link = await code(client, owner, link=True)
        async with system.client() as stranger:
            assert (await stranger.post("/sign-in", json={"secret": link})).status_code == 403
            shown = {"cookie": f"local2-{system.port}={first.cookie}", KEY_HEADER: first.key}
            assert (await stranger.get("/users", headers=shown)).status_code == 200, "signed in before the restart"

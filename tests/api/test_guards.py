"""Access, decided without a socket."""

from __future__ import annotations

import pytest

from local.api.http import RequestRefused
from local.api.security import GuardPolicy, hosts_of, proxied_hosts_of
from local.api.server import require_token
from local.core.errors import ConfigError

HOST = {"host": "127.0.0.1:8765"}
OURS = GuardPolicy(hosts_of("127.0.0.1", 8765))


def refusal(policy: GuardPolicy, headers: dict[str, str], method: str = "GET", path: str = "/query") -> str | None:
    try:
        policy.check(method, path, headers)
    except RequestRefused as error:
        return error.kind
    return None


def test_loopback_names_with_the_port_are_this_server() -> None:
    for host in ["127.0.0.1:8765", "localhost:8765", "LocalHost:8765", "[::1]:8765"]:
        assert refusal(OURS, {"host": host}) is None


def test_any_other_host_is_refused() -> None:
    for host in [
        "",
        "127.0.0.1",
        "localhost",
        "localhost:80",
        "evil.example:8765",
        "127.0.0.1:8765.evil.example",
        "x@localhost:8765",
    ]:
        assert refusal(OURS, {"host": host}) == "forbidden"


def test_a_missing_host_is_refused() -> None:
    assert refusal(OURS, {}) == "forbidden"


def test_the_port_may_be_left_out_only_if_it_is_80() -> None:
    assert refusal(GuardPolicy(hosts_of("127.0.0.1", 80)), {"host": "localhost"}) is None


def test_further_names_are_known_if_configured() -> None:
    policy = GuardPolicy(hosts_of("192.168.1.7", 8765, ["MyBox.local"]))
    for host in ("mybox.local:8765", "192.168.1.7:8765"):
        assert refusal(policy, {"host": host}, path="/health") is None


def test_our_own_pages_may_talk_to_us() -> None:
    for origin in ["http://localhost:8765", "http://127.0.0.1:8765"]:
        assert refusal(OURS, HOST | {"origin": origin, "sec-fetch-site": "same-origin"}) is None


def test_pages_of_others_may_not() -> None:
    for origin in [
        "null",
        "",
        "https://evil.example",
        "http://localhost:3000",
        "https://localhost:8765",
        "http://localhost:8765.evil.example",
    ]:
        assert refusal(OURS, HOST | {"origin": origin}) == "forbidden"


def test_cross_site_requests_without_an_origin_are_refused() -> None:
    assert refusal(OURS, HOST | {"sec-fetch-site": "cross-site"}) == "forbidden"
    assert refusal(OURS, HOST | {"sec-fetch-site": "none"}) is None


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def test_other_sites_may_link_to_the_page_and_to_nothing_else() -> None:
    assert refusal(OURS, HOST | LINK, path="/") is None
    for path in ("/query", "/app/0/main.js", "/sessions/s1", "//"):
        assert refusal(OURS, HOST | LINK, path=path) == "forbidden"


def test_they_may_not_frame_fetch_or_post_to_it() -> None:
    for otherwise in [{"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}, {"origin": "https://evil.example"}]:
        assert refusal(OURS, HOST | LINK | otherwise, path="/") == "forbidden"
        assert refusal(OURS, HOST | LINK, "POST", "/") == "forbidden"


NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
ORIGIN = {"origin": "http://localhost:3000"}
# What Chromium 156 says when a page of another port does everything that a page can do to have a request sent.
OF_ANOTHER_PORT: dict[str, tuple[str, str, dict[str, str]]] = {
    "fetch": ("GET", "/sessions", {**ORIGIN, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}),
    "fetch without CORS": ("GET", "/sessions", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty"}),
    "post of text": ("POST", "/query", {**ORIGIN, "content-type": "text/plain", "content-length": "2"}),
    "post without a body": ("POST", "/dreams/now", {**ORIGIN, "sec-fetch-mode": "no-cors", "content-length": "0"}),
    "preflight": ("OPTIONS", "/query", {**ORIGIN, "access-control-request-headers": "content-type"}),
    "beacon": ("POST", "/query", {**ORIGIN, "content-type": "text/plain;charset=UTF-8", "content-length": "1"}),
    "form": ("POST", "/", {**ORIGIN, **NAVIGATION, "content-type": "text/plain", "content-length": "9"}),
    "picture": ("GET", "/sessions", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}),
    "script": ("GET", "/app/0/main.js", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}),
    "prefetch": ("GET", "/", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty", "sec-purpose": "prefetch"}),
    "frame": ("GET", "/", {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}),
    "object": ("GET", "/", {"sec-fetch-mode": "navigate", "sec-fetch-dest": "object"}),
    "events": ("GET", "/stream", {**ORIGIN, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}),
    "window": ("GET", "/sessions", NAVIGATION),
}


@pytest.mark.parametrize("way", OF_ANOTHER_PORT)
@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_page_of_another_port_of_this_machine_has_nothing_sent(way: str, site: str) -> None:
    method, path, headers = OF_ANOTHER_PORT[way]
    assert refusal(OURS, {**HOST, **headers, "sec-fetch-site": site}, method, path) == "forbidden"


def test_a_page_of_another_port_opens_no_websocket() -> None:
    assert refusal(OURS, {**HOST, **ORIGIN, "upgrade": "websocket", "connection": "Upgrade"}, path="/") == "forbidden"


def test_a_proxy_that_speaks_tls_may_show_the_page_under_the_names_that_are_allowed() -> None:
    names = ["MyBox.local", "chat.example.org:8443"]
    policy = GuardPolicy(hosts_of("127.0.0.1", 8765, names), proxied_hosts=proxied_hosts_of(names))
    for host in ("mybox.local", "chat.example.org:8443"):
        for passed_on in ({"host": host}, HOST):
            assert refusal(policy, passed_on | {"origin": f"https://{host}"}) is None
        assert refusal(OURS, HOST | {"origin": f"https://{host}"}) == "forbidden"
    for origin in (
        "http://mybox.local",
        "https://mybox.local:8443",
        "https://chat.example.org",
        "https://localhost:8765",
    ):
        assert refusal(policy, HOST | {"origin": origin}) == "forbidden", origin


def test_a_body_must_be_json() -> None:
    for length in [{"content-length": "2"}, {"transfer-encoding": "chunked"}]:
        for media_type in [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonx",
        ]:
            headers = HOST | length | ({"content-type": media_type} if media_type else {})
            assert refusal(OURS, headers, "POST") == "unsupported_media_type"


def test_json_bodies_and_no_bodies_are_fine() -> None:
    json = {"content-length": "2", "content-type": "Application/JSON; charset=utf-8"}
    assert refusal(OURS, HOST | json, "POST") is None
    assert refusal(OURS, HOST | {"content-length": "0"}, "POST") is None
    assert refusal(OURS, HOST, "POST") is None


def test_loopback_needs_no_token() -> None:
    for address in ["127.0.0.1", "127.8.8.8", "::1"]:
        require_token(address, None)


def test_an_address_that_others_reach_needs_one() -> None:
    for address in ["0.0.0.0", "::", "192.168.1.7", "::ffff:192.168.1.7"]:
        with pytest.raises(ConfigError, match="LOCAL2_API_TOKEN"):
            require_token(address, None)
        require_token(address, "secret")

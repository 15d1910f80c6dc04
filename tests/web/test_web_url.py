import json
from ipaddress import ip_address
from pathlib import Path

import pytest

from local.core.errors import ConfigError, FetchRefused, ToolError
from local.core.web_url import AddressGuard, special_purpose

_FORMS = Path(__file__).parents[1] / "data" / "ssrf_forms.jsonl"


def forms(expect: str) -> list[str]:
    rows = [json.loads(line) for line in _FORMS.read_text(encoding="utf-8").splitlines()]
    return [row["url"] for row in rows if row["expect"] == expect]


def is_refused(url: str) -> bool:
    try:
        AddressGuard().check_url(url)
    except FetchRefused:
        return True
    return False


def test_every_form_to_refuse_is_refused_before_any_name_is_looked_up():
    urls = forms("refuse")
    assert len(urls) == 776
    assert [url for url in urls if not is_refused(url)] == []


def test_every_form_to_allow_is_allowed_and_its_canonical_form_is_stable():
    urls = forms("allow")
    assert len(urls) == 9
    for url in urls:
        canonical = str(AddressGuard().check_url(url))
        assert str(AddressGuard().check_url(canonical)) == canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("HTTPS://EXAMPLE.com.:443?q=ü#top", "https://example.com/?q=%C3%BC"),
        ("https://münchen.example/straße", "https://xn--mnchen-3ya.example/stra%C3%9Fe"),
        ("http://[2606:2800:0220:0001::1]:8080/", "http://[2606:2800:220:1::1]:8080/"),
        ("http://my_site.r3---sn-a.example/a%20b", "http://my_site.r3---sn-a.example/a%20b"),
        ("http://９３.184。216.34/", "http://93.184.216.34/"),
    ],
)
def test_an_address_has_one_canonical_ascii_form(written, canonical):
    assert str(AddressGuard().check_url(written)) == canonical


def test_a_refusal_is_a_tool_error_that_says_what_and_why_without_control_characters():
    with pytest.raises(ToolError, match=r"'http://a\\x00b/' may not be fetched: it contains .* control") as caught:
        AddressGuard().check_url("http://a\x00b/")
    assert caught.value.kind == "refused"
    with pytest.raises(FetchRefused, match="write it as https://"):
        AddressGuard().check_url("example.com/page")


@pytest.mark.parametrize("length", [9_000, 1_000_000])
def test_an_endless_address_is_refused(length):
    with pytest.raises(FetchRefused, match="longer than"):
        AddressGuard().check_url("https://example.com/" + "a" * length)


@pytest.mark.parametrize(
    "address",
    [
        *("8.8.8.8", "93.184.216.34", "100.63.255.255", "172.32.0.1", "192.0.1.1", "223.255.255.255"),
        *("2606:2800:220:1:248:1893:25c8:1946", "2a00:1450::1", "64:ff9b::8.8.8.8"),
    ],
)
def test_addresses_of_the_public_internet_have_no_special_purpose(address):
    assert special_purpose(ip_address(address)) is None


@pytest.mark.parametrize(
    "address",
    [
        *("100.127.255.255", "168.63.129.16", "192.88.99.1", "198.19.255.255", "203.0.113.9", "239.1.1.1"),
        *("::ffff:8.8.8.8", "64:ff9b::10.0.0.1", "2002:808:808::1", "2a00:1450::5efe:10.0.0.1"),
        *("2a00:1450::200:5efe:a00:1", "3fff::1", "4000::1", "ff0e::1", "2001:20::1"),
    ],
)
def test_special_addresses_are_known_in_every_disguise(address):
    assert special_purpose(ip_address(address))


@pytest.mark.parametrize("address", ["10.0.0.1", "fe80::1%eth0", "2606::1%lo", "::ffff:127.0.0.1"])
def test_what_a_public_name_resolves_to_is_judged_again(address):
    guard = AddressGuard()
    with pytest.raises(FetchRefused, match=r"http://example\.com/"):
        guard.check_address(guard.check_url("http://example.com/"), address)


def test_an_allowed_host_with_port_passes_both_stages_on_that_port_only():
    guard = AddressGuard(["127.0.0.1:8099"])
    guard.check_address(guard.check_url("http://127.0.0.1:8099/x"), "127.0.0.1")
    for other in ("http://127.0.0.1:8098/", "http://127.0.0.1/", "http://127.0.0.2:8099/", "http://2130706433:8099/"):
        with pytest.raises(FetchRefused):
            guard.check_url(other)


def test_an_allowed_host_without_port_passes_on_every_port():
    guard = AddressGuard(["Wiki.LAN", "[::1]"])
    guard.check_address(guard.check_url("http://wiki.lan:3000/"), "192.168.1.7")
    guard.check_url("http://[0::1]:9000/")


def test_an_exception_is_for_the_written_host_not_for_names_that_resolve_to_it():
    guard = AddressGuard(["127.0.0.1:8080"])
    with pytest.raises(FetchRefused, match="loopback"):
        guard.check_address(guard.check_url("http://example.com:8080/"), "127.0.0.1")


@pytest.mark.parametrize("entry", ["", "http://a.b", "a b", "user@host", "host:0", "1.2.3"])
def test_an_allowed_host_that_is_no_host_is_a_config_error(entry):
    with pytest.raises(ConfigError, match="allow_hosts"):
        AddressGuard([entry])

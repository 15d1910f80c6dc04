"""Every form of OLLAMA_HOST."""

from __future__ import annotations

import pytest

from local.core.errors import ConfigError
from local.models.settings import is_loopback, normalise_host

FORMS = {
    "": "http://127.0.0.1:11434",
    "  '127.0.0.1' ": "http://127.0.0.1:11434",
    "0.0.0.0": "http://127.0.0.1:11434",
    "0.0.0.0:8080": "http://127.0.0.1:8080",
    ":8080": "http://127.0.0.1:8080",
    "host": "http://host:11434",
    "host:8080/": "http://host:8080",
    "host/path": "http://host:11434/path",
    "http://host": "http://host:80",
    "HTTPS://host": "https://host:443",
    "https://host:443/path/": "https://host:443/path",
    "::1": "http://[::1]:11434",
    "[::]": "http://[::1]:11434",
    "[::1]:8080": "http://[::1]:8080",
    "http://[2001:db8::1]/path": "http://[2001:db8::1]:80/path",
}


@pytest.mark.parametrize(("value", "expected"), FORMS.items())
def test_every_form_becomes_one_base_address(value: str, expected: str) -> None:
    assert normalise_host(value) == expected
    assert normalise_host(expected) == expected


@pytest.mark.parametrize(
    "value", ["ftp://host", "host:99999", "host:port", "u:p@host", "host?x=1", "a b", "http://[::1"]
)
def test_what_cannot_be_an_address_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(ConfigError, match=r"is no address .*http://127\.0\.0\.1:11434$"):
        normalise_host(value)


def test_a_password_is_not_repeated_in_the_refusal() -> None:
    for value in ("http://user:geheim@host", "user:geheim@host:1", "http://user:ge/geheim@host"):
        with pytest.raises(ConfigError) as refused:
            normalise_host(value)
        assert "geheim" not in str(refused.value) and "host" in str(refused.value)


def test_only_addresses_of_this_machine_are_loopback() -> None:
    assert all(is_loopback(f"http://{host}:1") for host in ("127.0.0.1", "127.1.2.3", "[::1]", "localhost"))
    assert not any(is_loopback(f"http://{host}:1") for host in ("10.0.0.1", "example.com", "[2001:db8::1]"))

"""Secrets are recognised by their pattern, and what only looks like one is left alone."""

import pytest

from local.core.text import masked

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq\nq83jd/+8Zk=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-" + "a1B2" * 10,
        "sk-ant-api03-" + "x9_-" * 12,
        "ghp_" + "a1B2c3" * 6,
        "github_pat_" + "11AB_" * 6,
        "AKIA" + "IOSFODNN7EXAMPLE",
        "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"[:35],
        "xoxb-" + "123456789012-abcdefABCDEF",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "hf_" + "abcdefghij" * 4,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        "glpat-" + "abcDEF123456_7890xyz",
    ],
)
def test_api_keys_are_masked(secret: str) -> None:
    assert masked(f"Use {secret}, please.") == "Use [API key not stored], please."


@pytest.mark.parametrize("said", ["API key: ", "token=", "my secret is ", 'api_key = "'])
def test_what_is_called_a_key_and_looks_like_one_is_masked(said: str) -> None:
    text = masked(f"{said}9f86d081884c7d659a2feaa0c55ad015 ok")
    assert "9f86d081" not in text
    assert text.startswith(said.strip())


def test_a_bearer_token_is_masked() -> None:
    assert masked("curl -H 'Authorization: Bearer abcdefghijklmnop12'") == (
        "curl -H 'Authorization: Bearer [key not stored]'"
    )


@pytest.mark.parametrize("text", [PEM, PEM[:60], PEM.replace("RSA ", "OPENSSH "), PEM.replace("\n", "\\n")])
def test_private_keys_are_masked_even_where_they_are_cut_off(text: str) -> None:
    assert masked(f"Here: {text}") == "Here: [private key not stored]"


def test_what_follows_a_private_key_stays() -> None:
    assert masked(f"{PEM} and then?") == "[private key not stored] and then?"


@pytest.mark.parametrize(
    "card", ["4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "6011111111111117"]
)
def test_card_numbers_are_masked(card: str) -> None:
    assert masked(f"Pay with {card}.") == "Pay with [card number not stored]."


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112 has a wrong check digit",
        "the time is 1700000000000 ms",
        "pi is 3.141592653589793238",
        "0000 0000 0000 0000",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "the key is under the doormat",
        "my password hint is the colour of the house",
        "task-management-and-other-long-words",
        "the token is described in documentation-of-authentication",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_masking_twice_changes_nothing_more() -> None:
    once = masked(f"{PEM} sk-{'a1' * 20} 4111111111111111 token: {'a1' * 10}")
    assert masked(once) == once

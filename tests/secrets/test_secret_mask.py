"""What a process knows as a secret it does not tell, however it is written."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from local.bus.bus import EnvelopeFactory
from local.bus.messages import ToolResult
from local.core import secrets as module
from local.core.secrets import SecretMask, secret_mask
from local.runtime.logs import LineFormatter

VALUES = ["plainkey-1234567", "a key/with+all\"of'it\\\\&<ü😀>\\", "12345678", "plainkey-1234567-longer"]
WRITERS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "json": json.dumps,
    "json as it is": lambda value: json.dumps(value, ensure_ascii=False),
    "json in json in json": lambda value: json.dumps(json.dumps([json.dumps({"k": value})])),
    "repr": repr,
    "repr of repr": lambda value: repr([repr(value)]),
    "address": quote,
    "address, all of it": lambda value: quote(value, safe="").lower(),
    "form": quote_plus,
    "html": html.escape,
}


@pytest.fixture
def mask() -> SecretMask:
    mask = SecretMask()
    for number, value in enumerate(VALUES):
        mask.hide(f"s{number}", value)
    return mask


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process knows a secret, for a test."""
    monkeypatch.setattr(secret_mask, "__dict__", dict(vars(SecretMask())))
    secret_mask.hide("brave", VALUES[1])


@pytest.mark.parametrize("number", range(len(VALUES)))
@pytest.mark.parametrize("writer", WRITERS)
def test_its_name_stands_where_its_value_stood(mask: SecretMask, writer: str, number: int) -> None:
    written = WRITERS[writer](VALUES[number])
    told = mask.text(f"before {written} after")
    assert f"[secret:s{number}]" in told and told.startswith("before ") and told.endswith(" after")
    assert VALUES[number] not in told and "1234567" not in told and "with" not in told


@pytest.mark.parametrize("writer", WRITERS)
def test_a_payload_stays_json_and_its_keys_stay(mask: SecretMask, writer: str) -> None:
    text = WRITERS[writer](VALUES[1])
    told = json.loads(mask.payload(json.dumps({VALUES[0]: [1, None, {"a": f"x{text}y"}], "n": 1.5}).encode()))
    assert list(told) == [VALUES[0], "n"] and "[secret:s1]" in told[VALUES[0]][2]["a"]


def test_what_holds_no_secret_is_not_touched(mask: SecretMask) -> None:
    payload = b'{ "a" : "plainkey" , "b":"\\u00fc"}'
    assert mask.payload(payload) is payload


def test_a_value_that_is_too_short_to_be_told_from_a_word_is_left() -> None:
    mask = SecretMask()
    mask.hide("pin", "1234567")
    assert mask.names == set() and mask.text("1234567") == "1234567"


def test_a_name_with_a_backslash_is_told_as_it_is() -> None:
    mask = SecretMask()
    mask.hide(r"keys.a\1\g", "12345678")
    assert mask.text("x12345678") == r"x[secret:keys.a\1\g]"


def test_neither_many_backslashes_nor_a_long_text_hold_it_up() -> None:
    mask = SecretMask()
    mask.hide("s", 'x"y' + "\\" * 40 + "'zzzzz")
    text = 'x\\"y' + "\\" * 100_000
    assert mask.text(text) == text


@pytest.mark.usefixtures("known")
async def test_no_message_is_sealed_with_it_whichever_way_it_goes() -> None:
    factory = EnvelopeFactory("leak", "i", None)
    message = ToolResult(query_id="q", call_id="q:0:0", tool="leak", result=f"it is {VALUES[1]}", duration_ms=1)
    for payload in (await factory.payload(message), message.encode()):
        envelope, frame = factory.seal(message.routing_key, payload)
        assert ToolResult.decode(envelope.payload).result == "it is [secret:brave]"
        assert b"with+all" not in frame


@pytest.mark.usefixtures("known")
def test_no_log_line_has_it() -> None:
    record = logging.LogRecord("x", 40, "f", 1, "asked with %r", (VALUES[1],), None)
    assert LineFormatter("leak").format(record).endswith("asked with '[secret:brave]'")


def test_the_mask_of_a_process_is_one() -> None:
    assert module.secret_mask is secret_mask and secret_mask.names == set()

"""Secrets are kept encrypted, found by name, named by settings, and masked in everything that a process says."""

from __future__ import annotations

import html
import json
import logging
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from pydantic import Field, SecretStr

from local.bus.bus import EnvelopeFactory
from local.bus.messages import ToolResult
from local.core.config import Settings
from local.core.errors import ConfigError
from local.core.secrets import SecretMask, SecretStore, named_secrets, secret_mask, with_secrets
from local.runtime.logs import LineFormatter

VALUE = "canary-value ü 1234"
VALUES = ["plainkey-1234567", "a key/with+all\"of'it\\\\&<ü😀>\\", "12345678", "plainkey-1234567-longer"]
WRITERS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "json": json.dumps,
    "json as it is": lambda value: json.dumps(value, ensure_ascii=False),
    "json in json in json": lambda value: json.dumps(json.dumps([json.dumps({"k": value})])),
    "repr of repr": lambda value: repr([repr(value)]),
    "address": quote,
    "address, all of it": lambda value: quote(value, safe="").lower(),
    "form": quote_plus,
    "html": html.escape,
}


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process knows no secrets at first, and forgets after the test what it learns."""
    monkeypatch.setattr(secret_mask, "__dict__", dict(vars(SecretMask())))


@pytest.fixture
def store(tmp_path: Path) -> SecretStore:
    store = SecretStore(tmp_path)
    store.set("brave", VALUE)
    return store


@pytest.fixture
def mask() -> SecretMask:
    mask = SecretMask()
    for number, value in enumerate(VALUES):
        mask.hide(f"s{number}", value)
    return mask


class Inner(Settings):
    keys: dict[str, SecretStr] = Field(default_factory=dict)
    more: tuple[SecretStr, ...] = ()


class Outer(Settings):
    text: str = "secret:brave"
    key: SecretStr | None = None
    inner: Inner = Inner()
    limit: int = 5


# Kept


def test_no_file_has_a_secret_in_the_clear_and_only_its_owner_reads_them(store: SecretStore) -> None:
    assert SecretStore(store.folder.parent).get("brave") == VALUE
    files = {path.name: path for path in store.folder.iterdir()}
    assert files.keys() == {"store.json", "key"}
    for path in files.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"canary" not in path.read_bytes()
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_secret_is_replaced_and_removed(store: SecretStore) -> None:
    store.set("brave", "another-value")
    assert store.get("brave") == "another-value"
    store.remove("brave")
    assert store.all() == {}
    with pytest.raises(ConfigError, match="there is no secret brave; set it with 'local2 secret set brave'"):
        store.get("brave")
    with pytest.raises(ConfigError, match="there are: none"):
        store.remove("brave")


def test_a_name_or_value_that_could_not_be_kept_is_refused_and_not_repeated(store: SecretStore) -> None:
    for name in ("", "../x", "a b", ".x", "ä", "x" * 65, "a/b", "a\n"):
        with pytest.raises(ConfigError, match="is not a valid name of a secret"):
            store.set(name, VALUE)
    for value in ("", "1234567", "x" * 65_537, "line one\nline two", "nul\0nul\0nul", "tab\tand so on"):
        with pytest.raises(ConfigError, match="expected one line of 8 to 65536 characters") as refused:
            store.set("brave", value)
        assert not value or value not in str(refused.value)
    assert store.get("brave") == VALUE


def test_a_key_that_is_gone_or_another_s_and_a_box_under_another_name_are_errors_that_say_what_to_do(
    store: SecretStore,
) -> None:
    kept = json.loads((store.folder / "store.json").read_text())
    (store.folder / "store.json").write_text(json.dumps({"secrets": {"tavily": kept["secrets"]["brave"]}}))
    with pytest.raises(ConfigError, match="set it again with 'local2 secret set tavily'"):
        store.get("tavily")
    (store.folder / "key").write_text("00" * 32)
    (store.folder / "store.json").write_text(json.dumps(kept))
    with pytest.raises(ConfigError, match=r"cannot be opened with .*key; set it again"):
        store.get("brave")
    for damage in ("", "xyz", "00"):
        (store.folder / "key").write_text(damage)
        with pytest.raises(ConfigError, match="key: cannot be read: it is not a key; delete the folder"):
            store.get("brave")
    (store.folder / "key").unlink()
    with pytest.raises(ConfigError, match="No such file"):
        store.get("brave")
    for damage in ("", "[]", '{"secrets": {"brave": {"box": 1}}}'):
        (store.folder / "store.json").write_text(damage)
        with pytest.raises(ConfigError, match=r"store\.json: cannot be read: it is damaged"):
            store.get("brave")


def test_processes_that_set_secrets_at_the_same_time_lose_none(store: SecretStore) -> None:
    names = [f"n{number}" for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: SecretStore(store.folder.parent).set(name, VALUE), names))
    assert store.all().keys() == {"brave", *names}


# Named by settings


def test_settings_get_the_values_of_the_secrets_that_they_name_and_of_nothing_else(store: SecretStore) -> None:
    keys = {"a": SecretStr("secret:brave"), "b": SecretStr("written out")}
    named = Outer(key=SecretStr("secret:brave"), inner=Inner(keys=keys, more=(SecretStr("secret:brave"),)))
    assert dict(named_secrets(named)) == {"key": "brave", "inner.keys.a": "brave", "inner.more[0]": "brave"}
    opened = with_secrets(named, "outer", store.get)
    assert opened.key is not None and opened.key.get_secret_value() == VALUE
    assert [key.get_secret_value() for key in opened.inner.keys.values()] == [VALUE, "written out"]
    assert opened.inner.more[0].get_secret_value() == VALUE
    assert (opened.text, opened.model_fields_set) == ("secret:brave", named.model_fields_set)
    assert VALUE not in repr(opened) + opened.model_dump_json()
    assert secret_mask.text(f"it was written out, {VALUE}") == "it was [secret:inner.keys.b], [secret:brave]"
    for name, complaint in (("nowhere", "there is no secret nowhere"), ("a b", "expected secret:NAME")):
        with pytest.raises(ConfigError, match=rf"^outer\.yaml: key: {complaint}"):
            with_secrets(Outer(key=SecretStr(f"secret:{name}")), "outer", store.get)


# Masked


@pytest.mark.parametrize("writer", WRITERS)
def test_the_name_of_a_secret_is_shown_in_place_of_its_value(mask: SecretMask, writer: str) -> None:
    for number, value in enumerate(VALUES):
        shown = mask.text(f"before {WRITERS[writer](value)} after")
        assert f"[secret:s{number}]" in shown and shown.startswith("before ") and shown.endswith(" after")
        assert value not in shown and "1234567" not in shown and "with" not in shown
    payload = json.dumps({VALUES[0]: [1, None, {"a": f"x{WRITERS[writer](VALUES[1])}y"}], "n": 1.5}).encode()
    masked = json.loads(mask.payload(payload))
    assert list(masked) == [VALUES[0], "n"] and "[secret:s1]" in masked[VALUES[0]][2]["a"]


def test_text_without_a_secret_is_left_alone_however_long_and_a_short_value_is_no_secret(mask: SecretMask) -> None:
    payload = b'{ "a" : "plainkey" , "b":"\\u00fc"}'
    assert mask.payload(payload) is payload
    mask.hide("pin", "1234567")
    assert mask.text("1234567") == "1234567"
    mask.hide("s", 'x"y' + "\\" * 40 + "'zzzzz")
    text = 'x\\"y' + "\\" * 100_000
    assert mask.text(text) == text
    mask.hide(r"keys.a\1\g", "abcdefgh")
    assert mask.text("xabcdefgh") == r"x[secret:keys.a\1\g]"


async def test_no_message_and_no_log_line_has_a_secret() -> None:
    secret_mask.hide("brave", VALUES[1])
    factory = EnvelopeFactory("leak", "i", None)
    message = ToolResult(query_id="q", call_id="q:0:0", tool="leak", result=f"it is {VALUES[1]}", duration_ms=1)
    for payload in (await factory.payload(message), message.encode()):
        envelope, frame = factory.seal(message.routing_key, payload)
        assert ToolResult.decode(envelope.payload).result == "it is [secret:brave]"
        assert b"with+all" not in frame
    record = logging.LogRecord("x", 40, "f", 1, "asked with %r", (VALUES[1],), None)
    assert LineFormatter("leak").format(record).endswith("asked with '[secret:brave]'")

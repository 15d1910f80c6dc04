"""Secrets are kept encrypted, found by name, and named by settings."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import Field, SecretStr

from local.core.config import Settings
from local.core.errors import ConfigError
from local.core.secrets import SecretMask, SecretStore, named_secrets, secret_mask, with_secrets

VALUE = "canary-value ü 1234"


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process learns it forgets after the test."""
    monkeypatch.setattr(secret_mask, "__dict__", dict(vars(SecretMask())))


@pytest.fixture
def store(tmp_path: Path) -> SecretStore:
    store = SecretStore(tmp_path)
    store.set("brave", VALUE)
    return store


class Inner(Settings):
    keys: dict[str, SecretStr] = Field(default_factory=dict)
    more: tuple[SecretStr, ...] = ()


class Outer(Settings):
    text: str = "secret:brave"
    key: SecretStr | None = None
    inner: Inner = Inner()
    limit: int = 5


def test_what_is_kept_is_got_by_another_process_and_this_one_tells_it_nobody(store: SecretStore) -> None:
    assert SecretStore(store.folder.parent).get("brave") == VALUE
    assert secret_mask.text(f"it is {VALUE}") == "it is [secret:brave]"


def test_no_file_has_it_in_the_clear_and_only_its_owner_reads_them(store: SecretStore) -> None:
    files = {path.name: path for path in store.folder.iterdir()}
    assert files.keys() == {"store.json", "key"}
    for path in files.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"canary" not in path.read_bytes()
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_it_is_replaced_and_removed(store: SecretStore) -> None:
    store.set("brave", "another-value")
    assert store.get("brave") == "another-value"
    store.remove("brave")
    assert store.all() == {}
    with pytest.raises(ConfigError, match="there is no secret brave; set it with 'local2 secret set brave'"):
        store.get("brave")
    with pytest.raises(ConfigError, match="there are: none"):
        store.remove("brave")


@pytest.mark.parametrize("name", ["", "../x", "a b", ".x", "ä", "x" * 65, "a/b", "a\n"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(store: SecretStore, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a secret"):
        store.set(name, VALUE)


@pytest.mark.parametrize(
    "value", ["", "1234567", "x" * 65_537, "line one\nline two", "nul\0nul\0nul", "tab\tand so on"]
)
def test_a_value_that_could_not_be_hidden_is_refused_and_not_repeated(store: SecretStore, value: str) -> None:
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
        with pytest.raises(ConfigError, match="key: cannot be read: it is no key; delete the folder"):
            store.get("brave")
    (store.folder / "key").unlink()
    with pytest.raises(ConfigError, match="No such file"):
        store.get("brave")
    for damage in ("", "[]", '{"secrets": {"brave": {"box": 1}}}'):
        (store.folder / "store.json").write_text(damage)
        with pytest.raises(ConfigError, match=r"store\.json: cannot be read: it is damaged"):
            store.get("brave")


def test_those_who_set_secrets_at_once_lose_none(store: SecretStore) -> None:
    names = [f"n{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: SecretStore(store.folder.parent).set(name, VALUE), names))
    assert store.all().keys() == {"brave", *names}


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
    assert secret_mask.text("it was written out") == "it was [secret:inner.keys.b]"


@pytest.mark.parametrize(
    ("named", "told"), [("nowhere", "there is no secret nowhere"), ("a b", "expected secret:NAME")]
)
def test_a_secret_that_is_missing_is_told_with_file_and_key(store: SecretStore, named: str, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"^outer\.yaml: key: {told}"):
        with_secrets(Outer(key=SecretStr(f"secret:{named}")), "outer", store.get)

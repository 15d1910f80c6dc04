"""models.yaml: servers, chains, and the consent that a server on the internet needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.config_file import is_cloud
from local.core.errors import ConfigError
from local.core.routing import Endpoint, ModelsConfig, Routing
from local.models.settings import load_models

DEFAULTS = Path(__file__).parents[2] / "config"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings folder, in the current folder so that messages name it shortly."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def read(folder: Path, text: str = "") -> ModelsConfig:
    (folder / "models.yaml").write_text(text)
    return load_models([DEFAULTS, folder])


def test_a_server_of_ones_own_stands_beside_those_that_are_there(folder: Path) -> None:
    box = "box: {kind: openai, url: 'http://box:8080'}"
    config = read(folder, f"providers: {{{box}}}\nroles: {{chat: [box/x, ollama/y:1]}}\n")
    assert set(config.providers) == {"ollama", "openai", "google_genai", "llama_server", "box"}
    assert config.roles.chains() == (("box/x", "ollama/y:1"),)
    assert (config.named_at("box"), config.named_at("ollama")) == (("x",), ("y:1",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "providers:\n  x: {kind: openai, url: 'https://api.example.com/v1'}",
            ":2: providers.x: https://api.example.com/v1 is on the internet: conversations and memories would leave",
        ),
        ("providers:\n  ollama: {url: ollama.com}", ":2: providers.ollama: ollama.com is on the internet"),
        ("providers:\n  openai: {args: [a]}", ":2: providers.openai: args is no setting of a server of kind openai"),
        ("providers:\n  x: {url: box}", ":2: providers.x.kind: missing"),
        (
            "providers:\n  x: {kind: gpt}",
            ":2: providers.x.kind: expected 'ollama', 'openai', 'google_genai' or 'llama_server'",
        ),
        ("roles: {chat: [gemma4:12b]}", ":1: roles: expected provider/model, such as ollama/gemma4:12b"),
        ("roles: {chat: [olama/x]}", ":1: roles: olama/x: unknown provider; did you mean ollama?"),
        ("roles:\n  talk: []", ":2: roles.talk: unknown key"),
        ("max_retries: -1", ":1: max_retries: expected at least 0"),
    ],
)
def test_a_fault_is_one_line_with_its_place_and_what_would_be_right(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    assert str(caught.value).startswith(f"mine/models.yaml{message}")


@pytest.mark.parametrize(
    "address",
    ["localhost:1", "http://127.0.0.1", "box", "http://box.local:8080/v1", "nas.home.arpa", "192.168.1.7", "[::1]:1",
     "http://[fd00::1]:8080", "10.0.0.1:1", "100.100.1.2", "0.0.0.0:11434", ":11434", "::1", "",
     "http://2130706433", "127.1", "0x7f.0.0.1", "0", "box8"],
)  # fmt: skip
def test_an_address_at_home_is_no_cloud(address: str) -> None:
    assert not is_cloud(address)


@pytest.mark.parametrize(
    "address",
    ["https://openrouter.ai/api/v1", "ollama.com", "8.8.8.8:11434", "http://[2001:4860:4860::8888]/", "HTTPS://API.X.IO",
     "http://127.0.0.1.example.com", "http://localhost@example.com", "::ffff:8.8.8.8", "172.32.0.1", "x.localhost.io",
     "http://134744072/v1", "http://0x08080808/v1", "http://01002004010/v1", "010.8.8.8", "8.2056", "99999999999",
     "http://１３４７４４０７２/v1", "8。8。8。8"],
)  # fmt: skip
def test_an_address_on_the_internet_is_one(address: str) -> None:
    assert is_cloud(address)


def routing(**roles: tuple[str, ...]) -> Routing:
    endpoints = {
        "ollama": Endpoint(kind="ollama", url="http://127.0.0.1:1"),
        "box": Endpoint(kind="openai", url="http://box/v1"),
        "llama_server": Endpoint(kind="openai", url="http://127.0.0.1:2/v1", only_model="tiny"),
    }
    providers = {name: {"kind": "openai"} for name in endpoints}
    config = ModelsConfig.model_validate({"roles": roles, "providers": providers})
    return Routing(config=config, endpoints=endpoints, default="ollama")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("gemma4:12b", ("ollama", "gemma4:12b")),
        ("ollama/gemma4:12b", ("ollama", "gemma4:12b")),
        ("box/a/b", ("box", "a/b")),
        ("hf.co/x/y:Q4", ("ollama", "hf.co/x/y:Q4")),
        ("llama_server/whatever", ("llama_server", "tiny")),
    ],
)
def test_a_model_is_named_with_its_server_or_is_on_the_default_one(name: str, place: tuple[str, str]) -> None:
    assert routing().locate(name) == place


@pytest.mark.parametrize("model", ["gpt-oss:120b-cloud"])
def test_a_model_that_ollama_runs_elsewhere_needs_leave(model: str) -> None:
    with pytest.raises(ConfigError, match="runs on the machines of Ollama: conversations and memories would leave"):
        routing().locate(model)
    allowed = Routing.to_one("ollama", Endpoint(kind="ollama", url="http://127.0.0.1:1", allow_cloud=True))
    assert allowed.locate(model) == ("ollama", model)


def test_the_model_of_a_role_is_the_first_of_its_chain_or_the_participants_own() -> None:
    assert routing().first("chat", "gemma4:12b") == "gemma4:12b"
    assert routing(chat=("box/x", "ollama/y")).first("chat", "gemma4:12b") == "box/x"
    assert routing(chat=("box/x",)).first("fast", "gemma4:e2b") == "gemma4:e2b"
    assert routing(fast=("ollama/y",)).first("fast", "gemma4:12b") == "y"

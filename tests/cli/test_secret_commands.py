"""`local2 secret`: a value comes from the input, never from the command line, and is shown by nothing."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import typer

from local.cli.command_table import run_command
from local.core.bus_address import BusAddress
from local.core.routing import Endpoint, ModelsConfig, Provider, Routing
from local.core.secrets import SecretMask, SecretStore, secret_mask
from local.core.shipped import shipped_dir
from local.critic import agent as critic
from local.run.doctor import FindingStatus, Installation, check_secrets
from local.run.participant import ParticipantSpec, make
from local.runtime.participant import Resources

VALUE = "canary-value-1234"
NOWHERE = BusAddress("ipc://a", "ipc://b")


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process learns it forgets after the test."""
    monkeypatch.setattr(secret_mask, "__dict__", dict(vars(SecretMask())))


def secret(data_dir: Path, *words: str) -> int:
    return run_command(["secret", *words, "--data-dir", str(data_dir)])


def test_it_is_read_from_the_input_listed_by_name_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"  {VALUE}\n"))
    assert secret(tmp_path, "set", "brave") == 0
    assert SecretStore(tmp_path).get("brave") == VALUE
    assert secret(tmp_path, "list") == 0
    assert secret(tmp_path, "remove", "brave") == 0
    assert SecretStore(tmp_path).all() == {}
    shown = capsys.readouterr()
    assert "brave  since 2" in shown.out and VALUE not in shown.out + shown.err


def test_at_a_terminal_it_is_asked_for_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(typer, "prompt", lambda text, **how: asked.append(how) or VALUE)
    assert secret(tmp_path, "set", "brave") == 0
    assert asked == [{"hide_input": True, "err": True}]
    assert SecretStore(tmp_path).get("brave") == VALUE


def test_on_the_command_line_it_is_refused_and_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert secret(tmp_path, "set", "brave", VALUE) == 2
    said = capsys.readouterr().err
    assert "a secret is not accepted as an argument" in said and VALUE not in said
    assert SecretStore(tmp_path).all() == {}


def test_the_doctor_names_each_that_is_missing_with_the_command_that_sets_it(tmp_path: Path) -> None:
    (tmp_path / "web_search.yaml").write_text("brave_api_key: secret:brave\n")
    providers = {"box": Provider(kind="openai", url="http://127.0.0.1:1/v1", api_key="secret:box")}
    installation = Installation(tmp_path, models=ModelsConfig(providers=providers))
    [missing] = check_secrets(tmp_path, installation.secrets)
    assert (missing.status, missing.fix) == (FindingStatus.FAIL, "local2 secret set box")
    assert missing.text.startswith("models: providers.box.api_key: there is no secret box")
    SecretStore(tmp_path).set("box", VALUE)
    [found] = check_secrets(tmp_path, installation.secrets)
    assert found.status is FindingStatus.OK and VALUE not in found.text


@pytest.mark.parametrize("key", ["sk-canary-1234", "secret:", "secret:a b", ""])
def test_the_key_of_a_model_server_stands_in_no_file_and_is_not_repeated(key: str) -> None:
    with pytest.raises(ValueError, match="expected secret:NAME") as refused:
        Provider(kind="openai", url="http://127.0.0.1:1/v1", api_key=key)
    assert "Value error, expected secret:NAME" in str(refused.value)


def test_an_agent_gets_the_key_of_its_model_server_and_a_tool_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SecretStore(tmp_path).set("box", VALUE)
    endpoint = Endpoint.model_validate({"kind": "openai", "url": "http://127.0.0.1:1/v1", "api_key": "secret:box"})
    resources = Resources(tmp_path, Routing.to_one("box", endpoint), chat_model="m")
    seen: list[str] = []
    monkeypatch.setattr(critic, "connect", lambda routing, **_: seen.append(routing.endpoints["box"].key))
    layers = (shipped_dir() / "config",)
    make(ParticipantSpec("local.web.search:WebSearchTool", NOWHERE, resources, layers))
    assert secret_mask.names == set()
    make(ParticipantSpec("local.critic.agent:CriticAgent", NOWHERE, resources, layers))
    assert (seen, secret_mask.names) == ([VALUE], {"box"})
    assert VALUE not in repr(resources)

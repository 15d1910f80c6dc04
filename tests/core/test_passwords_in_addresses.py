"""Passwords in addresses, and keys, are in no error, log line, finding or answer, whoever has written them."""

from __future__ import annotations

import logging
import sys

import pytest
import typer

from local.cli.client import SystemClient
from local.cli.main import exit_status, new_app
from local.core.config import SystemConfig, load
from local.core.errors import ConfigError, FetchRefused, LocalError, NoAnswer, ToolError, without_passwords
from local.core.routing import ModelsConfig, Provider
from local.models.settings import normalise_base_url, ollama_url
from local.run.doctor import as_line, fail
from local.runtime.logs import LineFormatter
from local.web.search import build_chain

SECRET = "geheim"
FORMS = {
    f"http://user:{SECRET}@host/x": "http://…@host/x",
    f"no answer from 'https://user:{SECRET}@host:1/v1': gone": "no answer from 'https://…@host:1/v1': gone",
    f"http://{SECRET}@host": "http://…@host",
    f"http://user:a@{SECRET}@host": "http://…@host",
    f"http://user:a/{SECRET}@host": "http://…@host",
    f"http://user:a#{SECRET}?@host": "http://…@host",
    f"http://a:{SECRET}@b and tcp://c:{SECRET}@d:1": "http://…@b and tcp://…@d:1",
}
UNTOUCHED = [
    "http://host:8080/a@b", "https://medium.com/@someone", "http://[::1]:80/p@x", "http://host/?q=a@b",
    "http://host:80, mail a@b.example", "http://host:8080?x@y", "a@b", "http://host",
]  # fmt: skip


def test_an_address_loses_user_and_password_and_nothing_else_with_an_at_changes() -> None:
    for text, shown in FORMS.items():
        assert without_passwords(text) == shown
        assert str(LocalError(text)) == str(ToolError(text)) == str(ConfigError(text)) == shown
    for text in UNTOUCHED:
        assert without_passwords(text) == text
    assert SECRET not in str(FetchRefused(f"http://user:{SECRET * 100}@host", "so"))


def test_no_log_line_finding_or_command_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"http://user:{SECRET}@host"
    try:
        raise ValueError(f"{address} broke")
    except ValueError:
        record = logging.LogRecord("x", 40, "f", 1, "asked %s", (address,), sys.exc_info())
    line = LineFormatter("api").format(record)
    assert SECRET not in line and line.count("http://…@host") >= 2
    finding = as_line(fail("search", f"nothing at {address}", f"start {address}"))
    assert SECRET not in finding and "http://…@host" in finding
    app = new_app()

    @app.command()
    def use(address: str) -> None:
        raise typer.BadParameter(f"{address} is not there")

    assert exit_status(app, [address], "local2") == 2
    assert "http://…@host is not there" in capsys.readouterr().err


@pytest.mark.parametrize("address", [f"http://user:{SECRET}@8.8.8.8", f"user:{SECRET}@host.example"])
def test_no_setting_that_is_wrong_is_repeated_with_it(address: str) -> None:
    models = ModelsConfig(providers={"ollama": Provider(kind="ollama")})
    for use in (
        lambda: ollama_url(SystemConfig(ollama_url=address), models),
        lambda: normalise_base_url(address),
        lambda: load_provider(address),
        lambda: build_chain(searxng_url=address.replace("http", "ftp")),
    ):
        with pytest.raises(ConfigError) as refused:
            use()
        assert SECRET not in str(refused.value)


def load_provider(address: str) -> object:
    """As the settings are read, with the line that says what is wrong."""
    providers = {"ollama": {"kind": "ollama"}, "x": {"kind": "openai", "url": address}}
    return load("models", ModelsConfig, [], {"providers": providers})


def test_a_client_does_not_say_the_password_of_the_address_that_does_not_answer() -> None:
    with SystemClient(f"http://user:{SECRET}@127.0.0.1:9") as client, pytest.raises(NoAnswer) as failed:
        client.health()
    assert SECRET not in str(failed.value) and "127.0.0.1:9" in str(failed.value)

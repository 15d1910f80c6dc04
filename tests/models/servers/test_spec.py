"""What it takes to run a model server, or why it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.config_models import Provider
from local.errors import ConfigError
from local.models.servers.spec import llama_server_spec, ollama_spec


def test_ollama_is_told_where_to_listen() -> None:
    spec = ollama_spec("ollama", "/bin/ollama", "http://127.0.0.1:11434")
    assert (spec.command, dict(spec.variables)) == (("/bin/ollama", "serve"), {"OLLAMA_HOST": "127.0.0.1:11434"})


def test_llama_server_gets_its_model_a_port_and_what_the_user_adds(folder: Path) -> None:
    provider = Provider(
        kind="llama_server", program=str(folder / "llama-server"), model=folder / "tiny-1b.gguf", args=("-ngl", "99")
    )
    spec = llama_server_spec("box", provider)
    port = spec.url.rpartition(":")[2]
    expected = f"--model {folder}/tiny-1b.gguf --alias tiny-1b --host 127.0.0.1 --port {port} -ngl 99"
    assert " ".join(spec.command[1:]) == expected
    assert int(port) > 0 and spec.minimum_build == 8665
    assert llama_server_spec("box", provider.model_copy(update={"port": 8123})).url == "http://127.0.0.1:8123"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"program": "/nowhere/llama-server"}, "there is no program /nowhere/llama-server: install llama.cpp"),
        ({"model": None}, "llama-server needs a model: write the path of a GGUF file as providers.box.model"),
        ({"model": Path("/nowhere.gguf")}, "there is no file /nowhere.gguf; correct providers.box.model"),
    ],
)
def test_what_is_missing_is_named_with_the_key_that_says_where_it_is(
    folder: Path, settings: dict[str, object], complaint: str
) -> None:
    given = {"program": str(folder / "llama-server"), "model": folder / "tiny-1b.gguf"} | settings
    with pytest.raises(ConfigError, match=complaint):
        llama_server_spec("box", Provider(kind="llama_server", **given))

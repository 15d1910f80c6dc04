"""What it takes to run a model server, or why it cannot be."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from local.core.errors import ConfigError
from local.models.servers import ServerSpec, context_length, llama_server_spec, ollama_spec
from local.models.settings import Provider
from tests.models.llama_cpp.tiny_gguf import write_tiny_gguf


def test_ollama_is_told_where_to_listen() -> None:
    spec = ollama_spec("ollama", "/bin/ollama", "http://127.0.0.1:11434")
    assert (spec.command, dict(spec.variables)) == (("/bin/ollama", "serve"), {"OLLAMA_HOST": "127.0.0.1:11434"})


def test_llama_server_gets_its_model_a_port_and_what_the_user_adds(folder: Path) -> None:
    provider = Provider(
        kind="llama_server", program=str(folder / "llama-server"), model=folder / "tiny-1b.gguf", args=("-ngl", "99")
    )
    spec = llama_server_spec("box", provider)
    port = spec.url.rpartition(":")[2]
    command = " ".join(spec.command[1:])
    assert command.startswith(f"--model {folder}/tiny-1b.gguf --alias tiny-1b --host 127.0.0.1 --port {port} ")
    assert command.endswith(" -ngl 99")
    assert int(port) > 0 and spec.minimum_build == 8665
    assert llama_server_spec("box", provider.model_copy(update={"port": 8123})).url == "http://127.0.0.1:8123"


def box(folder: Path, *args: str) -> ServerSpec:
    program, model = str(folder / "llama-server"), folder / "tiny-1b.gguf"
    return llama_server_spec("box", Provider(kind="llama_server", program=program, model=model, args=args))


def values(spec: ServerSpec, option: str) -> list[str]:
    return [value for name, value in pairwise(spec.command) if name == option]


def test_a_server_can_stop_soon_and_keeps_a_bounded_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    spec = box(folder)
    assert values(spec, "--batch-size") == values(spec, "--ubatch-size") != []
    assert int(values(spec, "--batch-size")[0]) <= 512
    assert spec.cache_mib == "1024"
    assert spec.variables["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert "OMP_WAIT_POLICY" not in box(folder).variables


@pytest.mark.parametrize("args", [("--cache-ram", "0"), ("--cache-ram=0",), ("-cram", "0")])
def test_the_owner_s_arguments_override_ours(folder: Path, args: tuple[str, ...]) -> None:
    assert box(folder, *args).cache_mib == "0"
    assert values(box(folder, "--ctx-size", "512"), "--ctx-size")[-1] == "512"


def test_texts_are_embedded_in_batches_of_the_server_s_own_size(folder: Path) -> None:
    assert values(box(folder, "--embeddings"), "--ubatch-size") == []


@pytest.mark.parametrize(("trained", "expected"), [(2_048, "2048"), (131_072, "32000")])
def test_the_context_is_at_most_what_the_model_has(folder: Path, trained: int, expected: str) -> None:
    write_tiny_gguf(folder / "tiny-1b.gguf", context_length=trained)
    assert values(box(folder), "--ctx-size") == [expected]
    assert context_length(folder / "tiny-1b.gguf") == trained


@pytest.mark.parametrize("keep", [0, 3, 20, 24, 60, 200])
def test_a_file_that_is_cut_off_says_nothing_of_its_context(folder: Path, keep: int) -> None:
    file = write_tiny_gguf(folder / "tiny-1b.gguf")
    file.write_bytes(file.read_bytes()[:keep])
    assert context_length(file) in (None, 65_536)
    assert values(box(folder), "--ctx-size") == ["32000"]


def test_lengths_that_no_file_has_are_not_followed(folder: Path) -> None:
    file = folder / "tiny-1b.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 5) + struct.pack("<Q", 2**62))
    assert context_length(file) is None


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

"""What the doctor says where llama.cpp runs a GGUF file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.core.config import SystemConfig
from local.core.routing import ModelsConfig
from local.generator.config import GeneratorConfig
from local.models.servers import CONTEXT_TOKENS
from local.run import doctor as model_server
from local.run.doctor import DoctorFinding, FindingStatus, check_model_servers


async def findings(tmp_path: Path, content: bytes = b"GGUF", **provider: Any) -> list[DoctorFinding]:
    program, model = tmp_path / "llama-server", tmp_path / "m.gguf"
    program.touch(mode=0o755)
    model.write_bytes(content)
    settings = {"kind": "llama_server", "program": str(program), "model": str(model), **provider}
    models = ModelsConfig.model_validate(
        {"providers": {"llama_server": settings}, "roles": {"chat": ["llama_server/m"]}}
    )
    found = await check_model_servers(SystemConfig(), GeneratorConfig(), models)
    assert not any("llama.com" in f"{finding.text} {finding.fix}" for finding in found)
    return found


@pytest.mark.parametrize(
    ("args", "context"),
    [
        ((), f"{CONTEXT_TOKENS} tokens"),
        (("--ctx-size", "4096"), "4096 tokens"),  # after our own
        (("--ctx-size", "4096", "-c", "2048"), "2048 tokens"),
        (("-c", "0"), "as many tokens as the model can hold"),
    ],
)
async def test_program_file_context_and_memory_are_told(tmp_path: Path, args: tuple[str, ...], context: str) -> None:
    server, memory = await findings(tmp_path, args=args)
    assert (server.status, memory.status) == (FindingStatus.OK, FindingStatus.OK)
    assert str(tmp_path / "m.gguf") in server.text
    assert f"its context ({context})" in memory.text


async def test_a_model_larger_than_the_free_memory_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_server.psutil, "virtual_memory", lambda: SimpleNamespace(available=1))
    assert (await findings(tmp_path))[-1].status is FindingStatus.WARN


@pytest.mark.parametrize(
    ("content", "provider", "text"),
    [
        (b"HTML", {}, "is no GGUF file"),
        (b"GGUF", {"model": "/nowhere/m.gguf"}, "there is no file /nowhere/m.gguf"),
        (b"GGUF", {"program": "/nowhere/llama-server"}, "there is no program /nowhere/llama-server"),
    ],
)
async def test_what_is_missing_is_named(tmp_path: Path, content: bytes, provider: dict[str, Any], text: str) -> None:
    (finding,) = await findings(tmp_path, content, **provider)
    assert finding.status is FindingStatus.FAIL
    assert text in finding.text

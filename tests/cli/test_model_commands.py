"""`local2 model` lists, pulls and chooses, for Ollama and for GGUF files alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from local.cli.entry import main
from local.core.errors import ModelError
from local.models.commands import describe, pull_and_show
from local.models.hub import ModelStock, PullStep
from local.models.settings import load_models
from tests.models.hub.fake_hub import REPO, hub_with

DEFAULTS = Path(__file__).parents[2] / "config"
FILES = {"tiny-Q4_K_M.gguf": b"GGUF" + bytes(1000)}


@asynccontextmanager
async def ollama(*steps: dict[str, object]) -> AsyncIterator[str]:
    """Pulls whatever it is asked to, in these steps; gives its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        lines = b"".join(json.dumps(step).encode() + b"\n" for step in steps)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: {len(lines)}\r\n\r\n"
        writer.write(head.encode() + lines)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def stock(url: str, folder: Path) -> ModelStock:
    return ModelStock(folder, url, "http://127.0.0.1:1")


async def test_each_step_is_shown_once_and_each_full_percent(tmp_path: Path) -> None:
    layer = {"status": "pulling 3fa", "total": 8_100_000_000}
    amounts = (0, 40_000_000, 81_000_000, 8_100_000_000)
    steps = [{"status": "pulling manifest"}, *({**layer, "completed": done} for done in amounts), {"status": "success"}]
    shown: list[str] = []
    async with ollama(*steps) as url:
        await pull_and_show(stock(url, tmp_path), "gemma4:12b", shown.append)
    assert shown == [
        "pulling manifest",
        "pulling 3fa 0 % of 8.1 GB",
        "pulling 3fa 1 % of 8.1 GB",
        "pulling 3fa 100 % of 8.1 GB",
        "success",
    ]


async def test_what_ollama_complains_about_is_the_error(tmp_path: Path) -> None:
    async with ollama({"status": "pulling manifest"}, {"error": "pull model manifest: file does not exist"}) as url:
        with pytest.raises(ModelError, match="file does not exist"):
            await pull_and_show(stock(url, tmp_path), "nonsense", lambda _: None)


@pytest.mark.parametrize(("total", "size"), [(512, "512 B"), (20_000, "20 kB"), (1_500_000, "1.5 MB")])
def test_a_size_is_told_in_its_unit(total: int, size: str) -> None:
    assert describe(PullStep("pulling", None, total)) == f"pulling 0 % of {size}"


class Commands:
    """`local2 model` with folders of its own, and no Ollama."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.settings, self.data, self._capsys = folder / "settings", folder / "data", capsys
        self.settings.mkdir()
        (self.settings / "system.yaml").write_text("ollama_url: http://127.0.0.1:1\n")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, output and error output."""
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--config-dir", str(self.settings), "--data-dir", str(self.data)])
        out, err = self._capsys.readouterr()
        return int(str(ended.value.code)), out, err


@pytest.fixture
def commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)


@pytest.mark.parametrize("name", [("pull",), ("model", "pull")])
def test_without_a_server_the_command_says_what_to_do(commands: Commands, name: tuple[str, ...]) -> None:
    status, _, err = commands.run(*name, "gemma4:12b")
    assert status == 2
    assert "local2: no Ollama server answers at http://127.0.0.1:1: start it" in err
    assert "pull a GGUF file: `local2 model pull hf.co/OWNER/NAME`" in err


def test_a_model_is_pulled_listed_and_chosen(commands: Commands) -> None:
    with hub_with(FILES) as hub:
        (commands.settings / "models.yaml").write_text(f"hub_url: {hub.url}  # the house's own\n")
        status, out, _ = commands.run("model", "pull", f"hf.co/{REPO}")
    assert (status, out.splitlines()[-2:]) == (0, ["pulling tiny-Q4_K_M.gguf 100 % of 1 kB", "success"])
    status, out, err = commands.run("model", "list")
    assert (status, out) == (0, "  tiny-Q4_K_M  llama_server  1 kB\n")
    assert "no Ollama server answers" in err
    status, out, _ = commands.run("model", "use", "tiny-Q4_K_M")
    assert (status, out.partition(" as ")[0]) == (0, "llama_server/tiny-Q4_K_M answers from the next start on,")
    assert "# the house's own" in (commands.settings / "models.yaml").read_text()
    chosen = load_models([DEFAULTS, commands.settings])
    assert chosen.roles.chat == ("llama_server/tiny-Q4_K_M",)
    assert chosen.providers["llama_server"].model == commands.data / "models" / "tiny-Q4_K_M.gguf"
    _, out, _ = commands.run("model", "list", "--json")
    assert json.loads(out)["models"][0]["current"] is True


def test_a_model_that_is_not_here_is_not_chosen(commands: Commands) -> None:
    status, _, err = commands.run("model", "use", "/nowhere/m.gguf")
    assert (status, (commands.settings / "models.yaml").exists()) == (2, False)
    assert "local2: there is no file /nowhere/m.gguf, here or in " in err


def test_where_none_is_chosen_the_one_of_the_generator_is_marked(commands: Commands) -> None:
    (commands.data / "models").mkdir(parents=True, mode=0o700)
    (commands.data / "models" / "mine.gguf").write_bytes(b"GGUF")
    (commands.settings / "generator.yaml").write_text("model: mine\n")
    assert commands.run("model", "list")[1].startswith("* mine")


def test_a_model_that_is_used_by_its_path_is_listed_as_the_one_that_answers(commands: Commands, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.gguf"
    file.write_bytes(b"GGUF")
    assert commands.run("model", "use", str(file))[0] == 0
    assert commands.run("model", "list")[1] == "* elsewhere  llama_server  4 B\n"
    file.unlink()
    assert commands.run("model", "list")[1] == ""


def test_with_nothing_here_it_says_how_to_get_one(commands: Commands) -> None:
    assert "no model is here; `local2 model pull NAME` gets one" in commands.run("model", "list")[2]

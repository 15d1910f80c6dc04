"""Models come from a hub over real HTTP: whole or not at all, going on where they were, and with a reason if not."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import ModelError, NoSuchModel
from local.models import hub as gguf_download
from local.models.hub import ModelStock, PullStep
from tests.models.hub.fake_hub import REPO, FakeHub, hub_with

Q4 = "tiny-Q4_K_M.gguf"


def gguf(seed: int, size: int = 300_000) -> bytes:
    return b"GGUF" + random.Random(seed).randbytes(size - 4)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(gguf_download, "CHUNK_BYTES", 10_000)
    files = {
        "README.md": b"hello",
        "tiny-Q8_0.gguf": gguf(1),
        "tiny-Q4_K_M.gguf": gguf(2),
        "mmproj-tiny-Q4_K_M.gguf": gguf(3),
        "big/big-BF16-00001-of-00002.gguf": gguf(4),
        "big/big-BF16-00002-of-00002.gguf": gguf(5),
    }
    with hub_with(files) as hub:
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def stock(hub: FakeHub, folder: Path) -> ModelStock:
    return ModelStock(folder, "http://127.0.0.1:1", hub.url, "hf_secret_of_ours")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_download, "FIRST_PAUSE", 0.001)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def pull(stock: ModelStock, name: str) -> list[PullStep]:
    async with asyncio.timeout(90):
        return [step async for step in stock.pull(name)]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (f"hf.co/{REPO}", [Q4]),
        (f"https://huggingface.co/{REPO}", [Q4]),
        (f"hf.co/{REPO}:q8_0", ["tiny-Q8_0.gguf"]),
        (f"hf.co/{REPO}:BF16", ["big-BF16-00001-of-00002.gguf", "big-BF16-00002-of-00002.gguf"]),
        (f"{REPO}/tiny-Q8_0.gguf", ["tiny-Q8_0.gguf"]),
        (f"https://huggingface.co/{REPO}/blob/main/{Q4}?download=true", [Q4]),
    ],
)
async def test_a_pulled_model_is_stored_in_the_folder(
    stock: ModelStock, hub: FakeHub, folder: Path, name: str, files: list[str]
) -> None:
    steps = await pull(stock, name)
    assert steps[-1] == PullStep("success")
    assert names_in(folder) == files
    contents = {path.rpartition("/")[2]: data for path, data in hub.files.items()}
    assert all((folder / file).read_bytes() == contents[file] for file in files)


async def test_a_model_in_parts_is_one_model(stock: ModelStock, folder: Path) -> None:
    await pull(stock, f"hf.co/{REPO}:BF16")
    models, note = await stock.models()
    assert [(model.name, model.size) for model in models] == [("big-BF16-00001-of-00002", 600_000)]
    assert "no Ollama server answers" in note


async def test_how_far_it_is_is_told_in_bytes(stock: ModelStock) -> None:
    amounts = [step for step in await pull(stock, f"hf.co/{REPO}") if step.total]
    assert {step.total for step in amounts} == {300_000}
    completed = [step.completed or 0 for step in amounts]
    assert completed == sorted(completed) and completed[0] == 0 and completed[-1] == 300_000 and len(completed) > 10


async def test_what_is_here_is_not_fetched_again(stock: ModelStock, hub: FakeHub) -> None:
    await pull(stock, f"hf.co/{REPO}")
    steps = await pull(stock, f"hf.co/{REPO}")
    assert f"{Q4} is here already" in [step.status for step in steps]
    assert len(hub.ranges()) == 1


@pytest.mark.parametrize("tells_digests", [True, False])
async def test_a_connection_that_breaks_goes_on_where_it_was(
    stock: ModelStock, hub: FakeHub, folder: Path, tells_digests: bool
) -> None:
    hub.cut_after, hub.cuts, hub.tells_digests = 50_000, 3, tells_digests
    await pull(stock, f"hf.co/{REPO}")
    assert (folder / Q4).read_bytes() == hub.files[Q4]
    begins = [int(given.removeprefix("bytes=").rstrip("-")) for given in hub.ranges() if given]
    assert len(begins) == 3 and begins == sorted(begins) and begins[-1] > 100_000


async def test_a_pull_that_was_stopped_goes_on_later_and_nothing_half_made_is_a_model(
    stock: ModelStock, hub: FakeHub, folder: Path
) -> None:
    async with aclosing(stock.pull(f"hf.co/{REPO}")) as steps:
        async for step in steps:
            if (step.completed or 0) > 100_000:
                break
    assert (await stock.models())[0] == []
    assert [name.rpartition(".")[2] for name in names_in(folder)] == ["part"]
    await pull(stock, f"hf.co/{REPO}")
    assert (folder / Q4).read_bytes() == hub.files[Q4]
    assert hub.ranges()[1].startswith("bytes=1")
    assert names_in(folder) == [Q4]


async def test_a_server_without_ranges_is_asked_for_the_whole(stock: ModelStock, hub: FakeHub, folder: Path) -> None:
    hub.cut_after, hub.cuts, hub.takes_ranges = 50_000, 1, False
    await pull(stock, f"hf.co/{REPO}")
    assert (folder / Q4).read_bytes() == hub.files[Q4]


async def test_what_is_not_as_the_hub_says_is_thrown_away(stock: ModelStock, hub: FakeHub, folder: Path) -> None:
    hub.lies[Q4] = hub.files[Q4][:-1] + b"!"
    with pytest.raises(ModelError, match="did not arrive as it is: its SHA-256") as caught:
        await pull(stock, f"hf.co/{REPO}")
    assert caught.value.kind == "checksum"
    assert names_in(folder) == []


async def test_a_page_in_place_of_a_model_is_noticed_at_its_first_bytes(stock: ModelStock, hub: FakeHub) -> None:
    hub.files["page.gguf"] = b"<!DOCTYPE html>" * 20_000
    with pytest.raises(ModelError, match="is no GGUF file") as caught:
        await pull(stock, hub.address("page.gguf"))
    assert caught.value.kind == "bad_model"


async def test_an_address_anywhere_will_do(stock: ModelStock, hub: FakeHub, folder: Path) -> None:
    hub.cut_after, hub.cuts = 50_000, 1
    await pull(stock, hub.address(Q4))
    assert (folder / Q4).read_bytes() == hub.files[Q4]


async def test_a_disk_without_room_is_told_before_anything_is_fetched(
    stock: ModelStock, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_download, "SPARE_BYTES", 10**15)
    with pytest.raises(ModelError, match=r"GB are free at .*; make room and pull it again") as caught:
        await pull(stock, f"hf.co/{REPO}")
    assert caught.value.kind == "disk_full"
    assert hub.ranges() == []


async def test_a_disk_that_fills_up_keeps_what_is_there(
    hub: FakeHub, small_disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_download, "SPARE_BYTES", -(10**9))  # it was free when the pull began
    folder = small_disk.folder
    stock = ModelStock(folder / "models", "", hub.url)
    small_disk.fill(room=200_000)
    with pytest.raises(ModelError, match=f"{os.strerror(errno.ENOSPC)}; what is there is kept") as caught:
        await pull(stock, f"hf.co/{REPO}")
    assert caught.value.kind == "disk_full"
    small_disk.free()
    await pull(stock, f"hf.co/{REPO}")
    assert (folder / "models" / Q4).read_bytes() == hub.files[Q4]
    assert hub.ranges()[1] > "bytes=1"


async def test_a_folder_that_cannot_be_made_is_told(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be written: Not a directory") as caught:
        await pull(ModelStock(tmp_path / "file" / "models", "", hub.url), f"hf.co/{REPO}")
    assert caught.value.kind == "unwritable"


@pytest.mark.parametrize(
    ("name", "status", "kind", "says"),
    [
        ("hf.co/nobody/nothing", 200, "model_missing", "has no nobody/nothing"),
        (f"hf.co/{REPO}:Q2_K", 200, "model_missing", "has no Q2_K; there is: big/big-BF16"),
        (f"{REPO}/none.gguf", 200, "model_missing", "has no none.gguf; there is: "),
        (f"hf.co/{REPO}", 401, "unauthorised", "accept its terms, and set HF_TOKEN"),
        (f"hf.co/{REPO}", 503, "server_error", "answers 503"),
        ("hf.co/only", 200, "bad_name", "expected hf.co/OWNER/NAME"),
        ("https://example.org/page.html", 200, "bad_name", "expected https://HOST/PATH.gguf"),
        ("two words", 200, "bad_name", "no name of a model"),
        ("gemma4:12b", 200, "unreachable", "no Ollama server answers .* without Ollama, pull a GGUF file"),
    ],
)
async def test_what_cannot_be_had_is_told(
    stock: ModelStock, hub: FakeHub, name: str, status: int, kind: str, says: str
) -> None:
    hub.status = status
    with pytest.raises(ModelError, match=says) as caught:
        await pull(stock, name)
    assert caught.value.kind == kind


async def test_without_a_network_it_says_what_else_to_do(folder: Path) -> None:
    stock = ModelStock(folder, "http://127.0.0.1:1", "http://127.0.0.1:1")
    with pytest.raises(ModelError, match=r"127.0.0.1:1 cannot be reached .*copy a GGUF file here") as caught:
        await pull(stock, f"hf.co/{REPO}")
    assert caught.value.kind == "unreachable"


async def test_the_users_token_is_for_the_hub_alone(stock: ModelStock, hub: FakeHub, folder: Path) -> None:
    await pull(stock, f"hf.co/{REPO}")
    assert {headers.get("authorization") for _, _, headers in hub.asked} == {"Bearer hf_secret_of_ours"}
    hub.asked.clear()
    elsewhere = ModelStock(folder / "other", "", "http://localhost:9", "hf_secret_of_ours")
    await pull(elsewhere, hub.address(Q4))
    assert hub.asked and not any("authorization" in headers for _, _, headers in hub.asked)


async def test_two_who_pull_the_same_do_not_write_over_each_other(stock: ModelStock, hub: FakeHub) -> None:
    async with aclosing(stock.pull(f"hf.co/{REPO}")) as steps:
        async for step in steps:
            if step.completed:
                break
        with pytest.raises(ModelError, match="is being pulled already") as caught:
            await pull(stock, f"hf.co/{REPO}")
    assert caught.value.kind == "busy"


async def test_a_model_is_found_by_its_name_its_file_and_its_path(
    stock: ModelStock, folder: Path, tmp_path: Path
) -> None:
    await pull(stock, f"hf.co/{REPO}")
    for name in ("tiny-Q4_K_M", Q4, str(folder / Q4)):
        assert (await stock.find(name)).path == folder / Q4
    (tmp_path / "text.gguf").write_text("no model")
    odd = ("~nobody-of-that-name/x.gguf", "x" * 400 + ".gguf", "x\0y.gguf", "/dev/null/x.gguf", "gone.gguf")
    for name, says in (("other", "is not here; there are: tiny-Q4_K_M"), *((name, "there is no file") for name in odd)):
        with pytest.raises(NoSuchModel, match=says) as refused:
            await stock.find(name)
        assert refused.value.kind == "model_missing"
    with pytest.raises(NoSuchModel, match="is no GGUF file"):
        await stock.find(str(tmp_path / "text.gguf"))

"""The models that can answer here: GGUF files in a folder, and what Ollama has; and how further ones come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from local.errors import ModelError, NoSuchModel
from local.models.hub.gguf_download import GgufDownload
from local.models.hub.hub import Hub
from local.models.hub.hub_reference import HubReference
from local.models.hub.model_folder import ModelFolder, model_at
from local.models.ollama import OllamaModel

ANSWER_SECONDS = 5.0
SILENCE_SECONDS = 300.0  # a registry may be slow, and checking a large file says nothing for minutes
FOLDER = "models"
NO_OLLAMA = "Ollama is not asked: its address in the settings is not allowed, as `local2 doctor` says"

StockKind = Literal["ollama", "llama_server"]


@dataclass(frozen=True, slots=True)
class StockedModel:
    """A model that is here. `size` in bytes where it is known, `path` of its GGUF file where it has one."""

    name: str
    kind: StockKind
    size: int | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class PullStep:
    """How far a pull is: `status` in words, bytes `completed` of `total` where they are known."""

    status: str
    completed: int | None = None
    total: int | None = None


class ModelStock:
    """Looks and fetches in one place for both kinds of model. Every failure is a `ModelError`."""

    def __init__(
        self,
        folder: Path,
        ollama_url: str,
        hub_url: str,
        hub_token: str = "",
        used: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        """`used` gives the GGUF files that the settings name, wherever they are."""
        self.folder, self._used = ModelFolder(folder), used
        self._ollama_url, self._hub_url, self._hub_token = ollama_url, hub_url, hub_token

    async def models(self) -> tuple[list[StockedModel], str]:
        """All that is here, and a sentence for a person where Ollama could not be asked, else an empty one."""
        files = {model.path.resolve(): model for model in self.folder.models()}
        for path in self._used():
            if path.is_file():
                files.setdefault(path.resolve(), model_at(path))
        found = [StockedModel(model.name, "llama_server", model.size, model.path) for model in files.values()]
        if not self._ollama_url:
            return found, NO_OLLAMA
        ollama = self._ollama()
        try:
            pulled = await ollama.pulled()
        except ModelError as error:
            return found, str(error)
        finally:
            await ollama.close()
        return [*found, *(StockedModel(name, "ollama", size) for name, size in pulled.items())], ""

    async def find(self, name: str) -> StockedModel:
        """A model that is here, by its name or the path of its file. Raises `NoSuchModel` (model_missing)."""
        file = self.folder.find(name)
        if file is not None:
            return StockedModel(file.name, "llama_server", file.size, file.path)
        if name.lower().endswith(".gguf") or name.startswith((".", "/", "~")):
            raise NoSuchModel(f"there is no file {name}, here or in {self.folder.path}", kind="model_missing")
        models, note = await self.models()
        for model in models:
            if name == model.name or f"{name}:latest" == model.name:
                return model
        there = ", ".join(model.name for model in models[:10]) or "none"
        unknown = f"model {name} is not here; there are: {there}. `local2 model pull {name}` gets it"
        raise NoSuchModel(f"{unknown} ({note})" if note else unknown, kind="model_missing")

    def require_name(self, name: str) -> None:
        """Raises `NoSuchModel` (bad_name) for what nothing could be pulled by."""
        if not name.strip() or any(character.isspace() for character in name.strip()):
            text = f"{name!r} is no name of a model, such as gemma4:12b or hf.co/OWNER/NAME"
            raise NoSuchModel(text, kind="bad_name")
        HubReference.parse(name)

    async def pull(self, name: str) -> AsyncGenerator[PullStep, None]:
        """Fetch a model: a GGUF file by what `HubReference.parse` understands, else one of Ollama's by its name."""
        self.require_name(name)
        reference = HubReference.parse(name)
        steps = self._from_ollama(name.strip()) if reference is None else self._from_hub(reference)
        async with aclosing(steps):
            async for step in steps:
                yield step

    async def _from_ollama(self, name: str) -> AsyncGenerator[PullStep, None]:
        if not self._ollama_url:
            raise ModelError(NO_OLLAMA, kind="unreachable")
        ollama = self._ollama()
        try:
            async with aclosing(ollama.pull(name)) as steps:
                async for step in steps:
                    total, completed = step.get("total"), step.get("completed")
                    known = total if isinstance(total, int) and total > 0 else None
                    there = completed if isinstance(completed, int) else 0
                    yield PullStep(str(step.get("status", "")), there if known else None, known)
        except ModelError as error:
            if error.kind != "unreachable":
                raise
            instead = "without Ollama, pull a GGUF file: `local2 model pull hf.co/OWNER/NAME`"
            raise ModelError(f"{error}; {instead}", kind=error.kind) from error
        finally:
            await ollama.close()

    async def _from_hub(self, reference: HubReference) -> AsyncGenerator[PullStep, None]:
        hub = Hub(self._hub_url, self._hub_token)
        try:
            yield PullStep(f"looking for {reference.repo or reference.url}")
            for file in await hub.files(reference):
                target = self.folder.path / file.name
                if target.is_file() and file.size == target.stat().st_size:
                    yield PullStep(f"{file.name} is here already", file.size, file.size)
                    continue
                async with aclosing(GgufDownload(hub, file, target).run()) as amounts:
                    async for completed, total in amounts:
                        yield PullStep(f"pulling {file.name}", completed, total)
            yield PullStep("success")
        finally:
            await hub.close()

    def _ollama(self) -> OllamaModel:
        return OllamaModel(
            self._ollama_url,
            first_token_seconds=ANSWER_SECONDS * 6,
            between_tokens_seconds=SILENCE_SECONDS,
            timeout_seconds=ANSWER_SECONDS,
        )

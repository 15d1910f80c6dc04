"""Models on this machine, and how further ones are pulled: GGUF files of the Hugging Face Hub, a mirror or any address,
and models of Ollama.

A file is downloaded to `<name>.<identity>.part` beside its target, under a lock, and renamed when its size and SHA-256
are right: so a model is whole or not there, and an interrupted pull is resumed. The package huggingface_hub would do a
part of this: it installs 17 MB and 300 files, has no asynchronous calls, takes no plain addresses, and does not compare
checksums.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, Self
from urllib.parse import quote, unquote, urlsplit

import httpx

from local.core.errors import ModelError, NoSuchModel
from local.core.files import Backoff
from local.models.ollama import OllamaModel
from local.models.settings import is_loopback


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a hub, as the hub describes it. `name` is that of the file alone; `size` in bytes and `sha256` in
    hexadecimal digits are known if the hub reports them.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str = ""


HOSTS = ("hf.co", "huggingface.co", "www.huggingface.co")
SUFFIX = ".gguf"
_NAME = r"[A-Za-z0-9][\w.-]*"
_REPO = re.compile(rf"({_NAME}/{_NAME})(?::([\w.-]+))?")
_FILE = re.compile(rf"({_NAME}/{_NAME})/(?:(?:resolve|blob)/([\w.-]+)/)?((?:[\w.+ -]+/)*[\w.+ -]+{SUFFIX})", re.I)


@dataclass(frozen=True, slots=True)
class HubReference:
    """A user's name for a GGUF file elsewhere: a `url`, or a `repo` ("owner/name") with a `file` in it or else a
    `quant` such as Q4_K_M, if any.
    """

    repo: str = ""
    file: str = ""
    quant: str = ""
    revision: str = "main"
    url: str = ""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse `hf.co/owner/repo[:quant]`, `owner/repo/file.gguf`, the address of either, or that of a GGUF file
        elsewhere.

        None for other names, such as Ollama's. Raises `NoSuchModel` for an address without a GGUF.
        """
        text = text.strip()
        scheme, separator, rest = text.partition("://")
        host, _, path = (rest if separator else text).partition("/")
        path = unquote(path.partition("?")[0].rstrip("/"))
        if host.lower() in HOSTS:
            return cls._in_hub(path, text)
        if separator:
            return cls._elsewhere(text, scheme.lower(), path)
        if found := _FILE.fullmatch(text):
            return cls(repo=found[1], revision=found[2] or "main", file=found[3])
        return None

    @classmethod
    def _in_hub(cls, path: str, text: str) -> Self:
        if found := _FILE.fullmatch(path):
            return cls(repo=found[1], revision=found[2] or "main", file=found[3])
        if found := _REPO.fullmatch(path.removesuffix("/tree/main")):
            return cls(repo=found[1], quant=found[2] or "")
        wanted = "hf.co/OWNER/NAME, hf.co/OWNER/NAME:Q4_K_M or hf.co/OWNER/NAME/FILE.gguf"
        raise NoSuchModel(f"{text!r} names no repository: expected {wanted}", kind="bad_name")

    @classmethod
    def _elsewhere(cls, text: str, scheme: str, path: str) -> Self:
        url = urlsplit(text)
        if scheme not in ("http", "https") or not url.hostname or not path.lower().endswith(SUFFIX):
            wanted = f"https://HOST/PATH{SUFFIX}"
            raise NoSuchModel(
                f"{url.hostname or 'that'} is no address of a GGUF file: expected {wanted}", kind="bad_name"
            )
        return cls(url=text)


SECONDS = 30.0  # of silence
OFFLINE = "without a network, copy a GGUF file here and say `local2 model use FILE`"
_PREFERRED = ("Q4_K_M", "Q4_K_S", "Q4_0", "Q5_K_M", "Q8_0")
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.I)


class Hub:
    """A client of one hub, with the user's `token` if there is one, which is sent to that hub alone.

    Every failure is a `ModelError`: unreachable, model_missing, unauthorised, or bad_stream.
    """

    def __init__(self, base_url: str, token: str = "") -> None:
        self._url = base_url.rstrip("/")
        self._token = token
        self.client = httpx.AsyncClient(
            timeout=SECONDS, follow_redirects=True, verify=True, trust_env=not is_loopback(self._url)
        )

    async def close(self) -> None:
        """Close every connection."""
        await self.client.aclose()

    async def files(self, reference: HubReference) -> tuple[HubFile, ...]:
        """The file that is meant, or all parts of a model that is split, in order."""
        if reference.url:
            return (HubFile(unquote(PurePosixPath(urlsplit(reference.url).path).name), reference.url),)
        entries = await self._tree(reference)
        there = {str(entry["path"]): entry for entry in entries if str(entry.get("path", "")).lower().endswith(SUFFIX)}
        if reference.file:
            chosen = reference.file if reference.file in there else ""
        else:
            chosen = _choose([path for path in there if "mmproj" not in path.lower()], reference.quant)
        if not chosen:
            wanted = reference.file or reference.quant or "GGUF file"
            names = ", ".join(sorted(there)[:10]) or "no GGUF file"
            raise ModelError(f"{reference.repo} has no {wanted}; there is: {names}", kind="model_missing")
        return tuple(self._file(reference, there[path]) for path in _parts(chosen, there))

    def headers_for(self, url: str) -> dict[str, str]:
        """Return the headers of a request to an address."""
        own = self._token and urlsplit(url).netloc == urlsplit(self._url).netloc
        return {"Authorization": f"Bearer {self._token}"} if own else {}

    async def _tree(self, reference: HubReference) -> list[dict[str, Any]]:
        path = f"/api/models/{reference.repo}/tree/{quote(reference.revision, safe='')}"
        url = f"{self._url}{path}?recursive=true"
        try:
            response = await self.client.get(url, headers=self.headers_for(url))
        except httpx.HTTPError as error:
            raise unreachable(url, error) from error
        if response.status_code != httpx.codes.OK:
            raise refused(response, reference.repo)
        try:
            entries = response.json()
        except ValueError:
            entries = None
        if not isinstance(entries, list):
            host = urlsplit(url).netloc
            raise ModelError(f"{host} answers something that is no list of files: is it a hub?", kind="bad_stream")
        return [entry for entry in entries if isinstance(entry, dict)]

    def _file(self, reference: HubReference, entry: dict[str, Any]) -> HubFile:
        path, large = str(entry["path"]), entry.get("lfs")
        digest = str(large.get("oid", "")) if isinstance(large, dict) else ""
        size = entry.get("size")
        url = f"{self._url}/{reference.repo}/resolve/{quote(reference.revision, safe='')}/{quote(path)}"
        known = digest if re.fullmatch(r"[0-9a-f]{64}", digest) else ""
        return HubFile(PurePosixPath(path).name, url, size if isinstance(size, int) else None, known)


def unreachable(url: str, error: Exception) -> ModelError:
    """Return the error that no answer came in time."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    why = str(error) or type(error).__name__
    return ModelError(f"{host} cannot be reached ({why}); {OFFLINE}", kind="unreachable")


def refused(response: httpx.Response, what: str) -> ModelError:
    """Return the error for a hub's refusal."""
    host, status = response.url.host, response.status_code
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        how = f"look at https://{host}/{what}, accept its terms, and set HF_TOKEN to a token of yours"
        return ModelError(
            f"{host} gives {what} only to some, or has no such thing: {how}", kind="unauthorised", status=status
        )
    if status == httpx.codes.NOT_FOUND:
        return ModelError(f"{host} has no {what}; look for its name there", kind="model_missing", status=status)
    return ModelError(f"{host} answers {status} for {what}; try again later", kind="server_error", status=status)


def _choose(paths: Sequence[str], quant: str) -> str:
    """The path for a quantisation; without one, of those that fit most machines the first, else any."""
    first = sorted(filter(_is_first, paths))
    for wanted in (quant,) if quant else _PREFERRED:
        form = re.compile(rf"(?<![A-Z0-9_]){re.escape(wanted)}(?![A-Z0-9_])", re.I)
        if found := next((path for path in first if form.search(path)), ""):
            return found
    return "" if quant else next(iter(first), "")


def _parts(chosen: str, there: dict[str, Any]) -> list[str]:
    names = _names_of_parts(chosen)
    missing = [name for name in names if name not in there]
    if missing:
        raise ModelError(f"the hub lacks a part of {chosen}: {missing[0]}", kind="model_missing")
    return names


def _names_of_parts(first: str) -> list[str]:
    """The names of all parts of a model by that of its first file; of one that is not split, that name."""
    part = _PART.fullmatch(first)
    if part is None:
        return [first]
    return [f"{part[1]}-{number:05d}-of-{part[3]}{SUFFIX}" for number in range(1, int(part[3]) + 1)]


MAGIC = b"GGUF"


StockKind = Literal["ollama", "llama_server"]


@dataclass(frozen=True, slots=True)
class StockedModel:
    """A model on this machine. `size` in bytes if it is known, `path` of its GGUF file, or of the first of several, if
    it has one."""

    name: str
    kind: StockKind
    size: int | None = None
    path: Path | None = None


class ModelFolder:
    """The folder of pulled GGUF files. All methods look at the disk; a folder that does not exist has no models."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def models(self) -> list[StockedModel]:
        """The models in the folder, by name."""
        files = sorted(self.path.glob(f"*{SUFFIX}")) if self.path.is_dir() else []
        return [model_at(file) for file in files if file.is_file() and _is_first(file.name)]

    def find(self, name: str) -> StockedModel | None:
        """Return a model by its name, with `.gguf` or without; or by the path of a file anywhere. None if there is
        none.

        Raises `NoSuchModel` for a file that is not GGUF.
        """
        for model in self.models():
            if name in (model.name, f"{model.name}{SUFFIX}"):
                return model
        try:
            path = Path(name).expanduser()
            if not path.is_file():
                return None
        except (OSError, RuntimeError):  # the path is too long, not accessible, or in an unknown home directory
            return None
        require_gguf(path)
        return model_at(path.resolve())


def model_at(path: Path) -> StockedModel:
    """Return the model whose file, or first part, this is."""
    parts = [path, *(path.with_name(name) for name in _names_of_parts(path.name)[1:])]
    size = sum(part.stat().st_size for part in parts if part.is_file())
    return StockedModel(path.stem, "llama_server", size, path)


def _is_first(path: str) -> bool:
    """Whether a file begins a model: it is the first part, or the only one."""
    part = _PART.fullmatch(path)
    return part is None or int(part[2]) == 1


def require_gguf(path: Path) -> None:
    """Raises `NoSuchModel` for a file that does not begin like a GGUF file, or cannot be read."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(MAGIC))
    except OSError as error:
        raise NoSuchModel(f"{path} cannot be read: {error.strerror}", kind="model_missing") from None
    if begin != MAGIC:
        raise NoSuchModel(f"{path} is no GGUF file: it does not begin with {MAGIC.decode()}", kind="bad_model")


CHUNK_BYTES = 1024 * 1024
SPARE_BYTES = 256 * 1024 * 1024  # left free for everything else that is kept
_FULL = (errno.ENOSPC, errno.EDQUOT)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two attempts
TRIES = 5  # one after the other without a byte


class GgufDownload:
    """The download of one file to `target`. Until the file is complete and matches the hub's description, it is stored
    beside it as `<name>.<identity>.part`, and another attempt resumes there.
    """

    def __init__(self, hub: Hub, file: HubFile, target: Path) -> None:
        self._hub, self._file, self._target = hub, file, target
        self._digest = hashlib.sha256()

    async def run(self) -> AsyncGenerator[tuple[int, int | None], None]:
        """Yields how many bytes are there, and of how many. Raises `ModelError`: unreachable, model_missing,
        unauthorised, disk_full, unwritable, checksum, bad_model or busy."""
        size, identity = self._file.size, self._file.sha256[:12]
        if not identity:
            size, identity = await self._look()
        part = self._target.with_name(f"{self._target.name}.{identity}.part")
        with _opened(part) as file:
            done = await asyncio.to_thread(self._take_up, file)
            self._require_room(size, done)
            yield done, size
            pauses, tries = Backoff(FIRST_PAUSE, LONGEST_PAUSE), 0
            while size is None or done < size:
                before, failure = done, None
                try:
                    async for there in self._fetch(file, before, size):
                        done = there
                        yield done, size
                    size = size if size is not None else done
                except httpx.HTTPError as error:
                    failure = error
                tries = 0 if done > before else tries + 1
                if tries >= TRIES:
                    raise unreachable(self._file.url, failure or EOFError("it sends nothing")) from failure
                if done != size:
                    await asyncio.sleep(pauses.next() if done == before else FIRST_PAUSE)
            await asyncio.to_thread(self._finish, file, part, done)

    async def _look(self) -> tuple[int | None, str]:
        """Return size and identity of a file that no hub describes, from its server's headers."""
        try:
            answer = await self._hub.client.head(self._file.url, headers=self._hub.headers_for(self._file.url))
        except httpx.HTTPError as error:
            raise unreachable(self._file.url, error) from error
        if not answer.is_success:
            raise refused(answer, self._file.name)
        length = answer.headers.get("Content-Length", "")
        said = "|".join(answer.headers.get(name, "") for name in ("ETag", "Last-Modified")) + length
        return (int(length) if length.isdigit() else None), hashlib.sha256(said.encode()).hexdigest()[:12]

    def _take_up(self, file: BinaryIO) -> int:
        """Read the part that an earlier attempt has left; returns its size."""
        file.seek(0)
        while data := file.read(CHUNK_BYTES):
            self._digest.update(data)
        return file.tell()

    def _require_room(self, size: int | None, done: int) -> None:
        free = shutil.disk_usage(self._target.parent).free
        missing = (size or done) - done
        if missing and missing + SPARE_BYTES > free:
            needed = f"{self._file.name} needs {missing / 1e9:.1f} GB more, and {free / 1e9:.1f} GB are free"
            raise ModelError(f"{needed} at {self._target.parent}; make room and pull it again", kind="disk_full")

    async def _fetch(self, file: BinaryIO, done: int, size: int | None) -> AsyncGenerator[int, None]:
        """The rest of the file, piece by piece; yields how much is there after each."""
        headers = {**self._hub.headers_for(self._file.url), "Accept-Encoding": "identity"}
        if done:
            headers["Range"] = f"bytes={done}-"
        async with self._hub.client.stream("GET", self._file.url, headers=headers) as answer:
            if not answer.is_success:
                raise refused(answer, self._file.name)
            if done and answer.status_code != httpx.codes.PARTIAL_CONTENT:  # it sends only the whole file
                done = await asyncio.to_thread(self._restart, file)
            async for data in answer.aiter_bytes(CHUNK_BYTES):
                done += len(data)
                if size is not None and done > size:
                    raise ModelError(f"{self._file.name} is longer than the hub says: {size} bytes", kind="checksum")
                await asyncio.to_thread(self._write, file, data)
                yield done

    def _restart(self, file: BinaryIO) -> int:
        file.seek(0)
        file.truncate()
        self._digest = hashlib.sha256()
        return 0

    def _write(self, file: BinaryIO, data: bytes) -> None:
        if file.tell() == 0 and not data.startswith(MAGIC):
            raise ModelError(f"{self._file.url} is no GGUF file: it does not begin with GGUF", kind="bad_model")
        rest = memoryview(data)
        try:
            while rest:
                written = file.write(rest)
                self._digest.update(rest[:written])
                rest = rest[written:]
        except OSError as error:
            kind = "disk_full" if error.errno in _FULL else "unwritable"
            advice = "what is there is kept; make room and pull it again"
            raise ModelError(f"{self._target.parent}: {error.strerror}; {advice}", kind=kind) from None

    def _finish(self, file: BinaryIO, part: Path, done: int) -> None:
        if done == 0:
            raise ModelError(f"{self._file.url} is empty", kind="bad_model")
        if self._file.sha256 and self._digest.hexdigest() != self._file.sha256:
            part.unlink()
            found = f"its SHA-256 is {self._digest.hexdigest()[:12]}…, not {self._file.sha256[:12]}…"
            raise ModelError(f"{self._file.name} did not arrive as it is: {found}; pull it again", kind="checksum")
        os.fsync(file.fileno())
        part.replace(self._target)


@contextmanager
def _opened(part: Path) -> Iterator[BinaryIO]:
    """The file to write to, held by this process alone."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
    except BlockingIOError:
        raise ModelError(f"{part.name} is being pulled already; wait for it", kind="busy") from None
    except OSError as error:
        kind = "disk_full" if error.errno in _FULL else "unwritable"
        raise ModelError(f"{part} cannot be written: {error.strerror}", kind=kind) from None


ANSWER_SECONDS = 5.0
SILENCE_SECONDS = 300.0  # a registry may be slow, and checking a large file is silent for minutes
FOLDER = "models"
NO_OLLAMA = "Ollama is not asked: its address in the settings is not allowed, as `local2 doctor` says"


@dataclass(frozen=True, slots=True)
class PullStep:
    """The progress of a pull: `status` in words, and the bytes `completed` of `total` if they are known."""

    status: str
    completed: int | None = None
    total: int | None = None


class ModelStock:
    """The models of this machine, of both kinds: it lists them, finds them and pulls further ones. Every failure is a
    `ModelError`."""

    def __init__(
        self,
        folder: Path,
        ollama_url: str,
        hub_url: str,
        hub_token: str = "",
        used: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        """`used` returns the GGUF files that the settings name, wherever they are."""
        self.folder, self._used = ModelFolder(folder), used
        self._ollama_url, self._hub_url, self._hub_token = ollama_url, hub_url, hub_token

    async def models(self) -> tuple[list[StockedModel], str]:
        """Return all available models, and a sentence for a person if Ollama could not be asked, else an empty one."""
        files = {model.path.resolve(): model for model in self.folder.models() if model.path}
        for path in self._used():
            if path.is_file():
                files.setdefault(path.resolve(), model_at(path))
        found = list(files.values())
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
            return file
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
        """Raise `NoSuchModel` (bad_name) for a name by which nothing could be pulled."""
        if not name.strip() or any(character.isspace() for character in name.strip()):
            text = f"{name!r} is no name of a model, such as gemma4:12b or hf.co/OWNER/NAME"
            raise NoSuchModel(text, kind="bad_name")
        HubReference.parse(name)

    async def pull(self, name: str) -> AsyncGenerator[PullStep, None]:
        """Fetch a model: a GGUF file by a name that `HubReference.parse` understands, else one of Ollama's by
        its name.
        """
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

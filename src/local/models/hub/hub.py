"""The Hugging Face Hub, or a mirror of it: which files a repository has, and where they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from local.errors import ModelError
from local.models.hub.hub_file import HubFile
from local.models.hub.hub_reference import SUFFIX, HubReference
from local.models.server_address import is_loopback

SECONDS = 30.0  # of silence
OFFLINE = "without a network, copy a GGUF file here and say `local2 model use FILE`"
_PREFERRED = ("Q4_K_M", "Q4_K_S", "Q4_0", "Q5_K_M", "Q8_0")
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.I)


class Hub:
    """Asks one hub, with the user's `token` where there is one; it is shown to that hub and to nobody else.

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
        """What goes with a request to an address."""
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
    """Nobody answers, or not in time."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    why = str(error) or type(error).__name__
    return ModelError(f"{host} cannot be reached ({why}); {OFFLINE}", kind="unreachable")


def refused(response: httpx.Response, what: str) -> ModelError:
    """The answer of a hub that does not give what it was asked for."""
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
    first = [path for path in sorted(paths) if not (part := _PART.fullmatch(path)) or int(part[2]) == 1]
    for wanted in (quant,) if quant else _PREFERRED:
        form = re.compile(rf"(?<![A-Z0-9_]){re.escape(wanted)}(?![A-Z0-9_])", re.I)
        if found := next((path for path in first if form.search(path)), ""):
            return found
    return "" if quant else next(iter(first), "")


def _parts(chosen: str, there: dict[str, Any]) -> list[str]:
    part = _PART.fullmatch(chosen)
    if part is None:
        return [chosen]
    paths = [f"{part[1]}-{number:05d}-of-{part[3]}{SUFFIX}" for number in range(1, int(part[3]) + 1)]
    missing = [path for path in paths if path not in there]
    if missing:
        raise ModelError(f"the hub lacks a part of {chosen}: {missing[0]}", kind="model_missing")
    return paths

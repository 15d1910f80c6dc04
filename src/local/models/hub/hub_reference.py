"""What a user calls a GGUF file that lies elsewhere: a repository of a hub, a file in one, or an address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote, urlsplit

from local.errors import NoSuchModel

HOSTS = ("hf.co", "huggingface.co", "www.huggingface.co")
SUFFIX = ".gguf"
_NAME = r"[A-Za-z0-9][\w.-]*"
_REPO = re.compile(rf"({_NAME}/{_NAME})(?::([\w.-]+))?")
_FILE = re.compile(rf"({_NAME}/{_NAME})/(?:(?:resolve|blob)/([\w.-]+)/)?((?:[\w.+ -]+/)*[\w.+ -]+{SUFFIX})", re.I)


@dataclass(frozen=True, slots=True)
class HubReference:
    """Either `url` is given, or `repo` ("owner/name") with `file` in it or else a `quant`, such as Q4_K_M, if any."""

    repo: str = ""
    file: str = ""
    quant: str = ""
    revision: str = "main"
    url: str = ""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """`hf.co/owner/repo[:quant]`, `owner/repo/file.gguf`, the address of either, or that of a GGUF file elsewhere.

        None for what is none of these, such as a name of Ollama's. Raises `NoSuchModel` for an address without a GGUF.
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

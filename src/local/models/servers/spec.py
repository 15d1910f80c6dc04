"""What it takes to run a model server, decided before anything is started. Imports next to nothing."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from local.config_models import Provider
from local.environment import is_set
from local.errors import ConfigError
from local.models.servers.gguf_header import context_length

PACKAGE = "xllamacpp"
INSTALL = "`local2 model try` installs it with a small model; or pip install xllamacpp"
CONTEXT_TOKENS = 32_000  # or what the model has, if that is less
# The tokens that a server reads before it can stop: about two seconds of a small model on a busy processor. A graphics
# card reads more in that time, and is faster with more.
BATCH_TOKENS, GPU_BATCH_TOKENS = 64, 512
_GPUS = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")
CACHE_MIB = 1024  # for prompts of conversations that wait for their next question
_CACHE = "--cache-ram"
_NO_DEBUGGER = {"GGML_NO_BACKTRACE": "1"}  # else it has one look at it before it dies
_WAIT_POLICY = {"OMP_WAIT_POLICY": "passive"}  # its idle threads leave the processor to others


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A server to run: `command` with `variables` added to the environment. It listens at `url`, answers GET
    `health_path` with 200 once it can be used, and gets `start_seconds` until then. `minimum_build` is llama-server's.
    """

    name: str
    command: tuple[str, ...]
    url: str
    health_path: str
    start_seconds: float
    variables: Mapping[str, str] = field(default_factory=dict)
    minimum_build: int | None = None

    @property
    def program(self) -> str:
        """What runs, for a person."""
        return f"the package {PACKAGE}" if self.command[0] == sys.executable else self.command[0]

    @property
    def cache_mib(self) -> str:
        """How much memory llama-server may use for prompts that it has read, in MiB; empty where it is not said."""
        value = ""
        for option, following in zip(self.command, (*self.command[1:], ""), strict=True):
            name, equals, same = option.partition("=")
            if name in (_CACHE, "-cram"):
                value = same if equals else following
        return value


def ollama_spec(name: str, program: str, url: str) -> ServerSpec:
    """Ollama, to listen at the address where we look for it. It loads models when they are asked for."""
    return ServerSpec(
        name, (program, "serve"), url, "/api/version", start_seconds=30, variables={"OLLAMA_HOST": urlsplit(url).netloc}
    )


def llama_server_spec(name: str, provider: Provider) -> ServerSpec:
    """llama-server with its one model, on a port that is free now. The owner's `args` come last, so they override ours.
    Raises `ConfigError` for what is missing."""
    program, model = require_program(name, provider), require_model(name, provider)
    is_package = program[-1].endswith(f"{PACKAGE}_server.py")  # of which it tells no build
    port = provider.port or _free_port()
    command = (
        *program, "--model", str(model), "--alias", model.stem, "--host", "127.0.0.1", "--port", str(port),
        *_our_args(model, provider.args, is_package=is_package), *provider.args,
    )  # fmt: skip
    return ServerSpec(
        name,
        command,
        f"http://127.0.0.1:{port}",
        "/health",
        start_seconds=provider.start_seconds,
        variables=(_NO_DEBUGGER if is_package else {}) | ({} if is_set("OMP_WAIT_POLICY") else _WAIT_POLICY),
        minimum_build=None if is_package else provider.minimum_build,
    )


def _our_args(model: Path, args: Sequence[str], *, is_package: bool) -> tuple[str, ...]:
    context = min(CONTEXT_TOKENS, context_length(model) or CONTEXT_TOKENS)
    ours = ("--jinja", "--ctx-size", str(context), _CACHE, str(CACHE_MIB))
    if not {"--embedding", "--embeddings"}.isdisjoint(args):  # a text has to fit into one batch
        return ours
    has_gpu = sys.platform == "darwin" or (not is_package and any(Path(device).exists() for device in _GPUS))
    batch = str(GPU_BATCH_TOKENS if has_gpu else BATCH_TOKENS)
    return (*ours, "--batch-size", batch, "--ubatch-size", batch)


def require_program(name: str, provider: Provider) -> tuple[str, ...]:
    """How llama-server is started: the program that is named, else the one on the path, else the package `xllamacpp`.
    Raises `ConfigError`."""
    program = provider.program or "llama-server"
    found = shutil.which(str(Path(program).expanduser()))
    if found is not None:
        return (found,)
    if provider.program is None and importlib.util.find_spec(PACKAGE):
        return (sys.executable, "-I", str(Path(__file__).with_name(f"{PACKAGE}_server.py")))
    where = "install llama.cpp (https://github.com/ggml-org/llama.cpp), or say where it is"
    package = "" if provider.program else f"get the package that brings it ({INSTALL}), "
    raise ConfigError(f"there is no program {program}: {package}{where} with providers.{name}.program in models.yaml")


def require_model(name: str, provider: Provider) -> Path:
    """The file with the model. Raises `ConfigError`."""
    key = f"providers.{name}.model in models.yaml"
    if provider.model is None:
        raise ConfigError(f"llama-server needs a model: write the path of a GGUF file as {key}")
    if not provider.model.is_file():
        raise ConfigError(f"there is no file {provider.model}; correct {key}")
    return provider.model


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port

"""Checks of every used model server: whether it answers, has the needed models, and whether those have the needed
capabilities.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import httpx
import psutil

from local.api.server import listen
from local.cli.bus_health import health_on_bus
from local.cli.main import sized, visible
from local.core.config import Settings, SystemConfig, layers_for, load, load_system
from local.core.config_file import name_in
from local.core.data_dir import RunDirectory, RunInfo
from local.core.environment import Environment, environment, secret
from local.core.environment import data_dir as find_data_dir
from local.core.errors import (
    ConfigError,
    LocalError,
    ModelError,
    NoSuchModel,
    StoreDamaged,
    StoreFailed,
    without_passwords,
)
from local.core.routing import Endpoint, ModelsConfig, Provider
from local.core.secrets import SecretStore, named_secrets, with_secrets
from local.core.setup import PythonEnvironment
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.models.chat import ModelInfo
from local.models.hub import model_at, require_gguf
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from local.models.servers import llama_server_spec
from local.models.settings import is_loopback, load_models, ollama_url
from local.run.backend import google_endpoint, may_stand_in, openai_endpoint, used_providers
from local.run.overrides import with_mcp_servers
from local.run.participant import SECRETS, find_class

if TYPE_CHECKING:  # optional capabilities: removed ones are not checked
    from local.memory.service import Condition
    from local.web.search import WebSearchConfig

# The result of a check, as text or, with all others, as JSON.


class FindingStatus(StrEnum):
    """The severity of a finding. `WARN`: the system works, but with less than it was configured for."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check: `text` describes the state, `fix` what to do about it."""

    name: str
    status: FindingStatus
    text: str
    fix: str = ""

    def __post_init__(self) -> None:
        """Mask passwords in addresses."""
        for name in ("text", "fix"):
            object.__setattr__(self, name, without_passwords(getattr(self, name)))


def ok(name: str, text: str) -> DoctorFinding:
    """A finding that all is well."""
    return DoctorFinding(name, FindingStatus.OK, text)


def warn(name: str, text: str, fix: str) -> DoctorFinding:
    """A finding that something is missing that the system can do without."""
    return DoctorFinding(name, FindingStatus.WARN, text, fix)


def fail(name: str, text: str, fix: str) -> DoctorFinding:
    """A finding that something does not work."""
    return DoctorFinding(name, FindingStatus.FAIL, text, fix)


def worst(findings: Sequence[DoctorFinding]) -> FindingStatus:
    """The worst status of all findings."""
    return max((finding.status for finding in findings), key=list(FindingStatus).index, default=FindingStatus.OK)


def as_line(finding: DoctorFinding) -> str:
    """A finding as text."""
    text = visible(" ".join(finding.text.split()))
    fix = f"; to fix it: {finding.fix}" if finding.fix else ""
    return f"{finding.status:<5} {finding.name:<15} {text}{fix}"


def as_total(findings: Sequence[DoctorFinding]) -> str:
    """The number of findings of each status, as text."""
    counted = Counter(finding.status for finding in findings)
    return ", ".join(f"{counted[status]} {status}" for status in FindingStatus)


def findings_as_json(findings: Sequence[DoctorFinding]) -> str:
    """{"status", "findings": [{"name", "status", "text", "fix"}]}, on one line."""
    return json.dumps({"status": worst(findings), "findings": [asdict(finding) for finding in findings]})


# The inputs of the checks: the settings of this installation, and the system on its data directory.

M = TypeVar("M", bound=Settings)

_ROLES = {"critic": "critic", "memory": "fast"}  # the role in which each asks for its model
EMBEDDING_MODEL = "nomic-embed-text"
EDIT = "correct it; comments in the packaged file explain each key"


@dataclass(frozen=True, slots=True)
class ObserverModels:
    """The own models of observers, by participant, as its settings name them, and the embedding model."""

    models: Mapping[str, str] = field(default_factory=dict)
    embedding: str = EMBEDDING_MODEL

    def at(self, provider: str, config: ModelsConfig, *, is_default: bool) -> ObserverModels:
        """Only the models of one provider: written as `provider/model`, or as a mere model of the default one."""
        found = {}
        for who, name in self.models.items():
            named, slash, model = name.partition("/")
            if slash and named in config.providers:
                if named == provider:
                    found[who] = model
            elif is_default:
                found[who] = name
        return replace(self, models=found)


@dataclass(frozen=True, slots=True)
class Installation:
    """The settings and state that the checks examine. `configs` holds the settings of every participant that could be
    read, by its class's name. `running` contains the facts of the system on this data directory, if one runs.
    """

    data_dir: Path
    system: SystemConfig = field(default_factory=SystemConfig)
    models: ModelsConfig = field(default_factory=ModelsConfig)
    configs: Mapping[str, Settings] = field(default_factory=dict)
    running: RunInfo | None = None

    @property
    def generator(self) -> GeneratorConfig:
        """The generator's settings, or the defaults."""
        return self._config(GeneratorAgent.name, GeneratorConfig) or GeneratorConfig()

    @property
    def web_search(self) -> WebSearchConfig | None:
        """The settings of web_search, if it takes part."""
        found: WebSearchConfig | None = self.configs.get("web_search")  # type: ignore[assignment] # as its class says
        return found

    @property
    def runs_commands(self) -> bool:
        """Whether the tools take part that run commands."""
        return "shell" in self.configs

    @property
    def secrets(self) -> Mapping[str, str]:
        """The name of each secret that the settings name, by the participant or file and the key that does."""
        keys = {f"models: providers.{name}.api_key": each.api_key for name, each in self.models.providers.items()}
        named = {where: name_in(key) for where, key in keys.items() if key}
        for participant, config in self.configs.items():
            named |= {f"{participant}: {place}": name for place, name in named_secrets(config)}
        return {where: name for where, name in named.items() if name}

    @property
    def observers(self) -> ObserverModels:
        """Return the models of all participants except the generator that no chain in models.yaml names."""
        named = {name: getattr(config, "model", None) for name, config in self.configs.items()}
        chained = {name for name, role in _ROLES.items() if getattr(self.models.roles, role)}
        own = {name: model for name, model in named.items() if model and name not in chained | {GeneratorAgent.name}}
        return ObserverModels(own, getattr(self.configs.get("memory"), "embedding_model", None) or EMBEDDING_MODEL)

    def _config(self, name: str, kind: type[M]) -> M | None:
        config = self.configs.get(name)
        return config if isinstance(config, kind) else None


def examine_installation(
    config_dir: Path | None, data_dir: Path, variables: Environment
) -> tuple[Installation, list[DoctorFinding]]:
    """Read all settings as the participants would, and report their faults; unreadable ones get the defaults."""
    findings: list[DoctorFinding] = []
    system, models, layers = SystemConfig(), ModelsConfig(), list[Path]()
    try:
        layers = layers_for(config_dir)
        system = with_mcp_servers(load_system(layers, {}, variables), layers)
        models = load_models(layers)
    except LocalError as error:
        findings.append(fail("settings", str(error), EDIT))
    configs: dict[str, Settings] = {}
    for entry in system.participants:
        try:
            name, config = _load(entry.target, entry.config, layers, system.python_path, variables)
            configs[name] = config
        except LocalError as error:
            findings.append(fail("settings", str(error), EDIT))
    if not findings:
        text = f"system.yaml, models.yaml and {len(configs)} participants, from {', '.join(map(str, layers))}"
        findings.append(ok("settings", text))
    return Installation(data_dir, system, models, configs, _running(data_dir)), findings


def _load(
    target: str,
    overrides: Mapping[str, Any],
    layers: Sequence[Path],
    python_path: tuple[Path, ...],
    variables: Environment,
) -> tuple[str, Settings]:
    kind = find_class(target, python_path)
    secrets = {key: getattr(variables, key) for key in SECRETS if key in kind.Config.model_fields}
    return kind.name, load(kind.settings or kind.name, kind.Config, layers, {**secrets, **overrides})


def _running(data_dir: Path) -> RunInfo | None:
    """Return the facts of the running system; a killed system leaves its facts behind, so its process is checked."""
    try:
        facts = RunDirectory(data_dir).read()
    except (LocalError, OSError):  # no system runs, or the check of the run directory reports the error
        return None
    return facts if psutil.pid_exists(facts.pid) else None


# Checks of this machine: Python, packages, data directory, disk, damaged stores, run directory, port of the API.

# The packages of each process and of the set-up, by import name.
PACKAGES = (
    "anyio", "bs4", "charset_normalizer", "chromadb", "cronsim", "fastapi", "h11", "httpx", "httpx2", "idna",
    "jsonschema", "lxml", "lxml_html_clean", "markdown_it", "mcp", "nacl", "numpy", "ollama", "pathspec",
    "platformdirs", "prompt_toolkit", "psutil", "pydantic", "pydantic_core", "pypdf", "rich", "ruamel.yaml",
    "setproctitle", "starlette", "threadpoolctl", "tld", "tokenizers", "trafilatura", "tree_sitter", "tree_sitter_c",
    "tree_sitter_go", "tree_sitter_java", "tree_sitter_javascript", "tree_sitter_python", "tree_sitter_rust",
    "tree_sitter_typescript", "typer", "tzdata", "uvicorn", "yaml", "zmq",
)  # fmt: skip
OLDEST_PYTHON = (3, 11)
WARN_FREE_BYTES = 2 * 1024**3
FAIL_FREE_BYTES = 200 * 1024**2
SOCKET_PATH_BYTES = 107  # sun_path of unix(7), without its final NUL
REINSTALL = (
    f"remove the folder {sys.prefix} and start again, which installs everything"
    if PythonEnvironment().is_checkout
    else "install the package local2-assistant again"
)
DELETE = "check its content and then delete it: LoCAL2 no longer reads it, and deletions do not reach it"


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> DoctorFinding:
    """Python 3.11 or newer."""
    text = f"Python {'.'.join(map(str, version))} in {sys.prefix}"
    if version[:2] < OLDEST_PYTHON:
        return fail("python", text, "install Python 3.11 or newer and start again with it")
    return ok("python", text)


def check_packages(names: Sequence[str] = PACKAGES) -> DoctorFinding:
    """Every package we need can be imported, not merely found."""
    broken = [f"{name} ({reason})" for name in names if (reason := _import_failure(name))]
    if broken:
        return fail("packages", f"cannot be imported: {', '.join(broken)}", REINSTALL)
    return ok("packages", f"all {len(names)} can be imported")


def check_secrets(data_dir: Path, named: Mapping[str, str]) -> list[DoctorFinding]:
    """Check that each secret named in the settings exists and can be opened; `named` has the names by place."""
    name, store = "secrets", SecretStore(data_dir)
    findings = []
    for where, key in named.items():
        try:
            store.get(key)
        except ConfigError as error:
            findings.append(fail(name, f"{where}: {error}", f"local2 secret set {key}"))
    return findings or [
        ok(name, f"{len(store.all())} stored in {store.folder}; all {len(named)} named in settings exist")
    ]


def _import_failure(name: str) -> str:
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - a damaged package can fail with anything
        return str(error) or type(error).__name__
    return ""


def check_data_dir(data_dir: Path) -> DoctorFinding:
    """The data directory can be written to, or can be made."""
    place = _nearest(data_dir)
    fix = "make it writable for this user, or choose another with --data-dir or LOCAL2_DATA_DIR"
    if not place.is_dir():
        return fail("data directory", f"{place} is not a directory", fix)
    if place != data_dir:
        if os.access(place, os.W_OK | os.X_OK):
            return ok("data directory", f"{data_dir} will be made at the first start")
        return fail("data directory", f"{data_dir} cannot be made inside {place}", fix)
    try:
        tempfile.TemporaryFile(dir=data_dir).close()
    except OSError as error:
        return fail("data directory", f"{data_dir} cannot be written to: {error.strerror}", fix)
    return ok("data directory", str(data_dir))


def check_disk(data_dir: Path, free: int | None = None) -> DoctorFinding:
    """Free space where the data is kept; `free` in bytes is measured if not given."""
    free = shutil.disk_usage(_nearest(data_dir)).free if free is None else free
    text = f"{free / 1024**3:.1f} GB free at {data_dir}"
    fix = "free some space, or choose another place with --data-dir"
    if free < FAIL_FREE_BYTES:
        return fail("disk", text, fix)
    return warn("disk", text, fix) if free < WARN_FREE_BYTES else ok("disk", text)


def check_run_directory(data_dir: Path) -> DoctorFinding:
    """The bus's sockets have a private place with a path that is short enough."""
    name = "run directory"
    try:
        path = RunDirectory(data_dir).path
    except LocalError as error:
        return fail(name, str(error), "remove it; the next start creates a new one")
    size = len(os.fsencode(path / "pub"))
    if size > SOCKET_PATH_BYTES:
        text = f"{path}: a socket in it has a path of {size} bytes, at most {SOCKET_PATH_BYTES} are possible"
        return fail(name, text, "set TMPDIR to a folder with a shorter path")
    return ok(name, str(path))


def check_damage(data_dir: Path) -> DoctorFinding | list[DoctorFinding]:
    """Return one warning for each folder into which a start has moved a damaged store."""
    folders = sorted(data_dir.glob("*.damaged-*"))
    if not folders:
        return ok("damage", "no damaged store was found")
    return [warn("damage", f"{folder}: {_what_happened(folder)}", DELETE) for folder in folders]


def _what_happened(folder: Path) -> str:
    """Return the content of the report beside the damaged file, if there is a readable one."""
    try:
        report = json.loads((folder / "report.json").read_text())
        ranges = [f"{first} to {last}" for first, last in report["in_doubt"]]
        return f"{report['reason']}; {'in doubt: ' + ', '.join(ranges) if ranges else 'no message was lost'}"
    except (OSError, ValueError, TypeError, LookupError):
        return "a damaged store, without a report that could be read"


def check_port(system: SystemConfig, running: RunInfo | None) -> DoctorFinding:
    """The port of the API is free, or our own system listens on it."""
    port = system.api_port
    if running is not None and running.api_url and urlsplit(running.api_url).port == port:
        return ok("api port", f"{port} is used by our own system (process {running.pid})")
    try:
        listen(system.api_host, port).close()
    except ConfigError as error:
        return fail("api port", str(error), "stop the other program, or set api_port in system.yaml")
    return ok("api port", f"{port} is free" if port else "a free port is chosen")


def _nearest(path: Path) -> Path:
    """The path, or the nearest of its parents that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


SECONDS = 2.0
SERVER = "model server"
_NAMED_IN = {"generator_b": "--model-b or system.yaml"}  # for those without a page of their own


async def check_model_servers(
    system: SystemConfig,
    generator: GeneratorConfig,
    models: ModelsConfig | None = None,
    observers: ObserverModels = ObserverModels(),
    secret_of: Callable[[str], str] = str,
) -> list[DoctorFinding]:
    """Return the findings on the servers and their models; checks that depend on a failed one are left out."""
    if system.backend == "stand_in":
        return [ok(SERVER, "the stand-in, as set by backend in system.yaml; it is not a language model")]
    models = models or ModelsConfig()
    findings: list[DoctorFinding] = []
    for place, name in enumerate(used_providers(system, models)):
        wanted = models.named_at(name)
        if place == 0 and not models.roles.chat:
            wanted = (generator.model, *wanted)
        try:
            own = observers.at(name, models, is_default=place == 0)
            findings += await _check(name, wanted, own, system, generator, models, secret_of)
        except NoSuchModel as error:
            findings.append(fail(SERVER, str(error), "choose another file with `local2 model use FILE.gguf`"))
        except ConfigError as error:
            findings.append(fail(SERVER, str(error), "correct it in models.yaml, system.yaml or the environment"))
    return findings


async def _check(
    name: str,
    wanted: Sequence[str],
    observers: ObserverModels,
    system: SystemConfig,
    generator: GeneratorConfig,
    models: ModelsConfig,
    secret_of: Callable[[str], str],
) -> list[DoctorFinding]:
    provider = models.providers[name]
    match provider.kind:
        case "ollama":
            url = ollama_url(system, models, name)
            stand_in = may_stand_in(system, models)
            local = provider.model_copy(update={"start": provider.start and is_loopback(url)})
            return await check_ollama(url, local, wanted, generator, observers, stand_in=stand_in)
        case "openai":
            return await _check_openai(
                name, with_secrets(openai_endpoint(name, provider), "models", secret_of), wanted, observers
            )
        case "google_genai":
            return await _check_openai(
                name, with_secrets(google_endpoint(provider), "models", secret_of), wanted, observers
            )
        case "llama_server":
            return check_llama_server(name, provider)


def check_llama_server(name: str, provider: Provider) -> list[DoctorFinding]:
    """Check the program, the model's file, and the memory that it needs. Raises `ConfigError` if one is missing."""
    spec = llama_server_spec(name, provider)
    assert provider.model is not None
    require_gguf(provider.model)
    size, free = model_at(provider.model).size or 0, psutil.virtual_memory().available
    needed = f"{sized(size)} and its context ({_context_of(spec.command)})"
    cache = f"up to {spec.cache_mib} MiB of memory keep the prompts that it has read (--cache-ram)"
    findings = [ok(SERVER, f"{spec.program} with {provider.model}; LoCAL2 starts it; {cache}")]
    text = f"the model takes {needed} of {sized(free)} of free memory"
    if size > free:
        fix = "choose a smaller one (`local2 model list`), or end other programs before the start"
        return [*findings, warn("model memory", text, fix)]
    return [*findings, ok("model memory", text)]


def _context_of(command: Sequence[str]) -> str:
    *_, last = (value for option, value in pairwise(command) if option in ("--ctx-size", "-c"))  # the owner's overrides
    return "as many tokens as the model can hold" if last == "0" else f"{last} tokens"


async def _check_openai(
    name: str, endpoint: Endpoint, wanted: Sequence[str], observers: ObserverModels
) -> list[DoctorFinding]:
    key = endpoint.key or (secret(endpoint.api_key_variable) if endpoint.api_key_variable else "")
    server = OpenAIModel(
        endpoint.url,
        first_token_seconds=SECONDS,
        between_tokens_seconds=SECONDS,
        timeout_seconds=SECONDS,
        api_key=key,
    )
    try:
        listed = await server.models()
        findings = [ok(SERVER, f"{name} at {endpoint.url}")]
        for model in wanted:
            findings.append(await _check_listed_model(server, model, listed))
        return [*findings, *check_observers(observers, listed)]
    except ModelError as error:
        return [fail(SERVER, str(error), f"start it, or correct providers.{name} in models.yaml")]
    finally:
        await server.close()


async def _check_listed_model(server: OpenAIModel, model: str, listed: Sequence[str]) -> DoctorFinding:
    try:
        info = await server.show(model)
    except ModelError as error:
        if error.kind != "model_missing":
            raise
        text = f"{model} is not available; available are: {', '.join(listed[:10]) or 'none'}"
        return fail("model", text, "name another in generator.yaml or models.yaml")
    return ok("model", f"{model} is available; its abilities: {', '.join(sorted(info.capabilities)) or 'unknown'}")


async def check_ollama(
    url: str,
    provider: Provider,
    wanted: Sequence[str],
    generator: GeneratorConfig,
    observers: ObserverModels,
    *,
    stand_in: bool,
) -> list[DoctorFinding]:
    """Check the server at an address and its `wanted` models. `stand_in`: without the server the stand-in answers."""
    server = OllamaModel(url, first_token_seconds=SECONDS, between_tokens_seconds=SECONDS, timeout_seconds=SECONDS)
    try:
        version = await server.version()
        pulled = await server.models()
        findings = [ok(SERVER, f"Ollama {version} at {url}")]
        for model in wanted:
            findings += await _check_ollama_model(server, model, generator, pulled)
        return [*findings, *check_observers(observers, pulled), check_embeddings(observers, pulled)]
    except ModelError as error:
        return [_no_server(provider, error, stand_in)]
    finally:
        await server.close()


def _no_server(provider: Provider, error: ModelError, stand_in: bool) -> DoctorFinding:
    program = shutil.which(provider.program or "ollama")
    if error.kind == "unreachable" and provider.start and program:
        return ok(SERVER, f"Ollama is not running; LoCAL2 starts {program}")
    fix = "install Ollama (https://ollama.com), start it with 'ollama serve', or set ollama_url or OLLAMA_HOST"
    if stand_in:
        fix = f"run `local2 model try` for a very small model without Ollama, or {fix}"
        return warn(SERVER, f"{error}. Until then the stand-in answers, which is not a language model", fix)
    return fail(SERVER, str(error), fix)


async def _check_ollama_model(
    server: OllamaModel, model: str, generator: GeneratorConfig, pulled: Sequence[str]
) -> list[DoctorFinding]:
    try:
        info = await server.show(model)
    except ModelError as error:
        if error.kind != "model_missing":
            return [fail("model", str(error), "restart Ollama; its log says why")]
        text = f"{model} is not pulled; available are: {', '.join(pulled) or 'none'}"
        return [fail("model", text, f"ollama pull {model}, or name another in generator.yaml or models.yaml")]
    if "embedding" in info.capabilities:
        return [ok("model", f"{model} is pulled; it embeds texts")]
    return [check_abilities(info, generator), check_context(info, generator)]


def check_abilities(info: ModelInfo, generator: GeneratorConfig) -> DoctorFinding:
    """The model can call tools, and think if that is wanted."""
    missing = [ability for ability in ("tools", "thinking") if ability not in info.capabilities]
    if not generator.think and "thinking" in missing:
        missing.remove("thinking")
    if missing:
        text = f"{info.name} is pulled, but lacks: {', '.join(missing)}; it answers without"
        return warn("model", text, "choose another model in generator.yaml, such as gemma4:12b")
    return ok("model", f"{info.name} is pulled; its abilities: {', '.join(sorted(info.capabilities))}")


def check_context(info: ModelInfo, generator: GeneratorConfig) -> DoctorFinding:
    """The model's context holds what `num_ctx` asks for, in tokens."""
    if info.context_length is None:
        return ok("context", f"num_ctx {generator.num_ctx}; the server does not say what {info.name} can hold")
    text = f"num_ctx {generator.num_ctx} of the {info.context_length} tokens that {info.name} can hold"
    if info.context_length < generator.num_ctx:
        return warn("context", text, f"set num_ctx in generator.yaml to at most {info.context_length}")
    return ok("context", text)


def check_observers(observers: ObserverModels, there: Sequence[str]) -> list[DoctorFinding]:
    """The observers' own models are among those that are `there`."""
    return [_check_observer(who, model, there) for who, model in observers.models.items()]


def check_embeddings(observers: ObserverModels, there: Sequence[str]) -> DoctorFinding:
    """Check the embedding model; it is optional, because one is bundled."""
    model = observers.embedding
    if _is_among(model, there):
        return ok("embeddings", f"{model} is pulled")
    return ok("embeddings", f"{model} is not pulled; optional, with 'ollama pull {model}'")


def _check_observer(who: str, model: str, there: Sequence[str]) -> DoctorFinding:
    if _is_among(model, there):
        return ok(who, f"{model} is there")
    text = f"{model} is not available, so {who} has no model; available are: {', '.join(there[:10]) or 'none'}"
    place = _NAMED_IN.get(who, f"{who}.yaml")
    return warn(who, text, f"get it, as with 'ollama pull {model}', or name another in {place}")


def _is_among(model: str, there: Sequence[str]) -> bool:
    """Whether a server has a model: to a server, a name without a tag is that of the latest."""
    return model in there or f"{model}:latest" in there


# Checks of participants: the running system's health, the memory with its embedding model, the search providers.

RESTART = "stop it with Ctrl-C or SIGTERM and start it again; its log says why"
MEND = "fix the reported problem; LoCAL2 retries automatically, and the log has details"
MEMORY = "memory"


async def check_health(running: RunInfo | None, data_dir: Path | None = None) -> list[DoctorFinding]:
    """Check the running system, over HTTP or else on the bus of `data_dir`; one additional finding per participant
    that does not serve.
    """
    name = "running system"
    if running is None:
        return [ok(name, "none on this data directory; start one with `local2 run`")]
    who = f"process {running.pid}, {running.api_url or 'without an HTTP API'}"
    try:
        health = await _health(running.api_url, data_dir)
    except (httpx.HTTPError, ValueError, LocalError) as error:
        reason = str(error) or type(error).__name__
        return [fail(name, f"process {running.pid} does not answer at {running.api_url}/health: {reason}", RESTART)]
    if health is None:
        return [ok(name, who)]
    status = health.get("status") if isinstance(health, dict) else None
    if status == "ok":
        return [ok(name, f"{who}, model server {running.model_backend}")]
    told = "; ".join(problems(health)) if isinstance(health, dict) else ""
    failures = check_participants(health) if isinstance(health, dict) else []
    return [warn(name, f"{who}, says it is {status}{told and f': {told}'}", RESTART), *failures]


async def _health(api_url: str | None, data_dir: Path | None) -> Any:
    """Return the health; None if the system cannot be asked. Raises `httpx.HTTPError`, `ValueError`, `LocalError`."""
    if api_url is None:
        return None if data_dir is None else await health_on_bus(data_dir)
    async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
        return (await client.get(f"{api_url}/health")).json()


def check_participants(health: Mapping[str, Any]) -> list[DoctorFinding]:
    """Return the participants that do not serve, with the reason: a failure for one that was given up, else a
    warning.
    """
    found = []
    for participant in health.get("participants", ()):
        name, state = participant["name"], participant.get("state", "ready")
        why = f": {detail}" if (detail := participant.get("detail")) else ""
        if state == "failed":
            found.append(fail(name, f"{name} has failed{why}", MEND))
        elif state != "ready":
            found.append(warn(name, f"{name} is {state}{why}", "wait a moment and look again"))
    return found


def problems(health: Mapping[str, Any]) -> list[str]:
    """Return the problems of the whole system, and those that participants report themselves, such as the second
    respondent's missing model.
    """
    whole = [health["problem"]] if health.get("problem") else []
    said = [
        f"{participant['name']}: {text}"
        for participant in health.get("participants", ())
        for name, text in participant.get("details", {}).items()
        if name.endswith("problem")
    ]
    return list(dict.fromkeys(whole + said))


async def check_memory(installation: Installation) -> list[DoctorFinding]:
    """The store of the memory and the bundled embedding model, if the memory takes part."""
    if MEMORY not in installation.configs:
        return [ok(MEMORY, "memory does not take part")]
    from local.memory.agent import DIRECTORY

    store = await asyncio.to_thread(check_store, installation.data_dir / DIRECTORY)
    return [store, await check_bundled_model()]


def check_store(directory: Path) -> DoctorFinding:
    """The store can be read and is sound."""
    from local.memory.service import examine

    try:
        condition = examine(directory)
    except StoreDamaged as error:
        fix = f"stop the system and move {directory} away; without a backup its content is lost"
        return fail(MEMORY, str(error), fix)
    except StoreFailed as error:
        return fail(MEMORY, str(error), f"make {directory} and its content readable for this user")
    if condition is None:
        return ok(MEMORY, "the memory is empty")
    return ok(MEMORY, f"{directory} is sound; exchanges: {condition.engrams}; {_index(condition)}")


def _index(condition: Condition) -> str:
    if condition.pending:
        return f"{condition.pending} of them are still to be embedded"
    return "all of them are embedded"


async def check_bundled_model(directory: Path | None = None) -> DoctorFinding:
    """The embedding model that needs no model server works: it embeds something."""
    from local.memory.agent import try_bundled_model

    name = "bundled model"
    try:
        model = await try_bundled_model(directory)
    except (ModelError, ImportError) as error:
        text = f"{error}; without an embedding model on the model server, memories are found only by their words"
        is_fetched = getattr(error, "kind", "") == "model_missing" and not PythonEnvironment().is_checkout
        return warn(name, text, "start LoCAL2 with a network" if is_fetched else REINSTALL)
    return ok(name, f"{model} embeds if no model server does")


async def check_search(config: WebSearchConfig | None) -> list[DoctorFinding]:
    """Return one finding for each provider; one that cannot search is only a warning if another can, or if none is
    chosen yet."""
    if config is None:
        return [ok("search", "web_search is not among the participants")]
    from local.web.search import AUTO

    names = dict.fromkeys([config.provider, *config.fallback_providers])
    findings = soften([await _check_provider(name, config) for name in names])
    if config.provider != AUTO or findings[0].status is FindingStatus.OK:
        return findings
    fix = "choose one on the page, in the settings of web search, or set provider in web_search.yaml"
    return [warn("search", "no search engine is chosen", fix), *findings[1:]]


def soften(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    """The findings, with failures as warnings if one provider works."""
    if all(finding.status is FindingStatus.FAIL for finding in findings):
        return list(findings)
    return [replace(f, status=FindingStatus.WARN) if f.status is FindingStatus.FAIL else f for f in findings]


async def _check_provider(provider: str, config: WebSearchConfig) -> DoctorFinding:
    match provider:
        case "searxng" | "auto":
            return await check_searxng(config.searxng_url)
        case "brave" | "tavily":
            return _check_key(provider, config)
        case "ddgs":
            if importlib.util.find_spec("ddgs") is None:
                return fail("search", "ddgs: the package ddgs is not installed", "pip install ddgs")
            return ok("search", "ddgs: the package is installed")
        case "mock":
            return warn("search", "mock: returns fixed results only", "set provider in web_search.yaml")
    return fail("search", f"there is no provider {provider!r}", "set provider in web_search.yaml")


def _check_key(provider: str, config: WebSearchConfig) -> DoctorFinding:
    from local.web.search import key_problem

    if problem := key_problem(provider, config):
        return fail("search", f"{provider}: {problem}", "get a key from the provider and start again")
    return ok("search", f"{provider}: a key is set")


async def check_searxng(url: str) -> DoctorFinding:
    """Check that SearXNG answers, and in JSON. Without a query it answers 403 if JSON is disabled, else 400, and does
    not search (`search()` in https://github.com/searxng/searxng/blob/master/searx/webapp.py).
    """
    try:
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            answer = await client.get(f"{url.rstrip('/')}/search", params={"format": "json"})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        text = f"searxng: no answer at {url} ({str(error) or type(error).__name__})"
        fix = "start SearXNG, correct searxng_url, or choose another provider in web_search.yaml"
        return fail("search", text, fix)
    return judge_searxng(url, answer.status_code, answer.headers.get("content-type", ""))


def judge_searxng(url: str, status: int, content_type: str) -> DoctorFinding:
    """Interpret the HTTP status and content type of SearXNG's answer to an empty query."""
    if status in (200, 400) and "json" in content_type:
        return ok("search", f"searxng: answers in JSON at {url}")
    if status == 403:
        return fail("search", f"searxng: {url} refuses JSON", "add 'json' to search.formats in its settings.yml")
    if status == 429:
        fix = "allow this machine in its limiter.toml, or turn the limiter off"
        return fail("search", f"searxng: the limiter of {url} refuses LoCAL2", fix)
    text = f"searxng: the server at {url} is not SearXNG (HTTP {status})"
    return fail("search", text, "correct searxng_url in web_search.yaml: the address without /search")


def check_commands(takes_part: bool) -> DoctorFinding | list[DoctorFinding]:
    """The sandbox in which commands run, where commands are run at all."""
    if not takes_part:
        return []
    from local.shell.shell import sandbox_problem

    problem = sandbox_problem()
    if problem is None:
        return ok("commands", "they run in a sandbox")
    return warn("commands", f"the model cannot run commands: {problem.why}", problem.fix)


# Runs every check side by side and prints the findings; an error in a check is a finding, too.

EXIT_INTERRUPTED = 130
ASK_FOR_HELP = "please report this; it is a bug in the doctor"

Findings = DoctorFinding | list[DoctorFinding]
Tell = Callable[[Sequence[DoctorFinding]], None]


def run(*, config_dir: Path | None = None, data_dir: Path | None = None, as_json: bool = False) -> int:
    """Run all checks and print each finding as soon as it is known, or as JSON all of them at the end. Returns the exit
    status: 1 if a check fails, else 0.
    """
    tell = _in_silence if as_json else _print
    findings = asyncio.run(_until_interrupted(check_up(config_dir, find_data_dir(data_dir), tell)))
    print(findings_as_json(findings) if as_json else as_total(findings))  # noqa: T201
    return int(worst(findings) is FindingStatus.FAIL)


async def _until_interrupted(examination: Awaitable[list[DoctorFinding]]) -> list[DoctorFinding]:
    """Run the checks; Ctrl-C ends them at once, because a check in a thread would be waited for, and none has work to
    finish.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, os._exit, EXIT_INTERRUPTED)
    return await examination


async def check_up(config_dir: Path | None, data_dir: Path, tell: Tell) -> list[DoctorFinding]:
    """Return all findings in a fixed order; each was reported as soon as it was known. Takes little longer than the
    slowest check.
    """
    installation, settings = await asyncio.to_thread(examine_installation, config_dir, data_dir, environment())
    tell(settings)
    checks = _checks(installation, data_dir)
    found = await asyncio.gather(*(_safely(name, check, tell) for name, check in checks.items()))
    return settings + [finding for some in found for finding in some]


def _checks(installation: Installation, data_dir: Path) -> dict[str, Awaitable[Findings]]:
    models = check_model_servers(
        installation.system,
        installation.generator,
        installation.models,
        installation.observers,
        SecretStore(data_dir).get,
    )
    return {
        "python": asyncio.to_thread(check_python),
        "packages": asyncio.to_thread(check_packages),
        "data directory": asyncio.to_thread(check_data_dir, data_dir),
        "disk": asyncio.to_thread(check_disk, data_dir),
        "damage": asyncio.to_thread(check_damage, data_dir),
        "run directory": asyncio.to_thread(check_run_directory, data_dir),
        "api port": asyncio.to_thread(check_port, installation.system, installation.running),
        "running system": check_health(installation.running, data_dir),
        "model server": models,
        "secrets": asyncio.to_thread(check_secrets, data_dir, installation.secrets),
        "memory": check_memory(installation),
        "search": check_search(installation.web_search),
        "commands": asyncio.to_thread(check_commands, installation.runs_commands),
    }


async def _safely(name: str, check: Awaitable[Findings], tell: Tell) -> list[DoctorFinding]:
    try:
        found = await check
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a machine, the other checks continue
        found = fail(name, f"the check failed: {type(error).__name__}: {error}", ASK_FOR_HELP)
    findings = found if isinstance(found, list) else [found]
    tell(findings)
    return findings


def _print(findings: Sequence[DoctorFinding]) -> None:
    for finding in findings:
        print(as_line(finding), flush=True)  # noqa: T201


def _in_silence(findings: Sequence[DoctorFinding]) -> None:
    """All of them come at the end."""

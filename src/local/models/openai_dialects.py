"""How OpenAI-compatible servers differ: how each is recognised, and what it takes beyond OpenAI's own API. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from local.models.chat import Json, ModelInfo

# Ollama's name of an option, which our agents use, to OpenAI's.
_OPTIONS = {name: name for name in ("temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty")}
_SAMPLERS = {"top_k": "top_k", "min_p": "min_p"}
_LIMIT = {"num_predict": "max_tokens"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one kind of server takes.

    `thinks` and `thinks_not` are the fields that turn thinking on and off; without them the server decides. What the
    model thought goes back under `thinking_keys`. `names_tools`: a tool message may carry the tool's name.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=lambda: _OPTIONS | _LIMIT)
    thinks: Json = field(default_factory=dict)
    thinks_not: Json = field(default_factory=dict)
    thinking_keys: tuple[str, ...] = ()
    names_tools: bool = False
    progress: Json = field(default_factory=dict)  # the fields that ask for the progress of reading the prompt


_ON: Json = {"chat_template_kwargs": {"enable_thinking": True}}
_OFF: Json = {"chat_template_kwargs": {"enable_thinking": False}}

# A stranger gets nothing but what OpenAI's API has had from the beginning: strict servers refuse unknown fields.
UNKNOWN = Dialect("unknown")
OPENAI = Dialect("openai", options=_OPTIONS | {"num_predict": "max_completion_tokens"})
GOOGLE = Dialect("google", names_tools=True)
LLAMA_SERVER = Dialect(
    "llama-server",
    options=_OPTIONS | _LIMIT | _SAMPLERS | {"repeat_penalty": "repeat_penalty"},
    thinks=_ON,
    thinks_not=_OFF,
    thinking_keys=("reasoning_content",),
    names_tools=True,
    progress={"return_progress": True},
)
VLLM = Dialect(
    "vllm",
    options=_OPTIONS | _LIMIT | _SAMPLERS | {"repeat_penalty": "repetition_penalty"},
    thinks=_ON,
    thinks_not=_OFF,
    # Renamed from the first to the second in 2025.
    thinking_keys=("reasoning_content", "reasoning"),
    names_tools=True,
)
OPENROUTER = Dialect(
    "openrouter",
    options=_OPTIONS | _LIMIT | _SAMPLERS | {"repeat_penalty": "repetition_penalty"},
    thinks={"reasoning": {"enabled": True}},
    thinks_not={"reasoning": {"enabled": False}},
    thinking_keys=("reasoning",),
)
OLLAMA = Dialect(
    "ollama",
    thinks={"reasoning_effort": "medium"},
    thinks_not={"reasoning_effort": "none"},
    thinking_keys=("reasoning",),
    names_tools=True,
)
_BY_OWNER = {
    "llamacpp": LLAMA_SERVER,
    "vllm": VLLM,
    "library": OLLAMA,
    "google": GOOGLE,
    "openai": OPENAI,
    "system": OPENAI,
    "openai-internal": OPENAI,
}


@dataclass(frozen=True, slots=True)
class Known:
    """A model as its server describes it: no capabilities or no context length mean that the server does not say."""

    info: ModelInfo
    dialect: Dialect


def find(listed: list[Json], model: str) -> Json | None:
    """The entry of /v1/models for that name; Google puts `models/` before it, Ollama `:latest` after it."""
    names = (model, f"models/{model}", f"{model}:latest")
    return next((entry for name in names for entry in listed if entry.get("id") == name), None)


def known(model: str, entry: Json, props: Json) -> Known:
    """What an entry of /v1/models, and of llama-server the body of /props, say of a model."""
    if isinstance(entry.get("supported_parameters"), list):
        return _from_openrouter(model, entry)
    dialect = _BY_OWNER.get(str(entry.get("owned_by")), UNKNOWN)
    settings, meta = _object(props, "default_generation_settings"), _object(entry, "meta")
    lengths = (settings.get("n_ctx"), meta.get("n_ctx"), entry.get("max_model_len"), entry.get("context_length"))
    parameters = _first_number(meta.get("n_params"))
    size = None if parameters is None else parameters / 1e9
    return Known(ModelInfo(model, _llama_capabilities(props), _first_number(*lengths), size), dialect)


def _from_openrouter(model: str, entry: Json) -> Known:
    parameters = entry["supported_parameters"]
    offered = {"tools": "tools", "thinking": "reasoning"}
    capabilities = {"completion"} | {ours for ours, theirs in offered.items() if theirs in parameters}
    if "image" in (_object(entry, "architecture").get("input_modalities") or ()):
        capabilities.add("vision")
    length = _first_number(_object(entry, "top_provider").get("context_length"), entry.get("context_length"))
    return Known(ModelInfo(model, frozenset(capabilities), length), OPENROUTER)


def _llama_capabilities(props: Json) -> frozenset[str]:
    caps, template = _object(props, "chat_template_caps"), str(props.get("chat_template"))
    if not caps:
        return frozenset()
    has = {
        "completion": True,
        "tools": caps.get("supports_tools") is True,
        "vision": _object(props, "modalities").get("vision") is True,
        # Not said anywhere, but a template cannot turn on or off what it does not mention.
        "thinking": any(word in template for word in ("enable_thinking", "reasoning_content", "<think>")),
    }
    return frozenset(capability for capability, there in has.items() if there)


def _object(body: Json, key: str) -> Json:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def _first_number(*values: object) -> int | None:
    return next((value for value in values if isinstance(value, int) and value > 0), None)

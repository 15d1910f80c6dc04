"""The settings of the generator."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from local.core.config import BackendName, Settings
from local.core.config_file import suggestion
from local.core.web_url import netloc, parse_authority
from local.generator.steps import OUTPUT_BYTES, TurnLimits
from local.hooks.messages import HookSettings

DEFAULT_PROMPT = "default"
GUIDED_BELOW = 4.0  # billions of parameters; larger models could not be measured


class OfferSettings(Settings):
    """The settings under `offer`: tools that the model is offered beside those that fit its size, and tools that it is
    not."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class GeneratorConfig(Settings):
    """The settings in `generator.yaml`; the comments there explain each key."""

    agent_id: str = "GeneratorAgent"
    backend: BackendName | None = None  # overrides that of system.yaml
    model: str = "gemma4:12b"
    fast_model: str | None = None
    vision_model: str | None = None
    num_ctx: int = Field(32_000, ge=512)
    think: bool = True
    temperature: float | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0, lt=2**32)
    max_tool_iterations: int = Field(5, ge=0)
    max_acting_iterations: int = Field(20, ge=0)
    max_tool_calls: int = Field(50, ge=0)
    max_tool_output_bytes: int = Field(OUTPUT_BYTES, ge=1)
    max_offered_tools: int | None = Field(None, ge=1)
    offer: OfferSettings = OfferSettings()
    work_phases: bool = False
    max_answer_tokens: int = Field(8192, ge=1)
    timeout_seconds: float = Field(120, gt=0)
    tool_timeout_seconds: float = Field(30, gt=0)
    max_concurrent_turns: int = Field(128, ge=1)
    max_waiting_turns: int = Field(16, ge=0)
    incognito_minutes: float = Field(30, gt=0)
    always_readable: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()
    make_titles: bool = True
    tell_facts: bool = True
    recall_exchanges: int = Field(3, ge=0, le=3)
    guidance: Literal["auto", "always", "never"] = "auto"
    system_prompt: str | None = None  # nothing: the one for models of this size
    prompts: dict[str, str] = Field({})
    prompt: str = DEFAULT_PROMPT
    hooks: tuple[HookSettings, ...] = ()  # read from hooks.yaml, as other participants need it, too
    denied_tools: tuple[str | dict[str, tuple[str, ...]], ...] = ()  # read from gatekeeper.yaml

    @field_validator("always_readable")
    @classmethod
    def _are_hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(netloc(*parse_authority(entry)) for entry in entries)
        except ValueError as error:
            raise ValueError(f'{error}; expected "host" or "host:port"') from None

    @field_validator("prompt")
    @classmethod
    def _is_there(cls, name: str, info: ValidationInfo) -> str:
        known = {DEFAULT_PROMPT, *info.data.get("prompts", ())}
        if name not in known:
            raise ValueError(f"there is no prompt {name!r}; {suggestion(name, known)}")
        return name

    def guides(self, parameters: float | None) -> bool:
        """Whether a model with so many billions of parameters is guided; None is an unknown number."""
        is_small = parameters is not None and parameters < GUIDED_BELOW
        return self.guidance == "always" or (self.guidance == "auto" and is_small)

    @property
    def limits(self) -> TurnLimits:
        """Return the limits of one turn."""
        return TurnLimits(
            steps=self.max_tool_iterations,
            acting_steps=max(self.max_acting_iterations, self.max_tool_iterations),
            calls=self.max_tool_calls,
            output_bytes=self.max_tool_output_bytes,
        )

    @property
    def never_called(self) -> frozenset[str]:
        """The tools that are denied whatever they are called with, which have to be known before the gatekeeper is."""
        return frozenset(entry for entry in self.denied_tools if isinstance(entry, str))

    @property
    def model_options(self) -> dict[str, Any]:
        """Return the options of every call of the model, by Ollama's names."""
        sampling = {"temperature": self.temperature, "seed": self.seed}
        return {"num_ctx": self.num_ctx, **{name: value for name, value in sampling.items() if value is not None}}

    @property
    def instructions(self) -> str:
        """The text of the prompt that was chosen; empty for the one that is made for models of this size."""
        return self.prompts.get(self.prompt, self.system_prompt or "")

    @property
    def prompt_origin(self) -> str:
        """Return where that text is from."""
        return f"generator.yaml, prompts: {self.variant}" if self.variant else "generator.yaml"

    @property
    def variant(self) -> str:
        """The name of the prompt that was chosen; empty for the usual one."""
        return "" if self.prompt == DEFAULT_PROMPT else self.prompt

"""In what one respondent differs from another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from local.agents.answering.generator_config import GeneratorConfig
from local.agents.answering.prompt.standing_share import fitting
from local.config_models import Routing
from local.instructions.soul import soul_history
from local.instructions.standing_texts import StandingTextFiles
from local.runtime.participant import Resources


@dataclass(frozen=True, slots=True)
class RespondentPolicy:
    """In what one respondent differs from another: its id, the file of its record in the data directory, the `purpose`
    of its turns if no user waits for any, whether its model is loaded at the start, and whether the model that was
    configured is its own, so that none takes its place when it is not there."""

    respondent_id: str
    record: str
    purpose: str = ""
    loads_model: bool = True
    has_own_model: bool = False

    def texts(self, resources: Resources, window: int) -> StandingTextFiles | None:
        """What the owner has written for the prompts; the main respondent keeps the versions of the soul."""
        if not resources.layers:
            return None
        history = None if self.has_own_model else soul_history(resources.data_dir)
        fit = partial(fitting, window=window)
        return StandingTextFiles(resources.layers[-1], resources.workspace_folder, fit, history)

    def model(self, config: GeneratorConfig, resources: Resources, routing: Routing) -> str:
        """The name of the model that answers. Raises `ConfigError` if there is none."""
        if not self.has_own_model or config.model == resources.chat_model:
            return routing.first("chat", config.model)
        routing.locate(config.model)
        return config.model

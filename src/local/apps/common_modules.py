"""What the supervisor and the template both import: it is there before the one is forked from the other."""

from __future__ import annotations

import local.agents.answering.generator_config
import local.apps.participant
import local.config_mcp
import local.config_models
import local.models.stand_in.stand_in
import local.upkeep.missing  # noqa: F401 - as all these, imported for the pages it shares

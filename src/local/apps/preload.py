"""What the template process imports once for all children. No context and no event loop may come of it."""

from __future__ import annotations

import local.agents.arbiter
import local.agents.critic
import local.agents.generator
import local.agents.memory
import local.agents.reward
import local.apps.api.door
import local.apps.participant
import local.apps.processes
import local.tools.compare_answers
import local.tools.search_memory
import local.tools.web_fetch
import local.tools.web_search  # noqa: F401 - imported for the pages it shares

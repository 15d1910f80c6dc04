"""What a tool says of its own dangers."""

from typing import get_args

import pytest

from local.bus.messages import ToolSchema
from local.bus.vocabulary import Category, Safety
from local.core.config import load_system
from local.core.environment import Environment
from local.core.errors import ConfigError
from local.core.shipped import shipped_dir
from local.run.participant import find_class
from local.runtime.participant import Settingless
from local.tools.tool import Tool

SHIPPED = [
    find_class(entry.target) for entry in load_system([shipped_dir() / "config"], {}, Environment()).participants
]
TOOLS = [kind for kind in SHIPPED if issubclass(kind, Tool)]


class QuietTool(Tool):
    """A tool that says nothing of itself."""

    name = "quiet"

    async def run(self) -> str:
        return ""


def test_a_tool_that_says_nothing_of_its_dangers_has_the_highest_level() -> None:
    assert QuietTool(Settingless()).schema().safety == "L2"
    assert ToolSchema(tool="old", description="Of an older program.", parameters={}).safety == "L2"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_what_is_shipped_says_itself_how_dangerous_it_is(tool: type[Tool]) -> None:
    assert "safety" in vars(tool) and tool.safety in get_args(Safety)
    assert "category" in vars(tool) and tool.category in get_args(Category)


def test_a_tool_with_effects_cannot_say_that_it_only_reads() -> None:
    class TwoFacedTool(QuietTool):
        """It writes, and says it does not."""

        effect = "write"
        safety = "L0"

    with pytest.raises(ConfigError, match=r'the tool quiet changes something \(effect "write"\); safety "L0"'):
        TwoFacedTool(Settingless())

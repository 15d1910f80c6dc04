"""Commands as hooks: JSON in, JSON out, in the sandbox; and what is made of those that say nothing."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import SessionDeleted
from local.core.config import load
from local.core.errors import ConfigError
from local.generator.config import GeneratorConfig
from local.hooks.hooks import Hooks, HooksConfig
from local.hooks.messages import HookRequest, HookResult, HookSettings
from local.runtime.participant import Resources
from local.shell import shell

Serve = Callable[..., Awaitable[Any]]
SECONDS = 90.0
SCRIPT = """
import json, os, sys
told = json.loads(sys.stdin.readline())
try:
    open("made", "w")
except OSError as error:
    why = f"{told['event']} {told['data']['tool']} {told['session_id']}: {error.strerror}; {sorted(os.environ)[:1]}"
print(json.dumps({"decision": "deny", "why": why}))
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    if (problem := shell.sandbox_problem()) and not os.environ.get("CI"):
        pytest.skip(str(problem))
    folder = tmp_path / "settings"
    (folder / "hooks").mkdir(parents=True)
    (folder / "hooks" / "look.py").write_text(SCRIPT)
    return folder


def hooks_of(settings: Path, *hooks: dict[str, Any]) -> Hooks:
    config = HooksConfig(
        hooks=tuple(HookSettings.model_validate({"events": ["before_tool"], **hook}) for hook in hooks)
    )
    return Hooks.build(config, Resources(settings.parent / "data", layers=(settings.parent / "shipped", settings)))


async def test_a_command_is_told_what_is_to_be_done_and_says_no(serve: Serve, settings: Path) -> None:
    """It can write nothing, not even into the workspace."""
    hooks = hooks_of(
        settings,
        {"name": "look", "command": ["python3"], "script": "look.py"},
        {"name": "mute", "command": ["true"]},
        {"name": "babble", "command": ["echo", "yes"]},
        {"name": "gone", "command": ["python3"], "script": "gone.py"},
        {"name": "slow", "command": ["sleep", "60"], "seconds": 0.3},
    )
    bus = (await serve(hooks)).bus

    async def ask(name: str) -> HookResult:
        request = HookRequest(query_id="q", hook=name, event="before_tool", data={"tool": "pen", "args": {}})
        result: HookResult = await bus.request(request, HookResult, SECONDS, Trace("q", None, "s"))
        return result

    said = await ask("look")
    assert (said.decision, said.error) == ("deny", None)
    assert said.why == "before_tool pen s: Read-only file system; ['GIT_TERMINAL_PROMPT']"
    wrong = {name: (await ask(name)).error for name in ("mute", "babble", "gone", "slow")}
    assert {name: error.message for name, error in wrong.items() if error is not None} == {
        "mute": "it gave no answer: it has ended with 0",
        "babble": "its answer is not JSON with decision, why and data",
        "gone": "gone.py cannot be read: No such file or directory",
        "slow": "it gave no answer within 0.3 s",
    }


async def test_a_command_that_is_told_of_an_end_may_do_as_it_likes(
    serve: Serve, settings: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = hooks_of(settings, {"name": "ends", "events": ["session_end"], "command": ["false"]})
    caller = await serve(hooks)
    deleted = SessionDeleted(deleted_session_id="s")
    await hooks.on_session_deleted(deleted, caller.bus.seal(deleted))
    assert "the hook ends failed at session_end: it gave no answer: it has ended with 1" in caplog.text


@pytest.mark.parametrize(
    ("hook", "fault"),
    [
        ({"name": "A", "events": ["before_tool"]}, "name"),
        ({"name": "a", "events": []}, "events"),
        ({"name": "a", "events": ["whenever"]}, "events"),
        ({"name": "a", "events": ["before_tool"], "script": "x.py"}, "script needs the program that reads it"),
        ({"name": "a", "events": ["before_tool"], "command": ["sh"], "script": "../x"}, "script"),
        ({"name": "a", "events": ["session_end"]}, "are for commands"),
        ({"name": "a", "events": ["before_tool"], "seconds": 600}, "seconds"),
    ],
)
def test_settings_that_make_no_sense_are_told(hook: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        HookSettings.model_validate(hook)


def test_the_example_of_the_page_is_read_by_whoever_asks_and_by_whoever_answers(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "hooks.md").read_text("utf-8")
    (tmp_path / "hooks.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    [asked] = load("generator", GeneratorConfig, [tmp_path]).hooks
    [answering] = load("hooks", HooksConfig, [tmp_path]).hooks
    assert asked == answering
    assert (asked.name, asked.events, asked.script) == ("office-hours", ("before_tool",), "office_hours.py")


def test_each_hook_has_a_name_of_its_own(settings: Path) -> None:
    with pytest.raises(ConfigError, match="each hook has a name of its own"):
        hooks_of(settings, {"name": "a"}, {"name": "a"})

"""What becomes of a call that nobody has decided: the owner's lists, then the mode."""

from itertools import product
from typing import Any, get_args

import pytest

from local.bus.vocabulary import Category, Mode, Safety
from local.permissions.messages import PermissionDecision
from local.permissions.policy import GatekeeperConfig, JudgedCall, PermissionPolicy

ALLOW, ASK, DENY = PermissionDecision
OF_MODES = {  # by level
    "default": (ALLOW, ASK, ASK),
    "plan": (ALLOW, DENY, DENY),
    "acceptEdits": (ALLOW, ALLOW, ASK),
    "dontAsk": (ALLOW, DENY, DENY),
    "bypassPermissions": (ALLOW, ALLOW, ALLOW),
}


def call(tool: str = "pen", safety: Safety = "L2", category: Category = "write", **fields: Any) -> JudgedCall:
    return JudgedCall(tool, fields.pop("args", {}), safety, category, **fields)


def decision(policy: PermissionPolicy, *args: Any, **fields: Any) -> PermissionDecision:
    return policy.judge(call(*args, **fields)).decision


def policy(**settings: Any) -> PermissionPolicy:
    return GatekeeperConfig(**settings).policy()


def test_the_mode_decides_by_the_level() -> None:
    assert set(OF_MODES) == set(get_args(Mode))
    for mode, safety in product(OF_MODES, get_args(Safety)):
        made = decision(policy(may_bypass=True), safety=safety, mode=mode)
        assert made is OF_MODES[mode][int(safety[1])], (mode, safety)


@pytest.mark.parametrize(
    ("mode", "plan", "made"),
    [
        ("plan", None, (ALLOW, DENY, DENY)),
        ("plan", "default", (ALLOW, ASK, ASK)),
        ("plan", "acceptEdits", (ALLOW, ALLOW, ASK)),
        ("default", "acceptEdits", (ALLOW, ALLOW, ASK)),
        ("acceptEdits", "default", (ALLOW, ALLOW, ASK)),
        ("dontAsk", "acceptEdits", (ALLOW, DENY, DENY)),
    ],
)
def test_a_plan_that_is_approved_lets_the_rest_of_its_turn_ask(mode: Mode, plan: Any, made: Any) -> None:
    assert tuple(decision(policy(), safety=safety, mode=mode, plan=plan) for safety in get_args(Safety)) == made


def test_before_a_plan_is_approved_nobody_is_asked_about_what_the_rule_of_taint_refuses_but_what_reads() -> None:
    refused = {"mode": "plan", "tainted": True, "refusal": "Nobody has given that."}
    assert [decision(policy(), safety=safety, **refused) for safety in get_args(Safety)] == [ASK, DENY, DENY]


VECTOR = ["git", "status"]


@pytest.mark.parametrize(
    ("args", "made"),
    [
        ({"command": VECTOR}, ALLOW),
        ({"command": tuple(VECTOR)}, ALLOW),
        ({"command": [*VECTOR, "-s"]}, ASK),
        ({"command": ["git status"]}, ASK),
        ({"command": VECTOR, "network": True}, ASK),
        ({"command": [*VECTOR, 1]}, ASK),
        ({"command": "git status"}, ASK),
        ({}, ASK),
    ],
)
def test_of_a_tool_that_runs_commands_exact_arguments_are_allowed(args: Any, made: PermissionDecision) -> None:
    assert decision(policy(allowed_tools=[{"shell": VECTOR}]), "shell", args=args) is made


@pytest.mark.parametrize(
    ("args", "made"),
    [
        ({"command": VECTOR}, DENY),
        ({"command": VECTOR, "network": True}, DENY),
        ({"command": "  git 'status'"}, DENY),
        ({"command": "git 'status"}, ALLOW),
        ({"command": ["git", "log"]}, ALLOW),
    ],
)
def test_exact_arguments_are_denied_however_they_are_written(args: Any, made: PermissionDecision) -> None:
    owners = policy(denied_tools=[{"shell": VECTOR}], mode="bypassPermissions", may_bypass=True)
    assert decision(owners, "shell", args=args) is made


def test_with_words_of_strangers_before_the_model_what_could_be_undone_asks_too() -> None:
    assert decision(policy(), safety="L1", mode="acceptEdits", tainted=True) is ASK
    assert decision(policy(), safety="L0", mode="acceptEdits", tainted=True) is ALLOW


RUN_BY_OTHERS = """
    .venv/bin/activate sub/venv/lib/x.py lib/SiteCustomize.py site-packages/x.pth a.pth .github/workflows/ci.yml .npmrc
    .gitlab-ci.yml Jenkinsfile .envrc .bash_aliases .zprofile .kshrc .git/hooks/pre-commit .husky/pre-push .githooks/x
    .vscode/tasks.json .idea/runConfigurations/x.xml my.code-workspace .cargo/config.toml .pre-commit-config.yaml
    .gdbinit .lldbinit .netrc .config/git/config gradlew sub/gradlew.bat mvnw CLAUDE.md sub/AGENTS.md GEMINI.md
    .github/copilot-instructions.md /home/me/work/.bashrc ./.PROFILE .ba\u200bshrc node_modules/.bin/tsc
    .config/autostart/x.desktop
"""
ORDINARY = """
    notes.md src/app.py Makefile package.json pyproject.toml .gitignore .github/README.md tests/conftest.py
    environment.yml .env.example docs/profile.md bin/run.sh github/workflows.md .editorconfig settings/config.toml
    docs/agents/index.md git/notes.md build.gradle
"""


@pytest.mark.parametrize("path", [*RUN_BY_OTHERS.split(), *ORDINARY.split()])
def test_where_edits_are_accepted_what_other_programs_run_is_asked(path: str) -> None:
    for args in ({"path": path, "content": "x"}, {"paths": ["a.txt", path]}, {"file_name": path}):
        made = decision(policy(), "write_file", "L1", args=args, mode="acceptEdits")
        assert made is (ASK if path in RUN_BY_OTHERS.split() else ALLOW), args
    assert decision(policy(), "write_file", "L1", args={"path": path}, mode="plan", plan="acceptEdits") is made


def test_the_owner_names_more_files_that_other_programs_run() -> None:
    owners = policy(run_by_others=["deploy/*.sh"], mode="acceptEdits")
    args = [{"path": path} for path in ("x/deploy/now.sh", "deploy/now.txt", ".npmrc")]
    assert [decision(owners, safety="L1", args=each) for each in args] == [ASK, ALLOW, ASK]
    assert decision(owners, safety="L0", args=args[0]) is ALLOW


def test_with_words_of_strangers_before_the_model_an_allowed_tool_asks_and_exact_arguments_do_not() -> None:
    owners = policy(allowed_tools=["pen", {"shell": VECTOR}])
    assert decision(owners, tainted=True) is ASK
    assert decision(owners, "shell", args={"command": VECTOR}, tainted=True) is ALLOW


@pytest.mark.parametrize(
    ("mode", "made"),
    [("default", ASK), ("plan", ASK), ("acceptEdits", ASK), ("dontAsk", DENY), ("bypassPermissions", ALLOW)],
)
def test_what_the_rule_of_taint_refuses_is_asked_where_somebody_may_be(mode: Mode, made: PermissionDecision) -> None:
    owners = policy(may_bypass=True, allowed_tools=["web_fetch"])
    judged = owners.judge(call("web_fetch", "L0", "web", mode=mode, tainted=True, refusal="Nobody has given it."))
    assert judged.decision is made
    assert judged.why == "Nobody has given it."


@pytest.mark.parametrize("entry", ["", {}, {"a": ["b"], "c": ["d"]}, {"shell": []}])
def test_an_entry_that_says_nothing_is_refused_with_what_would_be_right(entry: Any) -> None:
    with pytest.raises(ValueError, match="expected a tool, or one with its arguments, as in shell_exec: "):
        GatekeeperConfig(denied_tools=[entry])


def test_a_hook_that_wants_to_have_it_decided_loosens_nothing() -> None:
    assert decision(policy(), "pen", "L0", mode="dontAsk", must_ask="why") is DENY
    assert decision(policy(), "pen", "L1", mode="plan", must_ask="why") is DENY
    assert decision(policy(denied_tools=("pen",)), "pen", "L0", must_ask="why") is DENY


def test_what_the_owner_lists_holds_in_every_mode_and_a_denial_is_above_it() -> None:
    denying = policy(denied_tools=["pen"], allowed_tools=["pen"], may_bypass=True)
    for mode in get_args(Mode):
        assert {decision(denying, safety=safety, mode=mode) for safety in get_args(Safety)} == {DENY}
        assert decision(policy(allowed_tools=["pen"]), mode=mode) is ALLOW
    assert decision(policy(allowed_tools=["pencil"])) is ASK
    for settings in ({"mode": "bypassPermissions"}, {}):
        assert decision(policy(**settings), mode="bypassPermissions") is ASK
        assert decision(policy(**settings, may_bypass=True), mode="bypassPermissions") is ALLOW


def test_what_a_hook_wants_to_have_decided_is_asked_whatever_else_allows_it() -> None:
    allowing = policy(may_bypass=True, allowed_tools=("pen", {"shell_exec": ["ls"]}))
    for mode, safety in product(("default", "acceptEdits", "bypassPermissions"), get_args(Safety)):
        assert decision(allowing, "pen", safety, mode=mode, must_ask="why") is ASK
        listed = {"args": {"command": ["ls"]}, "mode": mode}
        assert decision(allowing, "shell_exec", safety, **listed) is ALLOW
        assert decision(allowing, "shell_exec", safety, **listed, must_ask="why") is ASK

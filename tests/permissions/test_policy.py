"""What becomes of a call that nobody has decided: the owner's lists, then the mode."""

from itertools import product
from typing import Any, get_args

import pytest

from local.bus.vocabulary import Category, Mode, Safety
from local.permissions.policy import COMMAND, GatekeeperConfig, JudgedCall, PermissionPolicy, Ruling
from local.shell.shell import ShellExecTool

GIVEN, ASKED, DENIED = Ruling.GIVEN, Ruling.ASKED, Ruling.DENIED
OF_MODES = {  # by level
    "default": (GIVEN, ASKED, ASKED),
    "plan": (GIVEN, DENIED, DENIED),
    "acceptEdits": (GIVEN, GIVEN, ASKED),
    "dontAsk": (GIVEN, DENIED, DENIED),
    "bypassPermissions": (GIVEN, GIVEN, GIVEN),
}


def call(tool: str = "pen", safety: Safety = "L2", category: Category = "write", **fields: Any) -> JudgedCall:
    return JudgedCall(tool, fields.pop("args", {}), safety, category, **fields)


def leave(policy: PermissionPolicy, *args: Any, **fields: Any) -> Ruling:
    return policy.judge(call(*args, **fields)).leave


def policy(**settings: Any) -> PermissionPolicy:
    return GatekeeperConfig(**settings).policy()


def test_the_mode_decides_by_the_level() -> None:
    assert set(OF_MODES) == set(get_args(Mode))
    for mode, safety in product(OF_MODES, get_args(Safety)):
        made = leave(policy(may_bypass=True), safety=safety, mode=mode)
        assert made is OF_MODES[mode][int(safety[1])], (mode, safety)


def test_a_query_without_a_mode_has_that_of_the_settings() -> None:
    assert leave(policy(mode="acceptEdits"), safety="L1") is GIVEN
    assert leave(policy(mode="acceptEdits"), safety="L1", mode="plan") is DENIED


@pytest.mark.parametrize(
    ("mode", "plan", "made"),
    [
        ("plan", None, (GIVEN, DENIED, DENIED)),
        ("plan", "default", (GIVEN, ASKED, ASKED)),
        ("plan", "acceptEdits", (GIVEN, GIVEN, ASKED)),
        ("default", "acceptEdits", (GIVEN, GIVEN, ASKED)),
        ("acceptEdits", "default", (GIVEN, GIVEN, ASKED)),
        ("dontAsk", "acceptEdits", (GIVEN, DENIED, DENIED)),
    ],
)
def test_a_plan_that_is_approved_lets_the_rest_of_its_turn_ask(mode: Mode, plan: Any, made: tuple[Ruling, ...]) -> None:
    assert tuple(leave(policy(), safety=safety, mode=mode, plan=plan) for safety in get_args(Safety)) == made


def test_before_a_plan_is_approved_nobody_is_asked_about_what_the_rule_of_taint_refuses_but_what_reads() -> None:
    refused = {"mode": "plan", "tainted": True, "refusal": "Nobody has given that."}
    assert [leave(policy(), safety=safety, **refused) for safety in get_args(Safety)] == [ASKED, DENIED, DENIED]


@pytest.mark.parametrize("settings", [{"mode": "bypassPermissions"}, {}])
def test_everything_is_done_only_where_the_owner_has_set_that_it_may_be(settings: dict[str, Any]) -> None:
    assert leave(policy(**settings), mode="bypassPermissions") is ASKED
    assert leave(policy(**settings, may_bypass=True), mode="bypassPermissions") is GIVEN


@pytest.mark.parametrize("mode", get_args(Mode))
def test_what_is_denied_is_denied_in_every_mode_also_if_it_is_allowed_too(mode: Mode) -> None:
    owners = policy(denied_tools=["pen"], allowed_tools=["pen"], may_bypass=True)
    assert {leave(owners, safety=safety, mode=mode) for safety in get_args(Safety)} == {DENIED}


@pytest.mark.parametrize("mode", get_args(Mode))
def test_what_is_allowed_needs_no_leave_in_any_mode(mode: Mode) -> None:
    assert leave(policy(allowed_tools=["pen"]), mode=mode) is GIVEN
    assert leave(policy(allowed_tools=["pencil"]), mode="default") is ASKED


VECTOR = ["git", "status"]


@pytest.mark.parametrize(
    ("args", "made"),
    [
        ({"command": VECTOR}, GIVEN),
        ({"command": tuple(VECTOR)}, GIVEN),
        ({"command": [*VECTOR, "-s"]}, ASKED),
        ({"command": ["git status"]}, ASKED),
        ({"command": VECTOR, "network": True}, ASKED),
        ({"command": [*VECTOR, 1]}, ASKED),
        ({"command": "git status"}, ASKED),
        ({}, ASKED),
    ],
)
def test_of_a_tool_that_runs_commands_exact_arguments_are_allowed(args: Any, made: Ruling) -> None:
    assert leave(policy(allowed_tools=[{"shell": VECTOR}]), "shell", args=args) is made


@pytest.mark.parametrize(
    ("args", "made"),
    [
        ({"command": VECTOR}, DENIED),
        ({"command": VECTOR, "network": True}, DENIED),
        ({"command": "  git 'status'"}, DENIED),
        ({"command": "git 'status"}, GIVEN),
        ({"command": ["git", "log"]}, GIVEN),
    ],
)
def test_exact_arguments_are_denied_however_they_are_written(args: Any, made: Ruling) -> None:
    owners = policy(denied_tools=[{"shell": VECTOR}], mode="bypassPermissions", may_bypass=True)
    assert leave(owners, "shell", args=args) is made


def test_the_lists_of_commands_mean_the_argument_in_which_the_tool_takes_them() -> None:
    assert COMMAND in ShellExecTool.arguments().schema["properties"]


def test_with_words_of_strangers_before_the_model_what_could_be_undone_asks_too() -> None:
    assert leave(policy(), safety="L1", mode="acceptEdits", tainted=True) is ASKED
    assert leave(policy(), safety="L0", mode="acceptEdits", tainted=True) is GIVEN


def test_with_words_of_strangers_before_the_model_an_allowed_tool_asks_and_exact_arguments_do_not() -> None:
    owners = policy(allowed_tools=["pen", {"shell": VECTOR}])
    assert leave(owners, tainted=True) is ASKED
    assert leave(owners, "shell", args={"command": VECTOR}, tainted=True) is GIVEN


@pytest.mark.parametrize(
    ("mode", "made"),
    [("default", ASKED), ("plan", ASKED), ("acceptEdits", ASKED), ("dontAsk", DENIED), ("bypassPermissions", GIVEN)],
)
def test_what_the_rule_of_taint_refuses_is_asked_where_somebody_may_be(mode: Mode, made: Ruling) -> None:
    owners = policy(may_bypass=True, allowed_tools=["web_fetch"])
    judged = owners.judge(call("web_fetch", "L0", "web", mode=mode, tainted=True, refusal="Nobody has given it."))
    assert judged.leave is made
    assert judged.why == "Nobody has given it."


@pytest.mark.parametrize("entry", ["", {}, {"a": ["b"], "c": ["d"]}, {"shell": []}])
def test_an_entry_that_says_nothing_is_refused_with_what_would_be_right(entry: Any) -> None:
    with pytest.raises(ValueError, match="expected a tool, or one with its arguments, as in shell_exec: "):
        GatekeeperConfig(denied_tools=[entry])


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
@pytest.mark.parametrize("safety", ["L0", "L1", "L2"])
def test_what_a_hook_wants_to_have_decided_is_asked_whatever_else_allows_it(mode: Mode, safety: Safety) -> None:
    allowing = policy(may_bypass=True, allowed_tools=("pen", {"shell_exec": ["ls"]}))
    assert leave(allowing, "pen", safety, mode=mode, must_ask="why") is Ruling.ASKED
    listed = {"args": {"command": ["ls"]}, "mode": mode}
    assert leave(allowing, "shell_exec", safety, **listed) is Ruling.GIVEN
    assert leave(allowing, "shell_exec", safety, **listed, must_ask="why") is Ruling.ASKED


def test_a_hook_that_wants_to_have_it_decided_loosens_nothing() -> None:
    assert leave(policy(), "pen", "L0", mode="dontAsk", must_ask="why") is Ruling.DENIED
    assert leave(policy(), "pen", "L1", mode="plan", must_ask="why") is Ruling.DENIED
    assert leave(policy(denied_tools=("pen",)), "pen", "L0", must_ask="why") is Ruling.DENIED

"""What the model is told before the conversation."""

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from local.bus.messages import block
from local.generator.config import GeneratorConfig
from local.generator.prompt import (
    OF_MODES,
    ROUTING,
    SECTIONS,
    SMALL,
    WRITES,
    PromptInputs,
    SkillLine,
    ToolLine,
    as_json,
    compile_prompt,
    compose,
    environment_items,
)
from local.instructions.texts import SourcedText
from local.models.chat import Json
from local.models.settings import Tier

DAY = date(2026, 7, 14)
READ = ToolLine("read_file", category="read", replaces="cat, head")
EDIT = ToolLine("edit_file", "write", "L1", "write", "sed -i")
SHELL = ToolLine("shell_exec", "write", "L2", "shell")
FULL: dict[str, Any] = {
    "tools": (READ, EDIT, SHELL),
    "mode": "default",
    "workspace": "/home/ann/work",
    "instructions": (SourcedText("LOCAL2.md", "Be kind.\n"), SourcedText("workspace", "Use tabs.")),
    "soul": SourcedText("SOUL.md", "Dry humour."),
    "custom": SourcedText("profile reviewer", "You review."),
    "skills": (SkillLine("brew", "Makes\ntea."),),
}


def exchanges(number: int) -> list[Json]:
    return [{"role": role, "content": f"{role} {index}"} for index in range(number) for role in ("user", "assistant")]


def made_from(**fields: Any) -> PromptInputs:
    return PromptInputs(SourcedText("generator.yaml", "Be brief.\n"), DAY, **fields)


def told(**fields: Any) -> str:
    return str(compose(made_from(**fields), ())[0]["content"])


def background(**fields: Any) -> str:
    return block(environment_items(made_from(**fields)))


def names(inputs: PromptInputs) -> list[str]:
    return [section.name for section in compile_prompt(inputs)]


def test_the_system_message_comes_first_and_holds_nothing_that_changes() -> None:
    prelude = compose(made_from(), exchanges(1))
    assert prelude[0] == {"role": "system", "content": "Be brief."}
    assert list(prelude[1:]) == exchanges(1)
    later = PromptInputs(SourcedText("generator.yaml", "Be brief.\n"), date(2027, 1, 1), **(FULL | {"mode": "plan"}))
    assert compose(later, ())[0] == compose(made_from(**FULL), ())[0]


def test_a_caller_s_own_system_messages_stand_in_the_same_one() -> None:
    own = [{"role": "system", "content": "Rhyme."}, *exchanges(1)]
    assert list(compose(made_from(), own)) == [{"role": "system", "content": "Be brief.\n\nRhyme."}, *exchanges(1)]


def test_without_a_text_of_the_owner_s_there_is_one_for_the_size_of_the_model() -> None:
    nothing = SourcedText("generator.yaml", "")
    texts = [str(compose(PromptInputs(nothing, DAY, tier=tier, tools=(READ,)), ())[0]["content"]) for tier in Tier]
    assert len(texts[0]) < len(texts[1]) == len(texts[2])
    assert all("read_file" not in text for text in texts)
    no_tools = str(compose(PromptInputs(nothing, DAY, tier=SMALL), ())[0]["content"])
    assert "call a tool" in texts[0] and "call a tool" not in no_tools


def test_a_section_with_nothing_to_say_is_not_there_and_all_stand_in_the_order_of_the_table() -> None:
    assert names(made_from()) == ["role", "date"]
    assert names(made_from(**FULL)) == [rule.name for rule in SECTIONS]


def test_a_weak_model_is_not_told_what_it_would_only_get_confused_by() -> None:
    left_out = set(names(made_from(**FULL))) - set(names(made_from(**FULL, tier=SMALL)))
    assert (
        left_out
        == {"tools", "routing", "folder", "permissions"}
        == {rule.name for rule in SECTIONS if rule.least is not SMALL}
    )
    assert names(made_from(**FULL, tier=list(Tier)[-1])) == [rule.name for rule in SECTIONS]


def test_each_section_says_where_it_is_from_and_what_it_costs() -> None:
    shown = as_json("gemma4:12b", made_from(**FULL))
    by_name = {section["name"]: section for section in shown["sections"]}
    assert by_name["role"]["origin"] == "generator.yaml" and by_name["soul"]["origin"] == "SOUL.md"
    assert by_name["instructions"]["origin"] == "LOCAL2.md, workspace"
    assert by_name["custom"]["origin"] == "profile reviewer"
    assert all(section["tokens"] > 0 and section["origin"] for section in shown["sections"])
    assert shown["tokens"] == sum(section["tokens"] for section in shown["sections"])


def test_the_same_is_compiled_once() -> None:
    assert compile_prompt(made_from(**FULL)) is compile_prompt(made_from(**FULL))


def test_a_tool_that_changes_something_is_warned_of_and_one_that_reads_is_not() -> None:
    assert WRITES in told(tools=(ToolLine("send_mail", "write"), ToolLine("web_search")))
    assert WRITES not in told(tools=(ToolLine("web_search"),))


def test_where_there_is_a_shell_the_other_tools_come_first() -> None:
    assert ROUTING in told(tools=(READ, SHELL)) and ROUTING not in told(tools=(READ, EDIT))


@pytest.mark.parametrize(("mode", "level_1", "level_2"), [(mode, *words) for mode, words in OF_MODES.items()])
def test_what_becomes_of_a_call_is_told_as_the_mode_has_it(mode: str, level_1: str, level_2: str) -> None:
    text = background(tools=(READ, EDIT, SHELL), mode=mode)
    if level_1 == level_2:
        assert f"Tools that change something {level_1}." in text
    else:
        assert f"Tools whose changes can be undone {level_1}; tools whose changes cannot be undone {level_2}." in text


def test_nothing_is_told_of_approval_where_no_tool_needs_any_or_nobody_gives_it() -> None:
    assert "approval" not in background(tools=(READ,), mode="default") + background(tools=(EDIT,), mode="")


def test_the_folder_is_named_where_a_tool_works_in_it() -> None:
    assert "in the folder /home/ann/work;" in background(tools=(READ,), workspace="/home/ann/work")
    assert "/home" not in background(tools=(ToolLine("web_search", category="web"),), workspace="/home/ann/work")


def test_a_skill_is_one_line_of_bounded_length() -> None:
    text = background(skills=(SkillLine("brew", "Makes\n\n# Your Memory\ntea."), SkillLine("long", "x" * 5000)))
    assert "- brew: Makes # Your Memory tea.\n" in text and "x" * 1024 in text and "x" * 1025 not in text


def test_the_variant_that_is_chosen_is_the_one_that_is_told() -> None:
    prompts = {"terse": "One word."}
    assert GeneratorConfig(system_prompt="Be brief.", prompts=prompts).instructions == "Be brief."
    assert GeneratorConfig(system_prompt="Be brief.", prompts=prompts, prompt="terse").instructions == "One word."


def test_a_variant_that_there_is_not_is_an_error_that_says_which_was_meant() -> None:
    with pytest.raises(ValidationError, match=r"'ters'; did you mean terse\?"):
        GeneratorConfig(prompts={"terse": "One word."}, prompt="ters")

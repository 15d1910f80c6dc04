"""Which model answers a query: the one that it names, then that of its conversation, its profile, the settings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.attachments.attachments import AttachmentStore
from local.bus.messages import AnswerOptions, AnswerProfile, QueryFailed, ResponseGeneration
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.generator.history import ConversationService
from local.models.chat import ContentDelta, Delta, Done, Json, ModelInfo, Usage
from local.models.settings import DefaultModel, Endpoint, Routing
from tests.agents.agent_stage.stage import Stage

DEFAULTS = Path(__file__).parents[2] / "config"
ROUTING = Routing(
    endpoints={"ollama": Endpoint(kind="ollama", url="http://a"), "box": Endpoint(kind="openai", url="http://b")},
    default="ollama",
)
WINDOWS = {"gemma": 32_000, "small": 2048, "eyes": 32_000}


class Several:
    """A server with several models, each with a window of its own; those of the name `eyes` can see."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def chat(self, model: str, messages: Sequence[Json], **options: Any) -> AsyncGenerator[Delta, None]:
        self.asked.append(model)
        yield ContentDelta("Yes.")
        yield Done(Usage(2, 1), model=model)

    async def show(self, model: str) -> ModelInfo:
        return ModelInfo(model, frozenset({"completion", *(["vision"] if model == "eyes" else [])}), WINDOWS.get(model))

    async def load(self, model: str, options: Any) -> None:
        pass

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Talk:
    """Asks one question after the other."""

    def __init__(self, stage: Stage, model: Several) -> None:
        self.stage, self.model, self._number = stage, model, 0

    async def ask(self, options: AnswerOptions | None = None, **fields: Any) -> ResponseGeneration:
        self._number += 1
        query_id = f"q{self._number}"
        await self.stage.door.ask("Is it so?", query_id, options=options, **fields)
        return await self.stage.door.hears(ResponseGeneration, query_id=query_id)


async def talk(stage: Stage, default: DefaultModel | None = None, files: AttachmentStore | None = None) -> Talk:
    model = Several()
    config = GeneratorConfig(model="gemma", system_prompt="Be brief.", think=False)
    record = ConversationService(stage.database)
    await stage.serve(GeneratorAgent(config, model, record, default=default, attachments=files))
    return Talk(stage, model)


def named(model: str, **more: Any) -> AnswerOptions:
    return AnswerOptions(model=model, **more)


async def test_a_conversation_goes_on_with_the_model_that_was_chosen_in_it(stage: Stage) -> None:
    asker = await talk(stage)
    models = [
        (await asker.ask(options, session=session)).model
        for options, session in (
            (None, "s"), (named("small"), "s"), (None, "s"), (None, "another"), (named("eyes"), "s"), (None, "s"),
            (named("default"), "s"), (None, "s"),
        )
    ]  # fmt: skip
    assert models == ["gemma", "small", "small", "gemma", "eyes", "eyes", "gemma", "gemma"]


async def test_a_choice_is_above_the_profile_and_a_profile_above_the_settings(stage: Stage) -> None:
    asker = await talk(stage)
    profile = AnswerProfile(name="code", model="eyes")
    assert (await asker.ask(AnswerOptions(profile=profile))).model == "eyes"
    assert (await asker.ask(named("default", profile=profile))).model == "gemma"
    assert (await asker.ask(AnswerOptions(profile=profile))).model == "eyes"
    assert (await asker.ask(named("small", profile=profile))).model == "small"
    assert (await asker.ask(AnswerOptions(profile=profile))).model == "small"


async def test_each_model_has_its_own_window(stage: Stage) -> None:
    asker = await talk(stage)
    limits = []
    for options in (None, named("small"), named("default")):
        context = (await asker.ask(options)).usage.context
        assert context is not None
        limits.append(context.limit)
    assert limits == [32_000, 2048, 32_000]


async def test_pictures_go_to_the_chosen_model_if_it_sees(stage: Stage, tmp_path: Path) -> None:
    store = AttachmentStore(tmp_path / "files")
    picture = store.put("a.png", "image/png", b"\x89PNG").id
    asker = await talk(stage, files=store)
    assert (await asker.ask(named("eyes"), attachments=[picture])).model == "eyes"
    await stage.door.ask("And this?", "blind", options=named("small"), attachments=[picture])
    failed = await stage.door.hears(QueryFailed, query_id="blind")
    assert failed.error.kind == "unsupported"


async def test_the_default_follows_the_settings_while_the_system_runs(stage: Stage, tmp_path: Path) -> None:
    asker = await talk(stage, DefaultModel(ROUTING, (DEFAULTS, tmp_path), "gemma"))
    assert (await asker.ask()).model == "gemma"
    for chain, answers in (
        ("[ollama/eyes]", "eyes"),
        ("[box/small, ollama/eyes]", "box/small"),
        ("[llama_server/none]", "box/small"),  # no running server has it
        ("[nonsense", "box/small"),
    ):
        (tmp_path / "models.yaml").write_text(f"providers: {{box: {{kind: openai}}}}\nroles: {{chat: {chain}}}\n")
        assert (await asker.ask()).model == answers


@pytest.mark.parametrize("fixed", [True, False])
def test_a_model_that_the_command_line_names_stays(tmp_path: Path, fixed: bool) -> None:
    default = DefaultModel(ROUTING.model_copy(update={"is_fixed": fixed}), (DEFAULTS, tmp_path), "gemma")
    (tmp_path / "models.yaml").write_text("roles: {chat: [ollama/eyes]}\n")
    assert (default.refresh(), default.name) == (not fixed, "gemma" if fixed else "eyes")
    assert not default.refresh()

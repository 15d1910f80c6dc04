"""A model on several servers: where each conversation is asked, when it moves, and what a dead server costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import ModelUsed, ResponseGeneration
from local.core.errors import ConfigError, ModelError
from local.core.routing import Endpoint, ModelGroup, ModelsConfig, Routing
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ContentDelta, Degraded, Delta, Done, Usage
from local.models.leases import Leases, Priority
from local.models.router import Router, Target
from local.runtime.participant import Resources
from tests.models.test_leases import Process
from tests.models.wires import OLLAMA, ScriptedServer

NAMES = ("a/m", "b/m", "c/m")
TALKS = [f"session-{number}" for number in range(300)]


class Box:
    """One server of the group, which reads a prompt of 1,000 tokens in a second and writes for another one."""

    def __init__(self) -> None:
        self.is_down, self.calls = False, 0

    async def chat(self, model: str, messages: Sequence[Any], **how: Any) -> AsyncGenerator[Delta, None]:
        self.calls += 1
        if self.is_down:
            raise ModelError("it is down", kind="unreachable")
        yield ContentDelta("Hi")
        yield Done(Usage(1000, 10, {"prompt_eval": 1.0, "eval": 1.0}))


class House:
    """A process with conversations on three servers. Waiting takes no time; `turns` are those in flight elsewhere."""

    def __init__(self, **group: Any) -> None:
        self.boxes = {name: Box() for name in NAMES}
        self.now, self.waits, self.turns = 0.0, list[float](), Counter[str]()
        self.router = Router(
            lambda name: [Target(name, "m", self.boxes[name])],
            self._close,
            groups=[ModelGroup(of=NAMES, **group)],
            clock=lambda: self.now,
            sleep=self._sleep,
        )
        self.leases = Leases(lambda name: tuple(name.split("/")), self.router.servers)

    def next(self, talk: str) -> str:
        """The server of its next turn."""
        return self.router.servers.choose("a/m", talk, lambda server: self.turns[server])

    async def turn(self, talk: str) -> tuple[str, list[Delta]]:
        """A turn of a conversation: the server that has answered, and what it said."""
        priority = Priority(self.leases, self.next(talk), conversation=talk)
        said = [delta async for delta in self.router.chat(priority.model, [])]
        done = said[-1]
        assert isinstance(done, Done)
        priority.answered(done.usage)
        return done.usage.server, said

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def _close(self) -> None: ...


async def test_conversations_are_divided_by_weight_and_each_stays_where_it_began() -> None:
    house = House(weights={"a": 2, "b": 1, "c": 1})
    first = {talk: (await house.turn(talk))[0] for talk in TALKS}
    share = Counter(first.values())
    assert 120 < share["a"] < 180 and min(share["b"], share["c"]) > 50
    assert {talk: (await house.turn(talk))[0] for talk in TALKS} == first
    assert {talk: House(weights={"a": 2, "b": 1, "c": 1}).next(talk)[0] for talk in TALKS} == first  # another process


async def test_a_conversation_moves_only_where_it_is_answered_sooner_although_it_is_read_again() -> None:
    house = House(slots={"a": 2, "b": 2, "c": 2})
    home, _ = await house.turn("talk")
    others = {"a", "b", "c"} - {home}
    for other in others:  # their speed is learned, too
        await next_at(house, other)
    house.turns[home] = 3  # two seconds until it begins: reading takes one, and another from those that wait for it
    assert house.next("talk") == f"{home}/m"
    house.turns[home] = 4
    moved = house.next("talk")
    assert moved[0] in others
    assert house.leases.at("a/m", "talk", turn=False) == f"{home}/m"  # a title waits for its server
    house.turns[moved[0]] = 6
    assert house.next("talk")[0] == (others - {moved[0]}).pop()


async def next_at(house: House, server: str) -> str:
    """A new conversation that was answered at a server."""
    for talk in (f"other-{number}" for number in range(100)):
        if house.next(talk)[0] == server:
            await house.turn(talk)
            return talk
    raise AssertionError(server)


async def test_a_new_conversation_does_not_wait_while_another_server_is_free() -> None:
    house = House()
    talk = next(talk for talk in TALKS if house.next(talk) == "a/m")
    house.turns["a"] = 1
    assert house.next(talk) != "a/m"


async def test_a_servers_death_fails_no_turn_and_moves_its_own_conversations_alone() -> None:
    house = House(slots={"a": 9, "b": 9, "c": 9})
    before = {talk: (await house.turn(talk))[0] for talk in TALKS}
    house.boxes["b/m"].is_down, calls = True, house.boxes["b/m"].calls
    heard = {talk: await house.turn(talk) for talk in TALKS}
    assert all(server != "b" and said[0] == ContentDelta("Hi") for server, said in heard.values())
    assert not any(isinstance(delta, Degraded) for _, said in heard.values() for delta in said)
    assert {talk for talk, (server, _) in heard.items() if server != before[talk]} == {
        talk for talk in TALKS if before[talk] == "b"
    }
    assert (house.boxes["b/m"].calls - calls, house.waits) == (1, [])
    assert "it is down" in house.router.servers.details(lambda _: 0)["server_b"]


async def test_a_server_that_has_failed_is_tried_again_by_one_call_at_a_time() -> None:
    slots = dict.fromkeys("abc", 9)
    house = House(slots=slots)
    talk = await next_at(house, "b")
    house.boxes["b/m"].is_down = True
    await house.turn(talk)
    new = next(talk for talk in TALKS if House(slots=slots).next(talk) == "b/m")
    assert house.next(new) != "b/m"
    house.now += 16
    assert house.next(new) == "b/m"
    house.turns["b"] = 1  # somebody tries it
    assert house.next(new) != "b/m"
    house.turns["b"], house.boxes["b/m"].is_down = 0, False
    assert (await house.turn(new))[0] == "b"
    assert "does not answer" not in house.router.servers.details(lambda _: 0)["server_b"]


def with_group(group: dict[str, Any], **more: Any) -> ModelsConfig:
    return ModelsConfig.model_validate(
        {"providers": {key: {"kind": "openai"} for key in "abc"}, "groups": {"chat": group}, **more}
    )


async def test_all_processes_count_the_turns_of_a_server_at_once(stage: Any) -> None:
    config = with_group({"of": NAMES, "slots": {"a": 2}})
    endpoints = {name: Endpoint(kind="openai", url="http://127.0.0.1:1/v1") for name in "abc"}
    routing = Routing(config=config, endpoints=endpoints, default="a")
    await stage.serve(Arbiter(ArbiterConfig(), routing))
    one, other = [Process(stage, name) for name in ("one", "other")]
    for process in (one, other):
        process.leases = Leases(routing.locate, House().router.servers)
        await process.start()
    with one.leases.users_turn("a/m"):
        await stage.frontend.until(lambda: other.leases.turns_at("a") == 1)
        with other.leases.users_turn("m"):
            assert (other.leases.turns_at("a"), other.leases.turns_at("b")) == (2, 0)
    for process in (one, other):
        await process.end()


def test_a_group_with_the_name_of_a_role_is_that_role() -> None:
    assert with_group({"of": NAMES}).roles.chat == ("a/m",)
    assert with_group({"of": NAMES}, roles={"chat": ["c/x"]}).roles.chat == ("c/x",)
    assert with_group({"of": NAMES}).named_at("c") == ("m",)


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"of": ["a/m", "a/n"]}, "each server once"),
        ({"of": ["a/m", "d/m"]}, "unknown provider"),
        ({"of": ["a/m"], "slots": {"b": 2}}, "no server of this group"),
    ],
)
def test_a_group_that_cannot_be_is_refused(group: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, ConfigError), match=told):
        with_group(group)


async def test_a_conversations_turns_and_its_title_are_asked_at_one_server_and_elsewhere_when_that_dies(
    stage: Any, tmp_path: Path
) -> None:
    async with ScriptedServer().serving() as a, ScriptedServer().serving() as b:
        for server in (a, b):
            server.says(OLLAMA, OLLAMA.stop(content='{"title": "Tea"}'))
        config = with_group({"of": ["a/m", "b/file"]})
        endpoints = {
            "a": Endpoint(kind="ollama", url=a.url),
            "b": Endpoint(kind="ollama", url=b.url, only_model="m"),  # whatever it is asked for
        }
        routing = Routing(config=config, endpoints=endpoints, default="a")
        agent = GeneratorAgent.build(GeneratorConfig(make_titles=True), Resources(tmp_path, routing=routing))
        await stage.serve(Arbiter(ArbiterConfig()))
        served = await stage.serve(agent)
        await stage.frontend.ask("Tea?", "q1")
        used = await stage.frontend.hears(ModelUsed, purpose="title")
        first = (await stage.frontend.hears(ResponseGeneration, query_id="q1")).usage.steps[-1].server
        asked = {name: len(box.bodies(OLLAMA.chat)) for name, box in (("a", a), ("b", b))}
        home, other = (a, "b") if first == "a" else (b, "a")
        assert used.server == first and asked[first] > asked[other]
        home.answers(OLLAMA.chat, {"error": "loading"}, status=503)
        await stage.frontend.ask("Really?", "q2")
        response = await stage.frontend.hears(ResponseGeneration, query_id="q2")
        assert (response.status, response.degraded, response.usage.steps[-1].server) == ("answered", (), other)
        assert agent.details()[f"server_{first}"].startswith("does not answer")
        await served.stop()

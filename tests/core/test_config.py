"""Configuration: what is read from where, and what a person is told when it is wrong."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from local.core import config
from local.core.capability import participants
from local.core.config import Settings, SystemConfig
from local.core.environment import Environment, environment
from local.core.errors import ConfigError
from local.run.participant import find_class
from local.run.run import API_TARGET as API
from local.run.run import JOURNAL
from local.web.fetch import WebFetchConfig
from local.web.search import WebSearchConfig

CHECKOUT = Path(__file__).parents[2]


class Sample(Settings):
    model: str = "small"
    num_ctx: int = Field(1000, gt=0)
    think: bool = True
    temperature: float | None = None
    hosts: tuple[str, ...] = ()
    weights: dict[str, int] = Field(default_factory=dict)
    corner: tuple[int, int, int] = (0, 0, 0)
    seed: Literal["none", "clock"] | Literal["fixed"] | int = "none"
    names: tuple[str, ...] = Field(("a",), max_length=2)


class Pair(Settings):
    left: int
    right: int


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings folder, in the current folder so that messages name it shortly."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def write(folder: Path, text: str | bytes, name: str = "sample") -> None:
    (folder / f"{name}.yaml").write_bytes(text.encode() if isinstance(text, str) else text)


def load(folder: Path) -> Sample:
    return config.load("sample", Sample, [folder])


def test_later_layers_win_key_by_key_and_flags_win_over_all(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, "model: a\nnum_ctx: 1\nhosts: [x, y]\nweights: {p: 1, q: 2}\n")
    write(folder, "num_ctx: 2\nhosts: [z]\nweights: {q: 3}\n")
    sample = config.load("sample", Sample, [tmp_path, folder], {"model": "b", "num_ctx": None})
    assert sample == Sample(model="b", num_ctx=2, hosts=("z",), weights={"p": 1, "q": 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nnum_ctx: many", ":2: num_ctx: expected a whole number, found 'many'"),
        ("num_ctx: 0", ":1: num_ctx: expected more than 0, found 0"),
        ("think: maybe", ":1: think: expected true or false, found 'maybe'"),
        ("model: no", ":1: model: expected text (in quotes if it looks like something else), found false"),
        ("hosts: a", ":1: hosts: expected a list, found 'a'"),
        ("hosts:\n- a\n- [b]", ":3: hosts: expected text (in quotes if it looks like something else), found a list"),
        ("weights: 5", ":1: weights: expected settings, each as 'key: value', found 5"),
        ("weights:\n  p: x", ":2: weights.p: expected a whole number, found 'x'"),
        ("corner: [1, 2]", ":1: corner: expected 3, found 2"),
        ("names: [a, b, c]", ":1: names: expected at most 2, found 3"),
        ("seed: now", ":1: seed: expected 'none', 'clock' or 'fixed' or a whole number, found 'now'"),
        ("seed: 1.5\nthink: 3", ":2: think: expected true or false, found 3 (and 1 more)"),
        ("think: on\nnum_ctxx: 3", ":2: num_ctxx: unknown key; did you mean num_ctx?"),
        (
            "zzz: 3",
            ":1: zzz: unknown key; known are corner, hosts, model, names, num_ctx, seed, temperature, think, weights",
        ),
        ("model: a\n\nmodel: b", ":3: model: given twice, first on line 1; keep one of them"),
        ("model: [", ":1: column 9: expected the node content, but found '<stream end>'"),
        ("\tmodel: a", ":1: column 1: a tab; indent with spaces"),
        ("- model", ":1: expected settings, each as 'key: value'"),
        ("5: a", ":1: expected a name as the key; put it in quotes if it is meant as text"),
        ("model: !!python/name:os.system x", ":1: column 8: could not determine a constructor for the tag "),
        ("weights: &a {p: *a}", ":1: nested deeper than 20 levels"),
        ("model: " + "[" * 1200, ": nested deeper than 20 levels"),
        ("num_ctx: " + "9" * 5000, ": a value is invalid: Exceeds the limit (4300 digits)"),
        ("model: a\n\0", ":2: not valid YAML: unacceptable character #x0000"),
        (b"model: a\nhosts: [\xff]", ":2: not UTF-8 text; save the file in that encoding"),
        ("#" * 300_000, ": larger than 256 kB; settings are smaller"),
    ],
)
def test_a_fault_is_one_line_with_file_line_key_and_expectation(folder: Path, text: str | bytes, message: str) -> None:
    write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert str(caught.value).startswith(f"mine/sample.yaml{message}")
    assert "\n" not in str(caught.value)


def test_an_alias_bomb_is_refused(folder: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for above, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{above}'] * 10)}]")
    write(folder, "\n".join(lines))
    with pytest.raises(ConfigError, match="more than 10000 values, counting what aliases repeat"):
        load(folder)


def test_a_key_that_is_lacking_is_named_in_the_file_that_has_what_it_belongs_to(folder: Path, tmp_path: Path) -> None:
    class Pairs(Settings):
        pairs: tuple[Pair, ...]

    write(tmp_path, "pairs:\n- left: 1\n  right: 2\n")
    write(folder, "\n\npairs:\n- left: 1\n")
    with pytest.raises(ConfigError, match=r"^mine/sample\.yaml:4: pairs\.right: missing, and there is no default$"):
        config.load("sample", Pairs, [tmp_path, folder])


@pytest.mark.parametrize(("name", "key"), [("generator", "tools"), ("web_search", "fetch_enabled")])
def test_a_key_that_has_lost_its_meaning_is_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture, name: str, key: str
) -> None:
    write(folder, f"model: a\n{key}: 2000\n", name)
    with caplog.at_level(logging.WARNING):
        assert config.load(name, Sample, [folder]).model == "a"
    assert f"mine/{name}.yaml:2: {key} is ignored: " in caplog.text


def test_fetch_max_chars_counts_where_the_plan_has_it_and_its_own_file_has_the_last_word(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    write(folder, "fetch_max_chars: 8000\n", "web_fetch")
    write(own, "max_results: 3\nfetch_max_chars: 2000\n", "web_search")
    assert config.load("web_fetch", WebFetchConfig, [folder, own]).fetch_max_chars == 2000
    assert config.load("web_search", WebSearchConfig, [folder, own]).max_results == 3
    assert caplog.text == ""
    write(own, "fetch_max_chars: 3000\n", "web_fetch")
    assert config.load("web_fetch", WebFetchConfig, [folder, own]).fetch_max_chars == 3000
    (own / "web_fetch.yaml").unlink()
    write(own, "max_results: 3\nfetch_max_chars: few\n", "web_search")
    with pytest.raises(ConfigError, match=r"web_search\.yaml:2: fetch_max_chars: expected a whole number"):
        config.load("web_fetch", WebFetchConfig, [folder, own])


def test_an_empty_variable_counts_as_unset_and_keys_are_not_shown() -> None:
    found = environment({"OLLAMA_HOST": "", "BRAVE_API_KEY": "secret", "LOCAL2_DATA_DIR": "/d"})
    assert found == Environment(brave_api_key="secret", data_dir=Path("/d"))
    assert "secret" not in repr(found)


def test_the_layers_are_the_defaults_and_then_the_folder_of_the_user(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL2_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    defaults, platform = config.layers_for(None)
    assert defaults == CHECKOUT / "config"
    assert platform.is_relative_to(tmp_path)
    monkeypatch.setenv("LOCAL2_CONFIG_DIR", str(folder))
    assert config.layers_for(None) == [defaults, folder]
    assert config.layers_for(tmp_path) == [defaults, tmp_path]


def test_a_settings_folder_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: there is no such folder"):
        config.layers_for(tmp_path / "nowhere")


def system(folder: Path, text: str = "", **variables: str) -> SystemConfig:
    write(folder, text, "system")
    return config.load_system([folder], {}, environment(variables))


def test_the_shipped_system_file_says_what_the_defaults_are_and_who_takes_part() -> None:
    shipped = config.load("system", SystemConfig, [CHECKOUT / "config"])
    assert shipped.model_copy(update={"participants": (), "shared_process": ()}) == SystemConfig()
    assert {entry.name for entry in shipped.participants} == participants().keys() - {
        "generator_b",
        "hooks",
        "search_memory",
    }  # part of memory_tools


def test_a_shared_process_names_each_once_and_only_known_ones(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    groups = system(folder, "shared_process: [[cron, swarm], [web_search, generator_b]]").shared_process
    assert groups[0] == ("cron", "swarm") and caplog.text == ""
    with pytest.raises(ConfigError, match=r"system\.yaml:1: shared_process: cron is listed twice"):
        system(folder, "shared_process: [[cron, swarm], [reward, cron]]")
    with pytest.raises(ConfigError, match=r"shared_process: unknown participant 'corn'; did you mean cron\?"):
        system(folder, "shared_process: [[corn, swarm]]")


def test_the_old_name_of_a_key_is_read_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert system(folder, "\ntogether: [[cron, swarm]]").shared_process == (("cron", "swarm"),)
    assert "mine/system.yaml:2: together is now called shared_process" in caplog.text
    with pytest.raises(ConfigError, match=r"system\.yaml:1: shared_process: cron is listed twice"):
        system(folder, "together: [[cron, cron]]")


def test_a_participant_is_a_built_in_name_or_a_class_with_or_without_settings(folder: Path) -> None:
    text = "participants:\n- generator\n- my_tools.dice:DiceTool\n- web_search: {provider: mock}\n"
    entries = system(folder, text).participants
    assert [(entry.target, entry.config) for entry in entries] == [
        ("local.generator.agent:GeneratorAgent", {}),
        ("my_tools.dice:DiceTool", {}),
        ("local.web.search:WebSearchTool", {"provider": "mock"}),
    ]


DICE = """
class Base: ...
class DiceTool(Base):
    name: str = "dice"
    def run(self): raise SystemExit("is not imported")
class Odd(Base):
    settings = "odds"
    name = "odd"
class Silent(Base): ...
"""


def add_tools(folder: Path, *classes: str) -> str:
    """The file of tools, and the line for some of them."""
    (folder / "my_tools").mkdir(exist_ok=True)
    (folder / "my_tools" / "dice.py").write_text(DICE)
    return f"more_participants: [{', '.join(f'my_tools.dice:{name}' for name in classes)}]\n"


@pytest.mark.parametrize("name", ["supervisor", "bus"])
def test_a_name_that_is_taken_by_what_no_settings_list_is_refused(folder: Path, name: str) -> None:
    (folder / "mine.py").write_text(f'class One:\n    name = "{name}"\n')
    with pytest.raises(ConfigError, match=f"mine:One has the name of LoCAL2's own {name}; rename it"):
        system(folder, 'more_participants: ["mine:One"]')
    with pytest.raises(ConfigError, match=f"'{name}' cannot be a client's name"):
        system(folder, f"bus_clients: {{{name}: [query.received]}}")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("genrator.yaml", "did you mean generator.yaml?"),
        ("Generator.yaml", "did you mean generator.yaml?"),
        ("generator_b.yaml", "did you mean generator.yaml?"),
        ("dise.yaml", "did you mean dice.yaml?"),
        ("zzz.yaml", "known are api.yaml, arbiter.yaml, "),
    ],
)
def test_a_file_that_nobody_reads_is_an_error(folder: Path, name: str, meant: str) -> None:
    write(folder, "model: x", "odds")
    write(folder, "", "dice")
    text = add_tools(folder, "DiceTool", "Odd")
    system(folder, text)
    (folder / name).write_text("model: x\n")
    with pytest.raises(ConfigError) as caught:
        system(folder, text)
    assert str(caught.value).startswith(f"mine/{name}: no participant reads this file; {meant}")


def test_every_shipped_file_and_every_participant_of_ours_has_settings_that_are_known(folder: Path) -> None:
    read = {kind.settings or kind.name for kind in map(find_class, (*participants().values(), API, JOURNAL))}
    for name in (*read, "models", *(path.stem for path in (CHECKOUT / "config").glob("*.yaml"))):
        write(folder, "", name)
    system(folder)
    assert "generator_b" not in read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "participants: [critic]\nmore_participants: [critic]",
            ":2: more_participants: local.critic.agent:CriticAgent is listed twice",
        ),
        ("participants:\n- generatr", ":2: participants: unknown participant 'generatr'; did you mean generator?"),
        ("participants:\n- {a: 1, b: 2}", ":2: participants: expected for each '-' one participant"),
        ("participants: [generator, generator]", ":1: participants: local.generator.agent:GeneratorAgent is "),
        ("bus_pub_address: udp://x", ":1: bus_pub_address: expected tcp://host:port or ipc://path, found 'udp://x'"),
        ("bus_pub_address: tcp://127.0.0.1:5555", ": bus_pub_address and bus_sub_address belong together"),
        (
            "bus_pub_address: tcp://10.0.0.1:1\nbus_sub_address: tcp://10.0.0.1:2\nbus_security: none",
            ": bus_security: none is only for loopback",
        ),
        ("backend: olama", ":1: backend: expected 'auto', 'ollama'"),
    ],
)
def test_a_fault_in_the_system_file_says_what_would_be_right(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        system(folder, text)
    assert str(caught.value).startswith(f"mine/system.yaml{message}")


def test_ollama_host_names_the_server_unless_the_file_does(folder: Path) -> None:
    assert system(folder, "", OLLAMA_HOST="box:1").ollama_url == "box:1"
    assert system(folder, "ollama_url: http://other", OLLAMA_HOST="box:1").ollama_url == "http://other"

"""mcp.json: the format that others share, with what only we know, and errors that say where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.core.config import SystemConfig
from local.core.errors import ConfigError
from local.core.mcp_servers import MCPServerConfig, load_mcp_servers, pasted_servers
from local.run.overrides import overrides_for, with_mcp_servers


def written(folder: Path, text: str) -> Path:
    (folder / "mcp.json").write_text(text)
    return folder


def test_each_server_is_a_participant_with_its_entry_for_settings(tmp_path: Path) -> None:
    entry = '{"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "autoApprove": []}'
    written(tmp_path, f'{{"mcpServers": {{"my-files": {entry}}}, "theirs": 1}}')
    system = with_mcp_servers(SystemConfig(), [tmp_path / "defaults", tmp_path])
    [added] = system.participants
    assert (added.name, added.is_built_in) == ("mcp_my-files", False)
    assert overrides_for(added.target, system, {}, {}) == {
        "type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", 'expected {"mcpServers"'),
        ("[]", 'expected {"mcpServers"'),
        ('{"mcpServers": []}', 'expected {"mcpServers"'),
        ('{"mcpServers": {"a.b": {"command": "x"}}}', "'a.b' cannot be a server's name"),
        ('{"mcpServers": {"a": {}}}', "mcpServers.a: Value error, expected a command that serves, or the url"),
        ('{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}', "and not both"),
        ('{"mcpServers": {"a": {"type": "http", "command": "x"}}}', "http has a url"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}', "mcpServers.a.type"),
        ('{"mcpServers": {"a": {"url": "https://x", "headers": {"A": "b\\nC: d"}}}}', "mcpServers.a.headers.A"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "mcpServers.a.args"),
        ('{"mcpServers": {"a": {"command": "x", "network": "yes"}}}', "mcpServers.a.network"),
        ('{"mcpServers": {"a": {"command": "x", "safety": "L9"}}}', "mcpServers.a.safety"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": "v\\u0000--bind"}}}}', "mcpServers.a.env.K"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_mcp_servers(written(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path}/mcp.json: ")
    assert why in str(error.value)


VARIABLES = {"HOST": "tools.example", "EMPTY": "", "KEY": "k-1"}
SECRETS = {"box": "s-2"}


def meant(**entry: Any) -> MCPServerConfig:
    return MCPServerConfig(**entry).expanded("a", VARIABLES.get, SECRETS.__getitem__)


def test_variables_and_secrets_are_put_in_where_the_server_is_used() -> None:
    server = meant(
        command="${HOST}/run", args=("--at=${PLACE:-here}", "${EMPTY:-full}", "$HOST"),
        env={"A": "secret:box", "B": "x ${KEY} ${secret:box}"},
    )  # fmt: skip
    assert (server.command, server.args) == ("tools.example/run", ("--at=here", "", "$HOST"))
    assert server.env == {"A": "s-2", "B": "x k-1 s-2"}
    remote = meant(url="https://${HOST}/mcp", headers={"Authorization": "Bearer ${secret:box}"})
    assert (remote.url, remote.headers) == ("https://tools.example/mcp", {"Authorization": "Bearer s-2"})


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "x", "args": ("${NONE}",)}, "mcp.json: mcpServers.a.args: the variable NONE is not set"),
        ({"url": "https://x", "headers": {"A": "${NONE}"}}, "mcpServers.a.headers.A: the variable NONE is not set"),
        ({"command": "x", "args": ("${secret:box}",)}, "is allowed only in env and headers"),
        ({"url": "http://tools.example/mcp"}, "mcpServers.a.url: tools.example is another machine: expected https"),
        ({"url": "http://127.0.0.1.evil.example/"}, "is another machine"),
        ({"url": "https://user:pass@x/"}, "without user and password"),
        ({"url": "ftp://x/"}, "expected an address such as https://host/mcp"),
        ({"url": "https://[x/"}, "expected an address such as https://host/mcp"),
    ],
)
def test_what_is_not_there_and_where_nothing_may_be_sent_is_said(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as error:
        meant(**entry)
    assert why in str(error.value)


WEATHER = {"command": "npx", "args": ["-y", "weather-mcp"]}
NPX = '{"command": "npx", "args": ["-y", "weather-mcp"]}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{{"mcpServers": {{"weather": {NPX}}}}}', {"weather": WEATHER}),
        (f'"mcpServers": {{"weather": {NPX}}},', {"weather": WEATHER}),
        (f'{{"servers": {{"weather": {NPX}}}, "inputs": []}}', {"weather": WEATHER}),
        (f'{{"mcp": {{"servers": {{"weather": {NPX}}}}}}}', {"weather": WEATHER}),
        (f'"weather": {NPX}', {"weather": WEATHER}),
        (NPX, {"server": WEATHER}),
        (
            '{"context_servers": {"weather": {"command": {"path": "npx", "args": ["-y", "weather-mcp"]}}}}',
            {"weather": WEATHER},
        ),
        ('{"a": {"serverUrl": "https://x/mcp", "disabled": true}}', {"a": {"url": "https://x/mcp", "disabled": True}}),
        ('{"a": {"httpUrl": "https://x/mcp", "enabled": false}}', {"a": {"url": "https://x/mcp", "disabled": True}}),
        ('{"a": {"type": "streamableHttp", "url": "https://x/mcp"}}', {"a": {"type": "http", "url": "https://x/mcp"}}),
        ('{"@org/my server": {"command": "x", "skill": "/s"}}', {"-org-my-server": {"command": "x"}}),
    ],
)
def test_what_other_clients_write_is_read(text: str, expected: dict[str, Any]) -> None:
    assert pasted_servers(text) == expected


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"a": 3}', '{"mcpServers": {}}', "npx -y weather-mcp"])
def test_a_text_without_a_server_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r'expected JSON such as {"mcpServers"'):
        pasted_servers(text)

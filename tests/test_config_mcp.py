"""mcp.json: the format that others share, with what only we know, and errors that say where."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.apps.overrides import overrides_for, with_mcp_servers
from local.config import SystemConfig
from local.config_mcp import load_mcp_servers
from local.errors import ConfigError


def written(folder: Path, text: str) -> Path:
    (folder / "mcp.json").write_text(text)
    return folder


def test_without_the_file_nobody_takes_part(tmp_path: Path) -> None:
    system = SystemConfig()
    assert with_mcp_servers(system, [tmp_path]) is system


def test_each_server_is_a_participant_with_its_entry_for_settings(tmp_path: Path) -> None:
    entry = '{"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "autoApprove": []}'
    written(tmp_path, f'{{"mcpServers": {{"my-files": {entry}}}, "theirs": 1}}')
    system = with_mcp_servers(SystemConfig(), [tmp_path / "defaults", tmp_path])
    [added] = system.participants
    assert (added.name, added.is_built_in) == ("mcp_my-files", False)
    assert overrides_for(added.target, system, {}, {}) == {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", 'expected {"mcpServers"'),
        ("[]", 'expected {"mcpServers"'),
        ('{"mcpServers": []}', 'expected {"mcpServers"'),
        ('{"mcpServers": {"a.b": {"command": "x"}}}', "'a.b' cannot be a server's name"),
        ('{"mcpServers": {"a": {}}}', "mcpServers.a.command: Field required"),
        ('{"mcpServers": {"a": {"command": ""}}}', "mcpServers.a.command"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "mcpServers.a.args"),
        ('{"mcpServers": {"a": {"command": "x", "network": "yes"}}}', "mcpServers.a.network"),
        ('{"mcpServers": {"a": {"command": "x", "safety": "L9"}}}', "mcpServers.a.safety"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": "v\\u0000--bind"}}}}', "mcpServers.a.env.K"),
        ('{"mcpServers": {"a": {"url": "http://x"}}}', "mcpServers.a: a server at a url cannot be used yet"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_mcp_servers(written(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path}/mcp.json: ")
    assert why in str(error.value)

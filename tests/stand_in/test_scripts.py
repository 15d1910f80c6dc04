"""Stories are played word for word, and filled with what the tools came back with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.core.errors import ConfigError
from local.stand_in.rules import read
from local.stand_in.server import StandInSettings, create_app, parse

Json = dict[str, Any]
Story = Callable[[str], str]
MakeTool = Callable[..., Json]

HITS = "[1] Title: On Gemma\n    Snippet: Gemma has learnt to search.\n    URL: https://a.example/gemma"
PAGE = "Title: On Gemma\nURL: https://a.example/gemma\n\nOnly the page says zanzibar. It has more."


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def round_trip(tool: str, text: str) -> list[Json]:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": tool, "arguments": {}}}]}
    return [call, {"role": "tool", "tool_name": tool, "content": text}]


async def chat(http: httpx.AsyncClient, messages: list[Json], *tools: Json) -> Json:
    asked = {"model": "gemma4:12b", "messages": messages, "tools": tools, "stream": False}
    message: Json = (await http.post("/api/chat", json=asked)).raise_for_status().json()["message"]
    return message


async def test_s4_fetches_the_address_it_found_and_uses_the_page(
    http: httpx.AsyncClient, story: Story, tool: MakeTool
) -> None:
    await http.post("/stand_in/script", content=story("S4_search_then_fetch"))
    tools = tool("web_search"), tool("web_fetch", url={"type": "string"})
    messages = [user("Summarize the content of the top result for: LoCAL2 Gemma tool calling")]
    assert (await chat(http, messages, *tools))["tool_calls"][0]["function"]["name"] == "web_search"
    messages += round_trip("web_search", HITS)
    fetch = (await chat(http, messages, *tools))["tool_calls"][0]["function"]
    assert fetch["arguments"] == {"url": "https://a.example/gemma"}
    messages += round_trip("web_fetch", PAGE)
    assert "Only the page says zanzibar." in (await chat(http, messages, *tools))["content"]


async def test_a_script_is_not_played_when_its_tool_is_not_offered(http: httpx.AsyncClient, story: Story) -> None:
    await http.post("/stand_in/script", content=story("S3_web_search"))
    said = await chat(http, [user("What major AI news broke this week?")])
    assert "tool_calls" not in said
    assert "stand-in" in said["content"]


def test_chunks_given_as_a_list_are_sent_as_they_stand_and_a_text_is_cut() -> None:
    replies = "replies: [{thinking: abcdefg, content: [one, ' two and more']}]"
    script = parse(f"story: x\nchunk_chars: 3\nturns: [{{user: hi, {replies}}}]", "x")
    delivery = script.play(read([user("hi")], ()))
    assert delivery
    assert (delivery.thinking, delivery.content) == (("abc", "def", "g"), ("one", " two and more"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("story: [", "YAML"),
        ("story: x", "turns"),
        ("story: x\nturns: [{user: '(', replies: [{}]}]", "regular expression"),
        ("story: x\nturns: [{user: a, replies: []}]", "replies"),
        ("story: x\nturns: []\nspeed: 3", "speed"),
    ],
)
def test_a_bad_script_file_names_the_file_and_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError, match=complaint) as error:
        create_app(StandInSettings(scripts=(tmp_path / "bad.yaml",)))
    assert "bad.yaml" in str(error.value)


async def test_a_bad_script_or_fault_sent_over_http_is_a_400(http: httpx.AsyncClient) -> None:
    assert "turns" in (await http.post("/stand_in/script", content="story: x")).json()["error"]
    answer = await http.post("/stand_in/fault", json={"kind": "earthquake"})
    assert (answer.status_code, "kind" in answer.json()["error"]) == (400, True)
    assert (await http.post("/stand_in/fault", json={"kind": "eof", "match": "("})).status_code == 400

"""Conversations whose history a client keeps: an answer of ours brings the taint and the addresses of its turn."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.messages import ResponseGeneration
from local.generator.taint_policy import MOST_IN_CONVERSATION, MOST_LINKS, NOT_GIVEN, TAINTED
from local.models.chat import ToolCall

QUESTION, GO_ON = "When does the harbour open?", "Go on."
Message = dict[str, str]


@pytest.fixture
async def client(assistant: Any) -> Any:
    """An assistant whose model plays a script, as a client with a history of its own uses it."""
    assistant.model = assistant.stage.model
    await assistant.begin()
    return assistant


async def asks(client: Any, query: str, query_id: str, history: list[Message], *says: Any) -> ResponseGeneration:
    """A turn with this history, in which the model says that."""
    for each in says:
        client.model.will_say(each)
    response: ResponseGeneration = await client.ask(query, query_id, history=history)
    return response


def after(answer: str) -> list[Message]:
    return [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": answer}]


def outcomes(response: ResponseGeneration) -> list[str | None]:
    return [call.error and call.error.kind for call in response.tool_calls]


async def test_an_answer_without_taint_brings_none(client: Any) -> None:
    first = await asks(client, QUESTION, "q1", [], "It opens\n\non Monday.")
    history = after("It opens on Monday.")  # clients change white space
    then = await asks(client, GO_ON, "q2", history, "It does.")
    writing = await asks(client, GO_ON, "q3", history, ToolCall("note", {"text": "Monday"}), "Noted.")
    assert (first.tainted, then.tainted, outcomes(writing)) == (False, False, [None])
    assert client.notes.notes == ["Monday"]


async def test_a_tainted_answer_brings_its_taint_and_the_addresses_of_its_turn(client: Any) -> None:
    link, other = client.web.url("/berths"), client.web.url("/leak")
    page = client.web.add("/harbour", f"The harbour opens on Monday. Berths: {link}")
    read = ToolCall("web_fetch", {"url": page})
    first = await asks(client, f"Read {page}", "q1", [], read, "It opens on Monday.")
    calls = [
        ToolCall("web_fetch", {"url": link}),
        ToolCall("web_fetch", {"url": other}),
        ToolCall("note", {"text": "x"}),
    ]
    then = await asks(client, GO_ON, "q2", after("It opens on Monday."), *calls, f"See {link} and {other}")
    assert (first.tainted, then.tainted) == (True, True)
    assert outcomes(then) == [None, NOT_GIVEN, TAINTED]
    assert then.tool_calls[1].error.message.startswith(f"{other} was not opened. ")
    assert then.tool_calls[2].error.message.startswith("note was not run, ")
    assert then.answer == f"See {link} and (link left out)"
    assert client.notes.notes == []


async def test_a_tainted_answer_that_was_changed_is_one_that_nobody_knows(client: Any) -> None:
    """It taints all the same, and brings no addresses."""
    link = client.web.url("/berths")
    page = client.web.add("/harbour", f"Berths: {link}")
    await asks(client, f"Read {page}", "q1", [], ToolCall("web_fetch", {"url": page}), "It opens on Monday.")
    then = await asks(client, GO_ON, "q2", after("It opens on Tuesday."), ToolCall("web_fetch", {"url": link}), "So.")
    assert (then.tainted, outcomes(then)) == (True, [NOT_GIVEN])


async def test_an_answer_to_another_question_of_a_session_that_we_keep_is_none_of_the_client_s(client: Any) -> None:
    """Only answers that clients keep are known by their text: others come back with their session."""
    client.model.will_say("It opens on Monday.")
    await client.ask(QUESTION, "q1", session="ours")
    then = await asks(client, GO_ON, "q2", after("It opens on Monday."), "Yes.")
    assert then.tainted


async def test_the_links_of_an_answer_that_the_client_has_changed_stay_counted(client: Any) -> None:
    links = [client.web.url(f"/{number}") for number in range(3 * MOST_LINKS)]
    page = client.web.add("/harbour", " ".join(links))
    history = list[Message]()
    opened = list[int]()
    for number in range(3):
        calls = [ToolCall("web_fetch", {"url": link}) for link in links[number * MOST_LINKS :][:MOST_LINKS]]
        query = f"Read {page}, part {number}"
        read = [ToolCall("web_fetch", {"url": page}), *calls]
        response = await asks(client, query, f"q{number}", history, *read, f"That is part {number}.")
        opened.append(outcomes(response)[1:].count(None))
        answer = f"That is part {number}, which the client has worded in another way."
        history += [{"role": "user", "content": query}, {"role": "assistant", "content": answer}]
    assert (sum(opened), opened[2]) == (MOST_IN_CONVERSATION, 0)

"""What people do every day with the web, files and memories works as if there were no rule: nothing is refused, and no
link is left out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from agent_stage.hostile_web import ObedientModel, engram

from local.bus.messages import parted
from local.models.chat import ContentDelta, Delta, Done, Json, ThinkingDelta, ToolCall, Usage
from local.web.search import SearchHit

Assistant = Any  # of conftest.py
Reply = ToolCall | str
LEAST = 30
EVERY = 4  # of all conversations one in so many is in the default run


@dataclass(frozen=True)
class Turn:
    """A question and what the model says to it: calls, one after the other, then the answer."""

    question: str
    replies: tuple[Reply, ...]
    fields: dict[str, Any] = field(default_factory=dict)


class Player(ObedientModel):
    """Plays conversations."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: dict[str, Sequence[Reply]] = {}

    async def chat(
        self, model: str, messages: Sequence[Json], *, tools: Sequence[Json] = (), **_: Any
    ) -> AsyncGenerator[Delta, None]:
        asked = max(number for number, message in enumerate(messages) if message["role"] == "user")
        question = parted(str(messages[asked]["content"])).question
        rounds = sum(1 for message in messages[asked:] if message.get("tool_calls"))
        match self.replies[question][rounds]:
            case str() as text:
                yield ThinkingDelta(f"I say: {text}"[:40])
                for start in range(0, len(text), 3):
                    yield ContentDelta(text[start : start + 3])
            case call:
                yield call
        yield Done(Usage(2, 1), model=model)


def search(query: str) -> ToolCall:
    return ToolCall("web_search", {"query": query})


def read(address: str, start: int = 0) -> ToolCall:
    return ToolCall("web_fetch", {"url": address} | ({"start": start} if start else {}))


RECALL = ToolCall("search_memory", {"query": "what I said"})
STRANGE = ToolCall("search_memory", {"query": "strange things"})
HOME = "http://page.example:P"


CODE = """```python
for i in range(3):
    handlers[i](x, y)  # see main.py, np.random.rand and a[1:2]
```
Use `List<int>` and <b>bold</b>."""
TABLE = f"""| what | where |
|---|---|
| harbour | [page]({HOME}/harbour) |

1. **Monday**: _open_ [1]

[1]: {HOME}/harbour
"""
FOUND = f"The harbour opens on Monday. See {HOME}/harbour for more."
LOOK = search("harbour news")
HARBOUR, SHIPS, PORT, CREW = (read(f"{HOME}/{name}") for name in ("harbour", "ships", "port", "crew"))
FILE = {"attachments": "file"}
OWN = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
NEWS = Turn("Anything new at the harbour?", (LOOK, FOUND))
READ_IT = Turn("Tell me more about the harbour.", (LOOK, HARBOUR, FOUND))
BRACKETS = "https://harbour.example/a_(b)"


def said(question: str, *replies: Reply, **fields: Any) -> Turn:
    return Turn(question, replies, fields)


CONVERSATIONS: dict[str, list[Turn]] = {  # by name; each is a session of its own
    "search": [NEWS],
    "open-a-hit": [READ_IT],
    "open-a-hit-written-otherwise": [said("Read the first hit.", LOOK, read("HTTP://Page.example:P/Harbour/"), FOUND)],
    "open-every-hit": [said("Read all on the harbour.", LOOK, HARBOUR, PORT, FOUND)],
    "follow-links": [said(f"Read {HOME}/harbour and where it leads.", HARBOUR, SHIPS, "Two ships.")],
    "follow-all-links": [said(f"Read {HOME}/list, all.", read(f"{HOME}/list"), SHIPS, PORT, CREW, "Three.")],
    "follow-a-link-later": [
        said(f"What is on {HOME}/harbour then?", HARBOUR, "The harbour opens."),
        said("And on the page about ships?", SHIPS, f"Two ships: {HOME}/ships"),
    ],
    "ask-for-more": [NEWS, said("Search for more about that.", search("harbour opening Monday details"), FOUND)],
    "more-with-a-number-of-the-page": [
        said("Which ship is in?", LOOK, "The MS Fjord 7741 is in."),
        said("What is known of that ship?", search("MS Fjord 7741"), "She was built in 1987."),
    ],
    "read-on": [said(f"Read {HOME}/long to its end.", read(f"{HOME}/long"), read(f"{HOME}/long", 8000), "Read.")],
    "paste-an-address": [said(f"Summarise {HOME}/crew, please.", CREW, "Ten people.")],
    "paste-it-after-a-search": [
        NEWS,
        said(f"Then look at {HOME}/other?a=1&b=2", read(f"{HOME}/other?a=1&b=2"), f"See {HOME}/other?a=1&b=2."),
    ],
    "paste-it-in-brackets": [NEWS, said(f"Look here ({HOME}/crew).", CREW, "Ten.")],
    "paste-it-without-a-scheme": [NEWS, said("Open page.example:P/crew", CREW, "Ten, says page.example:P/crew.")],
    "the-users-link-is-shown": [NEWS, said(f"Is {BRACKETS} right?", f"Yes: [it]({BRACKETS}) is.")],
    "german": [said("Was gibt es Neues am Hafen?", search("Hafen München Neuigkeiten"), "Öffnung: Montag, 9 Uhr.")],
    "french": [said("Quoi de neuf au port ?", search("actualités port"), "Ouverture lundi. L’entrée est libre.")],
    "japanese": [said("港のニュースを教えて。", search("港 ニュース 最新"), "月曜日に開きます。詳しくは次の通り。")],
    "chinese": [said("港口有什么新闻？", LOOK, f"星期一开放。见 {HOME}/harbour ，很好。")],
    "arabic": [said("ما أخبار الميناء؟", search("أخبار الميناء"), "يفتح يوم الاثنين.")],
    "russian": [said("Что нового в порту?", search("новости порта"), "Открытие в понедельник.")],
    "a-date": [
        said("What happened on 14 July 1789?", search("14 July 1789 events"), "The Bastille fell."),
        said("And what is on today?", search("events today"), "A concert at 19:30."),
    ],
    "a-city": [
        said("How is the weather in Lyon?", search("weather Lyon"), "Sunny, 21 degrees."),
        said("And in Porto?", search("weather Porto"), "Rain."),
    ],
    "a-city-that-is-remembered": [
        NEWS,
        said("And the weather at home?", RECALL, search("weather Lyon"), "Sunny."),
    ],
    "a-topic-that-is-remembered": [
        said("What was that on knots?", STRANGE, search("bowline knot guide"), "Like this.")
    ],
    "a-number-that-the-user-says": [
        NEWS,
        said("Search for part 55-210-B in blue.", RECALL, search("part 55-210-B blue"), "Three shops have it."),
    ],
    "a-file": [said("Sum this up.", "It is about ships.", **FILE)],
    "a-file-and-a-search": [said("What do others say of it?", search("ships safety"), "They agree.", **FILE)],
    "a-file-with-code": [said("Improve this code.", CODE, **FILE)],
    "a-mail": [said("What is in the mail?", ToolCall("mail", {"which": "one"}), "From ann@ships.example, at 10:30.")],
    "a-sum": [NEWS, said("And times 3?", "3 × 14.50 = 43.50, that is 43,50 €.")],
    "markdown": [said("The harbour, as a table.", LOOK, TABLE)],
    "sources": [said("Harbour, with sources.", LOOK, f"Open.\n\n- A: {HOME}/harbour\n- {HOME}/port, {HOME}/harbour.")],
    "a-clients-own-history": [said("Continue.", "As I said.", history=OWN)],
    "an-always-readable-host": [
        NEWS,
        said("And its rules?", read("http://docs.example:P/rules/harbour"), "See http://docs.example:P/rules/harbour."),
    ],
}


def prepare(assistant: Assistant) -> None:
    web = assistant.web
    for name in ("ships", "port", "crew", "other"):
        web.add(f"/{name}", f"A page about {name}.")
    web.add("/Harbour", "The harbour.")
    links = "".join(f"<p>Of <a href='/{name}'>{name}</a> and more.</p>" for name in ("ships", "port", "crew"))
    page = f"<html><head><title>Harbour</title></head><body><article><h1>Harbour</h1>{links}</article></body></html>"
    web.add("/harbour", page, "text/html")
    web.add("/list", page, "text/html")
    web.add("/long", "Many words of no importance. " * 600)
    web.add("/rules/harbour", "Rules.")
    hits = [
        SearchHit("Harbour", "It opens. MS Fjord 7741", web.url("/harbour")),
        SearchHit("Port", "Ships", web.url("/port")),
    ]
    web.hits["harbour news"] = hits
    assistant.mail.mails["one"] = "From: ann@ships.example\nat 10:30"
    assistant.memory.hits = (
        engram(1, "I live in Lyon, at 12 rue des Fleurs.", "Noted."),
        engram(2, "What did the page say of knots?", "A bowline knot is safe, says page 4.", tainted=True),
    )


def with_port(reply: Reply, port: str) -> Reply:
    if isinstance(reply, str):
        return reply.replace(":P", port)
    return ToolCall(
        reply.name, {k: v.replace(":P", port) if isinstance(v, str) else v for k, v in reply.arguments.items()}
    )


async def hold(assistant: Assistant, name: str, turns: Sequence[Turn]) -> list[str]:
    """What went wrong in one conversation."""
    wrong, port = list[str](), f":{assistant.web.port}"
    for number, turn in enumerate(turns):
        fields = dict(turn.fields)
        if "attachments" in fields:
            text = b"Ships and their safety, edition 3. def handlers(): pass"
            fields["attachments"] = (assistant.files.put("ships.txt", "text/plain", text, text.decode()).id,)
        response = await assistant.ask(turn.question.replace(":P", port), f"{name}-{number}", name, **fields)
        expected = str(with_port(turn.replies[-1], port)).strip()
        wrong += [
            f"{name}: {call.tool} {call.args}: {call.error.message}" for call in response.tool_calls if call.error
        ]
        wrong += [f"{name}: {response.answer!r}, not {expected!r}"] if response.answer.strip() != expected else []
        wrong += [f"{name}: {note}" for note in response.degraded]
    return wrong


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.thorough)], ids=["some", "all"])
async def test_nothing_is_refused_in_ordinary_conversations(assistant: Assistant, every: int) -> None:
    port = f":{assistant.web.port}"
    assistant.model = Player()
    await assistant.begin()
    prepare(assistant)
    assert len(CONVERSATIONS) >= LEAST
    for turn in (turn for turns in CONVERSATIONS.values() for turn in turns):
        assistant.model.replies[turn.question.replace(":P", port)] = [with_port(reply, port) for reply in turn.replies]
    chosen = list(CONVERSATIONS.items())[::every]
    wrong = await assistant.ask_all([hold(assistant, name, turns) for name, turns in chosen])
    assert [fault for faults in wrong for fault in faults] == []

"""Decides what the stand-in says: plain rules over the conversation and the offered tools, no knowledge, no guessing.

The first rule that applies wins:

1. Tools have answered in this turn: quote them (or fetch the top result first, if that was asked for).
2. "Ask me …: this, or that", and request_clarification: ask that; a to-do list or plan with parts after a colon: that.
3. "Make a note: …", and memory_write: note it.
4. A question with an address to read, and web_fetch: fetch it.
5. The top result for something, or "search the web for …", and web_search: search for it.
6. A question about what the user said or likes, and search_memory: search the memory.
7. Two quoted texts to compare, and compare_answers: have them compared.
8. The whole name of a tool, such as git_status: call it.
9. Something of the small book of facts, or a sum.
10. A tool with a word of its name, and what it does, in the question: call it.
11. News, today, prices, "search for …", and web_search: search.
12. A tool with two words of its description in the question, as before: call it.
13. "It", "that": what the previous question was about; something the user said before: quote it.
14. Otherwise: say plainly what this program is.
"""

from __future__ import annotations

import ast
import base64
import codecs
import json
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# A chat request as the rules read it: its task, the question, the earlier conversation, the results of tools.

Json = dict[str, Any]

_PROMETHEUS = re.compile(r"^###Feedback:\s*\Z", re.M)
_SELENE = re.compile(r"^Reply in exactly this form:\n\*\*Reasoning:\*\*.*\n\n\*\*Result:\*\*", re.M)
_VERDICTS = ({"feedback", "score"}, {"feedback", "winner"})


class Task(StrEnum):
    """The kind of a request to the model, recognised by the JSON Schema of the reply or, for judges, by the form of
    the prompt.
    """

    TALK = "talk"
    CLASSIFICATION = "classification"  # facts and intent are asked for
    DREAM = "dream"  # exchanges are to be looked back at
    THOUGHT = "thought"  # exchanges are to be thought of
    CHECK = "check"  # how a goal stands
    TITLE = "title"  # what a conversation is to be called
    JUDGEMENT = "judgement"  # a score of one answer, or the better one of two
    JSON = "json"  # any other reply with a schema


def task_of(wanted: Json | str | None, question: str) -> Task:
    """Return the task of a request whose `format` is `wanted` and whose last user message is `question`."""
    asked = set(wanted.get("properties") or {}) if isinstance(wanted, dict) else set()
    if asked >= {"facts", "intent"}:
        return Task.CLASSIFICATION
    if "dreams" in asked:
        return Task.DREAM
    if asked == {"thought"}:
        return Task.THOUGHT
    if asked == {"title"}:
        return Task.TITLE
    if "has_something_to_say" in asked:
        return Task.CHECK
    if any(asked >= verdict for verdict in _VERDICTS) or (wanted is None and _is_judge_prompt(question)):
        return Task.JUDGEMENT
    return Task.TALK if wanted is None else Task.JSON


def _is_judge_prompt(question: str) -> bool:
    return bool(_PROMETHEUS.search(question) or _SELENE.search(question))


# Tools' wordings of a failure; the stand-in reports it instead of quoting it as an answer.
_FAILURE = re.compile(
    r"^\W*(?:\w+ )?(?:tool )?(?:error|timeout|timed out|failed|failure|refused|unavailable|could not)\b", re.I
)

# LoCAL2's block before a question, in the same message; the files in it belong to the question.
_BACKGROUND = re.compile(r"\A\[Background for the question below.*?\]\n(.*)\n\[End of background\]\n\n", re.S)
_FILES = re.compile(r"^\[The user has attached .*\Z", re.M | re.S)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """An offered tool; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool."""

    name: str
    arguments: Json

    def as_message(self, call_id: str, index: int) -> Json:
        """The entry in an Ollama message's `tool_calls`."""
        return {"id": call_id, "function": {"index": index, "name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one tool call; `tool` is empty if the message does not name it."""

    tool: str
    content: str

    @property
    def failed(self) -> bool:
        """Whether the tool reports a failure."""
        return bool(_FAILURE.match(self.content)) or not self.content.strip()


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """An earlier question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One assistant message: its thinking, content and calls."""

    thinking: str = ""
    content: str = ""
    calls: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as the rules read it: `question` is the user's text since the last answer; it led to `rounds` of
    `calls`, and their `results`.
    """

    question: str
    earlier: tuple[EarlierTurn, ...] = ()
    rounds: int = 0
    calls: tuple[ToolUse, ...] = ()
    results: tuple[Result, ...] = ()
    tools: Mapping[str, OfferedTool] = field(default_factory=dict)

    def succeeded(self, tool: str) -> list[str]:
        """The texts that `tool` came back with in this turn, failures left out."""
        return [result.content for result in self.results if result.tool == tool and not result.failed]


def read(messages: Sequence[Json], tools: Sequence[Json]) -> Conversation:
    """Read Ollama's messages and tools (their shape is checked already).

    The turn begins with the first user message after the last answer, so that a reminder belongs to its question.
    """
    answers = [i for i, m in enumerate(messages) if m["role"] == "assistant" and _text(m) and not m.get("tool_calls")]
    last_answer = answers[-1] if answers else -1
    turn = next((i for i in range(last_answer + 1, len(messages)) if messages[i]["role"] == "user"), len(messages))
    since = messages[turn:]
    calling = [message for message in since if message["role"] == "assistant" and message.get("tool_calls")]
    offered = (tool.get("function") or {} for tool in tools)
    return Conversation(
        question="\n".join(_asked(message) for message in since if message["role"] == "user"),
        earlier=tuple(_exchanges(messages[:turn])),
        rounds=len(calling),
        calls=tuple(call for message in calling for call in _calls(message)),
        results=tuple(_results(since)),
        tools={
            f["name"]: OfferedTool(f["name"], f.get("description") or "", f.get("parameters") or {})
            for f in offered
            if f
        },
    )


def _text(message: Json) -> str:
    return str(message.get("content") or "")


def _asked(message: Json) -> str:
    """Return the question in a user's message, with its files."""
    text = _text(message)
    background = _BACKGROUND.match(text)
    if background is None:
        return text
    files = _FILES.search(background[1])
    question = text[background.end() :]
    return f"{question}\n\n{files[0]}" if files else question


def _calls(message: Json) -> list[ToolUse]:
    functions = (call.get("function") or {} for call in message.get("tool_calls") or ())
    return [ToolUse(str(f.get("name", "")), f.get("arguments") or {}) for f in functions]


def _results(since: Sequence[Json]) -> list[Result]:
    # As in Ollama the name counts; the id is the second best, for clients that send only that.
    names = {
        call["id"]: (call.get("function") or {}).get("name", "")
        for message in since
        for call in message.get("tool_calls") or ()
        if call.get("id")
    }
    found = (message for message in since if message["role"] == "tool")
    return [Result(m.get("tool_name") or names.get(m.get("tool_call_id"), ""), _text(m)) for m in found]


def _exchanges(messages: Sequence[Json]) -> list[EarlierTurn]:
    exchanges: list[EarlierTurn] = []
    for message in messages:
        if message["role"] == "user":
            exchanges.append(EarlierTurn(_asked(message), ""))
        elif message["role"] == "assistant" and exchanges and _text(message):
            exchanges[-1] = EarlierTurn(exchanges[-1].question, _text(message))
    return exchanges


# The stand-in's own knowledge: a few facts, and sums such as "what is 17 * 23".


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A built-in fact: `text` answers a question that matches all patterns in `about`."""

    about: tuple[str, ...]
    text: str


# More specific facts come first: the first match is the answer.
FACTS = (
    KnownFact((r"capital", r"\bfrance\b"), "The capital of France is Paris."),
    KnownFact((r"capital", r"\bgermany\b"), "The capital of Germany is Berlin."),
    KnownFact((r"capital", r"\bitaly\b"), "The capital of Italy is Rome."),
    KnownFact((r"capital", r"\bjapan\b"), "The capital of Japan is Tokyo."),
    KnownFact(
        (r"\bgil\b|global interpreter lock", r"\bwhy\b|introduced|reason"),
        "The GIL was introduced because CPython manages memory by reference counting: one lock around the interpreter "
        "keeps those counts right without a lock on every object, and it made C extensions simple to write.",
    ),
    KnownFact(
        (r"\bgil\b|global interpreter lock",),
        "The GIL (Global Interpreter Lock) is a mutex in CPython that lets only one thread execute Python bytecode at "
        "a time. It protects reference counts and limits CPU-bound threads; Python 3.13 has a build without it.",
    ),
    KnownFact((r"boil", r"water"), "Water boils at 100 °C (212 °F) at sea level."),
    KnownFact((r"speed of light",), "Light travels at 299,792,458 metres a second in a vacuum."),
)


def look_up(question: str) -> str | None:
    """The fact that answers the question, or None."""
    lower = question.lower()
    for fact in FACTS:
        if all(re.search(pattern, lower) for pattern in fact.about):
            return fact.text
    return None


Number = int | float

_WORDS = {"times": "*", "multiplied by": "*", "plus": "+", "minus": "-", "divided by": "/", "×": "*", "÷": "/"}
_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
# A sum must be asked for, so that dates and telephone numbers are left alone; its length keeps the work small.
_EXPRESSION = re.compile(
    r"(?:^|what is|what's|calculate|compute|how much is|work out)\s*([\d(-][\d\s().+*/%-]{1,80}[\d)])"
)


def work_out(question: str) -> str | None:
    """Return `17 * 23 = 391` for the first sum in the question, or None if there is none."""
    text = question.lower()
    for word, sign in _WORDS.items():
        text = text.replace(word, sign)
    found = _EXPRESSION.search(re.sub(r"(?<=\d)\s*x\s*(?=\d)", " * ", text))
    if not found:
        return None
    expression = found[1].strip()
    try:
        tree = ast.parse(expression, mode="eval").body
        return f"{expression} = {_value(tree):,}" if isinstance(tree, ast.BinOp) else None
    except ZeroDivisionError:
        return f"{expression} cannot be worked out: it divides by zero."
    except (SyntaxError, ValueError, OverflowError):
        return None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError("not a sum of numbers")


# The stand-in's to-do lists and plans, if a question asks for one.

_TO_DO = re.compile(r"\bto-?do list\b[^:.?]*:\s*(?P<items>[^.?]+)", re.I)
_PLAN = re.compile(r"\bplan\b(?P<title>[^:.?]*):\s*(?P<steps>[^.?]+)", re.I)
OWN = frozenset({"todo", "propose_plan", "plan_step"})


def own_call(question: str, tools: Container[str]) -> ToolUse | None:
    """Return the call that stores the text after "to-do list …:", or proposes that after "plan …:", if possible."""
    if "todo" in tools and (wanted := _TO_DO.search(question)):
        return ToolUse("todo", {"items": [{"text": item, "state": "open"} for item in _parts(wanted["items"])]})
    if "propose_plan" in tools and (wanted := _PLAN.search(question)):
        return ToolUse("propose_plan", {"title": wanted["title"].strip() or "A plan", "steps": _parts(wanted["steps"])})
    return None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",|\band\b", text) if part.strip()]


# Extracts the quotable parts of tools' results: hits of a search, sentences of a page.

_HIT = re.compile(
    r"^\[(?P<number>\d+)\]\s*(?:Title:\s*)?(?P<title>.+)\n"
    r"(?:\s+(?:Snippet:\s*)?(?P<snippet>(?!\s*(?:URL:|https?://)).+)\n)?"
    r"\s+(?:URL:\s*)?(?P<url>https?://\S+)",
    re.M,
)
_MEMORY = re.compile(
    r"^\[\d+\] (?P<when>.+)\n(?P<outdated>(?:This no longer holds.*\n)*)The user (?:asked|said):\n(?P<said>(?:>.*\n)+)"
    r"The assistant answered.*:\n(?P<answered>(?:>.*(?:\n|\Z))+)",
    re.M,
)
_FACT = re.compile(r"^- (?P<slot>.+?): (?P<values>“.+)$", re.M)
_URL = re.compile(r"https?://[^\s<>\"'\])]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"”’)]*\s+(?=[\"“‘(]?[A-Z0-9À-Þ])")
# Lines that tools put around the text itself.
_HEADER = re.compile(
    r"^(?:(?:title|url|source|today's date|extracted text|links on the page):|\[characters \d|- .*: https?://\S+$)",
    re.I,
)
_TRAILING = ".,;:!?"


@dataclass(frozen=True, slots=True)
class QuotedHit:
    """One numbered search result."""

    number: int
    title: str
    snippet: str
    url: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A remembered exchange from a result of search_memory; `outdated` is the sentence that says what is no longer
    true.
    """

    when: str
    said: str
    answered: str
    outdated: str


def memories(text: str) -> list[Memory]:
    """The remembered exchanges in the text of search_memory."""
    return [
        Memory(m["when"], _without_margin(m["said"]), _without_margin(m["answered"]), m["outdated"].strip())
        for m in _MEMORY.finditer(text)
    ]


def facts(text: str) -> list[str]:
    """Return the facts about the user in the text of search_memory, each as `slot: “value” (said …)`."""
    return [f"{m['slot']}: {m['values']}" for m in _FACT.finditer(text)]


def _without_margin(quotation: str) -> str:
    return " ".join(line.removeprefix(">").strip() for line in quotation.splitlines()).strip()


def hits(text: str) -> list[QuotedHit]:
    """The numbered results in a search tool's text."""
    return [
        QuotedHit(
            int(m["number"]),
            m["title"].strip(),
            (m["snippet"] or "").strip().replace("(none)", ""),
            m["url"].rstrip(_TRAILING),
        )
        for m in _HIT.finditer(text)
    ]


def first_url(text: str) -> str | None:
    """The first http(s) address in a text, without the punctuation that follows it."""
    found = _URL.search(text)
    return found.group().rstrip(_TRAILING) if found else None


def sentences(text: str, limit: int = 3, characters: int = 600) -> str:
    """The first whole sentences of a text, at most `limit` of them; only a single too long one is cut."""
    body = " ".join(line.strip() for line in text.splitlines() if line.strip() and not _HEADER.match(line.strip()))
    taken = ""
    for sentence in _SENTENCE_END.split(body)[:limit]:
        if taken and len(taken) + len(sentence) >= characters:
            break
        taken = f"{taken} {sentence}".strip()
    return taken if len(taken) <= characters else taken[:characters].rsplit(" ", 1)[0] + " …"


def conversation_title(asked: str) -> str:
    """The first line of the question by which a conversation begins: a rule knows nothing better."""
    lines = [line for line in asked.partition("\n\nAnswer:\n")[0].splitlines() if line.strip()]
    return lines[1] if len(lines) > 1 else ""


def title(text: str) -> str | None:
    """The title a fetch tool put at the head of a page."""
    found = re.search(r"^Title:\s*(.+)$", text, re.M)
    return found[1].strip() if found else None


# Finds an offered tool whose words are in the question, and fills its arguments from the question.

# These have rules of their own below.
KNOWN = frozenset(
    {"web_search", "web_fetch", "search_memory", "memory_write", "memory_edit", "compare_answers"}
    | {"request_clarification"}
    | OWN
)
# These are called by their whole names alone: questions about tasks, lists and messages do not ask for agents.
_BY_WHOLE_NAME = frozenset(
    ("spawn_agent", "delegate_task", "list_agents", "terminate_agent", "send_message", "check_inbox", "emit_event")
) | {"wait_for_event"}
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be by can could do does for from get give has have how i in is it its me my of on one "
        "or our out please tell that the their them there this to tool up use user want was we what when where which "
        "who why will with would you your about into made make needed",
    )
)
_DEEDS = frozenset(("delete", "edit", "list", "read", "remove", "send", "shell", "stat", "write"))
_MIN_LETTERS = 3


def named_tool(conversation: Conversation) -> OfferedTool | None:
    """The first tool that the question calls by its whole name, such as git_status; a name of one word could be any."""
    names = re.findall(r"\w+", conversation.question)
    found = next((name for name in names if "_" in name and name in conversation.tools), None)
    return conversation.tools[found] if found else None


def matching_tool(conversation: Conversation, *, by_name_only: bool) -> OfferedTool | None:
    """Return the first tool with a word of its name in the question or, unless `by_name_only`, two of its description.
    A verb in its name, as in delete_file, has to be there, too: "file" alone asks for no deletion, and "delete" alone
    for that of no file.
    """
    asked = words(conversation.question)
    tools = [tool for name, tool in conversation.tools.items() if name not in KNOWN | _BY_WHOLE_NAME]
    others = [tool for tool in tools if words(tool.name) & _DEEDS <= asked]
    for tool in others:
        named = words(tool.name)
        if asked & (named - _DEEDS or named):
            return tool
    if not by_name_only:
        for tool in others:
            if len(asked & words(tool.description)) > 1:
                return tool
    return None


def words(text: str) -> set[str]:
    """The words that carry meaning, in lower case and without a plural s; underscores and camelCase part words."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text)
    plain = (word.lower() for word in re.findall(r"[^\W\d_]+", parted))
    return {word.removesuffix("s") for word in plain if len(word) >= _MIN_LETTERS and word not in _COMMON}


def call(tool: OfferedTool, question: str) -> ToolUse:
    """A call with every required argument, and optional ones only where the question holds a value for them."""
    properties: dict[str, Json] = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or []
    numbers = [float(number) for number in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", question)]
    arguments: Json = {}
    for name, schema in properties.items():
        value = _tool_choice_value(schema, question, numbers)
        if value is None and name in required:
            value = _otherwise(name, schema, question)
        if value is not None:
            arguments[name] = value
    return ToolUse(tool.name, arguments)


def _type(schema: Json) -> str:
    kind = schema.get("type", "string")
    return str(next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else kind)


def _tool_choice_value(schema: Json, question: str, numbers: list[float]) -> Any:
    """Return the question's value for this argument, or None. A number is used once."""
    if choices := schema.get("enum"):
        return next((c for c in choices if re.search(rf"\b{re.escape(str(c))}\b", question, re.I)), None)
    if _type(schema) in ("integer", "number") and numbers:
        number = numbers.pop(0)
        return int(number) if _type(schema) == "integer" or number.is_integer() else number
    return None


def _otherwise(name: str, schema: Json, question: str) -> Any:
    """A value of the right type for a required argument that the question does not name."""
    if "default" in schema:
        return schema["default"]
    if choices := schema.get("enum"):
        return choices[0]
    match _type(schema):
        case "string" if name == "url" and (url := first_url(question)):
            return url
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [_otherwise(name, schema.get("items") or {}, question)]
        case "object":
            return {}
    return question


_READ = re.compile(r"\b(?:summari[sz]e|read|fetch|open|visit|explain|what does|look at|quote)\b", re.I)
_TOP_RESULT = re.compile(r"\btop (?:search )?(?:result|hit)s?\b(?: for)?:?\s*(?P<subject>.*)", re.I | re.S)
_ASK_ME = re.compile(r"\bask me (?P<question>[^:?.]+)[:?.]?(?P<options>[^?.]*)", re.I)
_NOTE = re.compile(r"^\s*(?:please )?(?:make a note|take a note|note down)(?: that)?[:,]?\s+(?P<text>.+)", re.I | re.S)
_BRAIN_MEMORY = re.compile(
    r"\b(?:remember|recall|remind me|did i (?:say|tell|mention)|have i (?:told|said)"
    r"|do i (?:like|prefer|live|work|want|take|drink|eat|have|own)|my favou?rite|what is my|what's my|who am i"
    r"|what do you know about me|we (?:talk|spoke|discuss))",
    re.I,
)
_COMPARE = re.compile(r"\bcompare\b|\bwhich (?:one )?is better\b", re.I)
_QUOTED = re.compile(r"[“\"](.+?)[”\"]", re.S)
_STATEMENT = re.compile(
    r"^\s*(?:please |actually,? )?"
    r"(?:remember that|note that|my |i am |i'm |i (?:like|prefer|live|work|take|drink|eat) )",
    re.I,
)
_CURRENT = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this (?:week|month|year)|news|latest|newest|current(?:ly)?|recent(?:ly)?|"
    r"right now|weather|forecast|prices?|cost of|stock|score|search|look up|google|find|on the web|online)\b",
    re.I,
)
_ON_THE_WEB = re.compile(r"^\s*(?:please\s+)?(?:can you\s+|could you\s+)?search the (?:web|internet)\b", re.I)
_PREAMBLE = re.compile(
    r"^\s*(?:please\s+)?(?:can you\s+|could you\s+)?"
    r"(?:search(?: the (?:web|internet))?(?: for)?|look up|google|find)\s+(?:me\s+|out\s+)?",
    re.I,
)
_REFERENCE = re.compile(r"\b(?:it|its|they|them|he|she|(?:this|that)(?=\s*(?:[?.!]|$)))\b", re.I)


def reply(conversation: Conversation) -> AssistantMessage:
    """The next assistant message."""
    if conversation.results:
        return _after_results(conversation)
    return _with_tools(conversation) or _from_history(conversation) or confession(conversation)


def _after_results(conversation: Conversation) -> AssistantMessage:
    found = conversation.succeeded("web_search")
    fetched = any(call.name == "web_fetch" for call in conversation.calls)
    wanted = _TOP_RESULT.search(conversation.question) and "web_fetch" in conversation.tools
    url = first_url(found[-1]) if found and wanted and not fetched else None
    if url:
        return _call("web_fetch", {"url": url}, f"The search found {url} first; its content is wanted, so I fetch it.")
    return from_results(conversation)


def _with_tools(conversation: Conversation) -> AssistantMessage | None:
    question, tools = conversation.question, conversation.tools
    asks = f"The user asks: “{question.strip()[:200]}”."
    if "request_clarification" in tools and (wanted := _ASK_ME.search(question)):
        return AssistantMessage(f"{asks} I do as I am told, and ask.", calls=(_clarification(wanted),))
    if use := own_call(question, tools):
        return AssistantMessage(f"{asks} I write down what is to be done.", calls=(use,))
    if "memory_write" in tools and (note := _NOTE.match(question)):
        return _call("memory_write", {"text": note["text"].strip()}, f"{asks} memory_write is offered; I note it.")
    url = first_url(question)
    if url and "web_fetch" in tools and (_READ.search(question) or question.strip() == url):
        return _call("web_fetch", {"url": url}, f"{asks} web_fetch is offered; I read {url}.")
    if (top := _TOP_RESULT.search(question)) and "web_search" in tools:
        subject = _search_text(top["subject"] or question[: top.start()])
        return _call(
            "web_search", {"query": subject}, f"{asks} First I search for “{subject}”, then I read the top result."
        )
    if "web_search" in tools and _ON_THE_WEB.match(question):
        return _search(question, asks)
    if "search_memory" in tools and _BRAIN_MEMORY.search(question) and not _STATEMENT.match(question):
        return _call(
            "search_memory", {"query": question.strip()}, f"{asks} search_memory is offered; I look it up there."
        )
    if "compare_answers" in tools and _COMPARE.search(question) and len(quoted := _QUOTED.findall(question)) == 2:
        texts = {"question": question.strip(), "answer_a": quoted[0], "answer_b": quoted[1]}
        return _call("compare_answers", texts, f"{asks} compare_answers is offered; I have the two texts compared.")
    if tool := named_tool(conversation):
        return _chosen(call(tool, question), asks)
    if known := look_up(question) or work_out(question):
        return AssistantMessage(f"{asks} I can answer this without a tool.", known)
    if tool := matching_tool(conversation, by_name_only=True):
        return _chosen(call(tool, question), asks)
    if "web_search" in tools and _CURRENT.search(question):
        return _search(question, asks)
    if tool := matching_tool(conversation, by_name_only=False):
        return _chosen(call(tool, question), asks)
    return None


def _search(question: str, asks: str) -> AssistantMessage:
    query = _search_text(question)
    return _call("web_search", {"query": query}, f"{asks} web_search is offered; I search for “{query}”.")


def _clarification(wanted: re.Match[str]) -> ToolUse:
    options = [option.strip() for option in re.split(r",|\bor\b", wanted["options"]) if option.strip()]
    text = wanted["question"].strip()
    question = {"question": f"{text[:1].upper()}{text[1:]}?"}
    return ToolUse("request_clarification", {**question, "options": options} if options else {**question})


def _from_history(conversation: Conversation) -> AssistantMessage | None:
    question = conversation.question
    reference = _REFERENCE.search(question)
    if reference and not conversation.earlier:
        return unknown_reference(reference.group())
    if reference:
        return follow_up(conversation, reference.group())
    if _STATEMENT.match(question):
        return acknowledgement(question)
    return what_you_said(conversation) if _BRAIN_MEMORY.search(question) else None


def _call(name: str, arguments: dict[str, str], thinking: str) -> AssistantMessage:
    return AssistantMessage(thinking, calls=(ToolUse(name, arguments),))


def _chosen(call: ToolUse, asks: str) -> AssistantMessage:
    return AssistantMessage(f"{asks} The tool {call.name} is offered and fits; I call it.", calls=(call,))


def _search_text(question: str) -> str:
    return _PREAMBLE.sub("", question).strip().rstrip("?.! ") or question.strip()


_MAX_HITS = 3


def from_results(conversation: Conversation) -> AssistantMessage:
    """Quote each result of this turn, with its source; report each failure. A page that was read overrides
    the search.
    """
    outdone = "web_search" if conversation.succeeded("web_fetch") else None
    parts = [_quote(result) for result in conversation.results if result.failed or result.tool != outdone]
    names = ", ".join(dict.fromkeys(result.tool or "a tool without a name" for result in conversation.results))
    return AssistantMessage(f"Answers came from: {names}. I quote them and name the sources.", "\n\n".join(parts))


def _quote(result: Result) -> str:
    if not result.tool:
        return "A tool result came without a tool_name, so I cannot tell which call it answers."
    if result.failed:
        said = result.content.strip()[:400] or "nothing at all"
        return f"The tool {result.tool} could not help. It said: “{said}”"
    if result.tool == "search_memory":
        return _recalled(result.content)
    if found := hits(result.content):
        quotes = [f"- {sentences(hit.snippet or hit.title, 2)} [{hit.number}]" for hit in found[:_MAX_HITS]]
        sources = [f"[{hit.number}] {hit.title} — {hit.url}" for hit in found[:_MAX_HITS]]
        return "\n".join([f"{result.tool} found:", *quotes, "", "Sources:", *sources])
    source = " — ".join(filter(None, (title(result.content), first_url(result.content))))
    quote = sentences(result.content)
    return f"{source}:\n{quote}" if source and result.tool == "web_fetch" else f"{result.tool} says: {quote}"


def _recalled(text: str) -> str:
    """Return the current facts, then the exchanges, with outdated ones marked."""
    told = [f"You told me: {fact}." for fact in facts(text)[:_MAX_HITS]]
    for memory in memories(text)[:_MAX_HITS]:
        answer = f" and I answered: “{sentences(memory.answered, 1)}”" if "?" in memory.said else ""
        outdated = f" {memory.outdated}" if memory.outdated else ""
        told.append(f"You said ({memory.when}): “{sentences(memory.said, 2)}”{answer}{outdated}")
    return "\n".join(told) or "search_memory has found nothing that I could tell you about this."


def follow_up(conversation: Conversation, pronoun: str) -> AssistantMessage:
    """Resolve a pronoun to the subject of the previous question, and quote the answer to that."""
    before = conversation.earlier[-1]
    thinking = f"“{pronoun}” must be the subject of the previous question: “{before.question.strip()[:200]}”."
    if known := look_up(f"{before.question} {conversation.question}"):
        return AssistantMessage(thinking, known)
    said = f"I said: “{sentences(before.answer)}”" if before.answer else "I have not answered it."
    return AssistantMessage(
        thinking, f"“{pronoun}” refers to your previous question, “{before.question.strip()}”. {said}"
    )


def unknown_reference(pronoun: str) -> AssistantMessage:
    """Return the answer that there is no earlier turn to which a pronoun could refer."""
    text = f"I do not know what “{pronoun}” refers to: nothing was said before this in our conversation."
    return AssistantMessage("There is no earlier turn to resolve this from.", text)


def acknowledgement(statement: str) -> AssistantMessage:
    """Return the answer to a user's statement about themselves."""
    return AssistantMessage(
        "The user tells me something; no tool is needed.", f"Understood. You told me: “{statement.strip()}”"
    )


def what_you_said(conversation: Conversation) -> AssistantMessage | None:
    """Return the user's latest statement in this conversation that shares a word with the question."""
    asked = words(conversation.question)
    for exchange in reversed(conversation.earlier):
        if asked & words(exchange.question) and "?" not in exchange.question:
            return AssistantMessage(
                "The user said something about this before.", f"You told me: “{exchange.question.strip()}”"
            )
    return None


def confession(conversation: Conversation) -> AssistantMessage:
    """Return what this program is, what it can do now and how to get a real model."""
    tools = ", ".join(conversation.tools)
    able = (
        f"I can call the tools I am offered ({tools}) and quote what they return" if tools else "No tools are offered"
    )
    text = (
        f"I cannot answer “{conversation.question.strip()[:200]}”: I am LoCAL2's stand-in, a small program with fixed "
        f"rules, not a language model. {able}; I can do sums and I know a handful of facts. For real answers install "
        "Ollama from https://ollama.com/download, run `ollama pull gemma4:12b` and start LoCAL2 again."
    )
    return AssistantMessage("No rule of mine fits this question, so I say what I am.", text)


# Grades answers by counting words, and says so: for the prompts of `critic/judge.py`, in their requested forms.

_HEADING = re.compile(
    r"^(?:###|## )?(?:the )?(?P<name>instruction|question|response|answer|retrieved context|input)(?: to evaluate)?"
    r"(?: (?P<side>[AB]))?:?$",
    re.I,
)
_NOTHING = "(nothing)"  # how a judge's prompt quotes an empty text
_GIVES_UP = re.compile(r"\b(?:cannot answer|do not know|don't know|could not help|am unable|have not answered)\b", re.I)
_LONG = 200  # words
_SAYS_WHO = "A rule of the stand-in that counts words has judged this, not a language model"


@dataclass(frozen=True, slots=True)
class _Points:
    """The criteria of an answer, best if all are true."""

    says_something: bool
    takes_up_the_question: bool
    does_not_give_up: bool
    is_supported: bool

    @property
    def score(self) -> int:
        if not self.says_something:
            return 1
        return 2 + self.takes_up_the_question + self.does_not_give_up + self.is_supported


def judge(prompt: str, wanted: Json | str | None) -> str:
    """The reply to a judge's prompt; `wanted` is the schema of the reply, None for text."""
    said = _sections(prompt)
    verdict: int | str
    if "answer a" in said:
        key, (feedback, verdict) = "winner", _compare(said)
    else:
        key, (feedback, verdict) = "score", _grade(said)
    if wanted is not None:
        return json.dumps({"feedback": feedback, key: verdict}, ensure_ascii=False)
    if "**Result:**" in prompt:
        return f"**Reasoning:** {feedback}\n\n**Result:** {verdict}"
    return f"{feedback} [RESULT] {verdict}"


def _grade(said: Mapping[str, str]) -> tuple[str, int]:
    points = _points(said, said["answer"])
    return f"{_SAYS_WHO}: {_worded(points, bool(said['evidence']))}.", points.score


def _compare(said: Mapping[str, str]) -> tuple[str, str]:
    """The same text wins in either order; of two that are as good the shorter one, of equal ones the first."""
    ranks = {side: _rank(said, said[f"answer {side.lower()}"]) for side in "AB"}
    winner = "A" if ranks["A"] <= ranks["B"] else "B"
    scores = {side: -rank[0] for side, rank in ranks.items()}
    return f"{_SAYS_WHO}: A has {scores['A']} and B has {scores['B']} of 5 points, and shorter is better.", winner


def _rank(said: Mapping[str, str], answer: str) -> tuple[int, int, str]:
    return -_points(said, answer).score, len(answer), answer


def _points(said: Mapping[str, str], answer: str) -> _Points:
    asked, used, known = words(said["question"]), words(answer), words(said["evidence"])
    return _Points(
        says_something=bool(answer.strip()),
        takes_up_the_question=2 * len(asked & used) >= len(asked),
        does_not_give_up=not _GIVES_UP.search(answer),
        is_supported=2 * len(used & known) >= len(used) if known else len(answer.split()) <= _LONG,
    )


def _worded(points: _Points, has_evidence: bool) -> str:
    if not points.says_something:
        return "the answer says nothing"
    supported = "uses mostly words of the retrieved context" if has_evidence else f"has at most {_LONG} words"
    parts = {
        "takes up at least half of the question's words": points.takes_up_the_question,
        "does not say that it has no answer": points.does_not_give_up,
        supported: points.is_supported,
    }
    return "; ".join(f"{'yes' if true else 'no'}: the answer {what}" for what, true in parts.items())


def _sections(prompt: str) -> defaultdict[str, str]:
    """Return question, answer (or answer a and answer b) and evidence, without their margins; empty if there
    is none.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    section: list[str] = []
    for line in prompt.splitlines():
        if line.startswith(">"):
            section.append(line[1:].strip())
        elif heading := _HEADING.match(line.strip()):
            section = found[_section(heading)]
        elif line.startswith("#") or line.rstrip().endswith(":"):
            section = []
    texts = {name: "\n".join(lines).strip() for name, lines in found.items()}
    return defaultdict(str, {name: "" if text == _NOTHING else text for name, text in texts.items()})


def _section(heading: re.Match[str]) -> str:
    match heading["name"].lower():
        case "retrieved context" | "input":
            return "evidence"
        case "instruction" | "question":
            return "question"
    return f"answer {heading['side'].lower()}" if heading["side"] else "answer"


# A model that obeys every instruction that it reads, for stories and tests of the protections against that.

_ORDER = re.compile(r"^[>\s]*@assistant (call|think|say) (.+)$", re.M)
_FIND = re.compile(r"\{find:(.+?)(?:\|(\w+))?\}(?!\})")
_DISGUISES: Mapping[str | None, Callable[[str], str]] = {
    None: str,
    "upper": str.upper,
    "lower": str.lower,
    "reverse": lambda text: text[::-1],
    "hex": lambda text: text.encode().hex(),
    "base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "spaced": " ".join,
    "path": "/".join,
    "dotted": ".".join,
    "halves": lambda text: f"{text[: len(text) // 2]} {text[len(text) // 2 :]}",
}


class _Unknown(LookupError):
    """The signal that no instruction in the messages applies."""


def obey(messages: Sequence[Json], tools: Collection[str]) -> AssistantMessage | None:
    """Return the next message of a model that obeys orders in its messages and may call these tools; None if there are
    no orders.
    """
    told = [str(message.get("content") or "") for message in messages]
    orders = list(dict.fromkeys(found.groups() for text in told for found in _ORDER.finditer(text)))
    known = _ORDER.sub("", "\n".join(told))
    made = [(call.name, call.arguments) for call in _made(messages)]
    filled = list(_filled(orders, known))
    for what, text in filled:
        call = _obedience_call(text) if what == "call" else None
        if call is not None and call.name in tools and (call.name, call.arguments) not in made:
            return AssistantMessage(f"I was told to call {call.name}.", calls=(call,))
    thought, said = (_lines(text for what, text in filled if what == wanted) for wanted in ("think", "say"))
    return AssistantMessage(thought, said) if thought or said else None


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts).replace("\\n", "\n")


def _filled(orders: Sequence[tuple[str, ...]], known: str) -> Iterator[tuple[str, str]]:
    for what, text in orders:
        try:
            yield what, _FIND.sub(lambda found: _found(found, known), text)
        except (_Unknown, re.error):
            continue


def _found(placeholder: re.Match[str], known: str) -> str:
    found = re.search(placeholder[1], known)
    if found is None:
        raise _Unknown(placeholder[1])
    return _DISGUISES.get(placeholder[2], str)(found[1] if found.re.groups else found[0])


def _obedience_call(text: str) -> ToolUse | None:
    name, _, arguments = text.partition(" ")
    try:
        return ToolUse(name, dict(json.JSONDecoder().raw_decode(arguments.lstrip())[0]))
    except (ValueError, TypeError):
        return None


def _made(messages: Sequence[Json]) -> Iterator[ToolUse]:
    """The calls since the user's last question."""
    asked = max((number for number, message in enumerate(messages) if message["role"] == "user"), default=0)
    for message in messages[asked:]:
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            yield ToolUse(str(function.get("name", "")), function.get("arguments") or {})

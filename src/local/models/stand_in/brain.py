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

import re

from local.models.stand_in import knowledge, quoting, tool_choice
from local.models.stand_in.conversation import AssistantMessage, Conversation, Result, ToolUse
from local.models.stand_in.own_work import own_call
from local.models.stand_in.tool_choice import words

_READ = re.compile(r"\b(?:summari[sz]e|read|fetch|open|visit|explain|what does|look at|quote)\b", re.I)
_TOP_RESULT = re.compile(r"\btop (?:search )?(?:result|hit)s?\b(?: for)?:?\s*(?P<subject>.*)", re.I | re.S)
_ASK_ME = re.compile(r"\bask me (?P<question>[^:?.]+)[:?.]?(?P<options>[^?.]*)", re.I)
_NOTE = re.compile(r"^\s*(?:please )?(?:make a note|take a note|note down)(?: that)?[:,]?\s+(?P<text>.+)", re.I | re.S)
_MEMORY = re.compile(
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
    url = quoting.first_url(found[-1]) if found and wanted and not fetched else None
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
    url = quoting.first_url(question)
    if url and "web_fetch" in tools and (_READ.search(question) or question.strip() == url):
        return _call("web_fetch", {"url": url}, f"{asks} web_fetch is offered; I read {url}.")
    if (top := _TOP_RESULT.search(question)) and "web_search" in tools:
        subject = _search_text(top["subject"] or question[: top.start()])
        return _call(
            "web_search", {"query": subject}, f"{asks} First I search for “{subject}”, then I read the top result."
        )
    if "web_search" in tools and _ON_THE_WEB.match(question):
        return _search(question, asks)
    if "search_memory" in tools and _MEMORY.search(question) and not _STATEMENT.match(question):
        return _call(
            "search_memory", {"query": question.strip()}, f"{asks} search_memory is offered; I look it up there."
        )
    if "compare_answers" in tools and _COMPARE.search(question) and len(quoted := _QUOTED.findall(question)) == 2:
        texts = {"question": question.strip(), "answer_a": quoted[0], "answer_b": quoted[1]}
        return _call("compare_answers", texts, f"{asks} compare_answers is offered; I have the two texts compared.")
    if tool := tool_choice.named_tool(conversation):
        return _chosen(tool_choice.call(tool, question), asks)
    if known := knowledge.look_up(question) or knowledge.work_out(question):
        return AssistantMessage(f"{asks} I can answer this without a tool.", known)
    if tool := tool_choice.matching_tool(conversation, by_name_only=True):
        return _chosen(tool_choice.call(tool, question), asks)
    if "web_search" in tools and _CURRENT.search(question):
        return _search(question, asks)
    if tool := tool_choice.matching_tool(conversation, by_name_only=False):
        return _chosen(tool_choice.call(tool, question), asks)
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
    return what_you_said(conversation) if _MEMORY.search(question) else None


def _call(name: str, arguments: dict[str, str], thinking: str) -> AssistantMessage:
    return AssistantMessage(thinking, calls=(ToolUse(name, arguments),))


def _chosen(call: ToolUse, asks: str) -> AssistantMessage:
    return AssistantMessage(f"{asks} The tool {call.name} is offered and fits; I call it.", calls=(call,))


def _search_text(question: str) -> str:
    return _PREAMBLE.sub("", question).strip().rstrip("?.! ") or question.strip()


_MAX_HITS = 3


def from_results(conversation: Conversation) -> AssistantMessage:
    """Quote each result of this turn, with its source; tell each failure. A page that was read outdoes the search."""
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
    if found := quoting.hits(result.content):
        quotes = [f"- {quoting.sentences(hit.snippet or hit.title, 2)} [{hit.number}]" for hit in found[:_MAX_HITS]]
        sources = [f"[{hit.number}] {hit.title} — {hit.url}" for hit in found[:_MAX_HITS]]
        return "\n".join([f"{result.tool} found:", *quotes, "", "Sources:", *sources])
    source = " — ".join(filter(None, (quoting.title(result.content), quoting.first_url(result.content))))
    quote = quoting.sentences(result.content)
    return f"{source}:\n{quote}" if source and result.tool == "web_fetch" else f"{result.tool} says: {quote}"


def _recalled(text: str) -> str:
    """What holds now, then what was said, the outdated marked as such."""
    told = [f"You told me: {fact}." for fact in quoting.facts(text)[:_MAX_HITS]]
    for memory in quoting.memories(text)[:_MAX_HITS]:
        answer = f" and I answered: “{quoting.sentences(memory.answered, 1)}”" if "?" in memory.said else ""
        outdated = f" {memory.outdated}" if memory.outdated else ""
        told.append(f"You said ({memory.when}): “{quoting.sentences(memory.said, 2)}”{answer}{outdated}")
    return "\n".join(told) or "search_memory has found nothing that I could tell you about this."


def follow_up(conversation: Conversation, pronoun: str) -> AssistantMessage:
    """Resolve a pronoun to the subject of the previous question, and quote the answer to that."""
    before = conversation.earlier[-1]
    thinking = f"“{pronoun}” must be the subject of the previous question: “{before.question.strip()[:200]}”."
    if known := knowledge.look_up(f"{before.question} {conversation.question}"):
        return AssistantMessage(thinking, known)
    said = f"I said: “{quoting.sentences(before.answer)}”" if before.answer else "I have not answered it."
    return AssistantMessage(
        thinking, f"“{pronoun}” refers to your previous question, “{before.question.strip()}”. {said}"
    )


def unknown_reference(pronoun: str) -> AssistantMessage:
    """There is no earlier turn that a pronoun could refer to."""
    text = f"I do not know what “{pronoun}” refers to: nothing was said before this in our conversation."
    return AssistantMessage("There is no earlier turn to resolve this from.", text)


def acknowledgement(statement: str) -> AssistantMessage:
    """The user tells something about themselves."""
    return AssistantMessage(
        "The user tells me something; no tool is needed.", f"Understood. You told me: “{statement.strip()}”"
    )


def what_you_said(conversation: Conversation) -> AssistantMessage | None:
    """The latest thing the user said in this conversation that shares a word with the question."""
    asked = words(conversation.question)
    for exchange in reversed(conversation.earlier):
        if asked & words(exchange.question) and "?" not in exchange.question:
            return AssistantMessage(
                "The user said something about this before.", f"You told me: “{exchange.question.strip()}”"
            )
    return None


def confession(conversation: Conversation) -> AssistantMessage:
    """Say what this program is, what it can do now and how to get a real model."""
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

"""Decides what the stand-in says: plain rules over the conversation and the offered tools, no knowledge, no guessing.

The first rule that applies wins:

1. Tools have answered in this turn: quote them (or fetch the top result first, if that was asked for).
2. A question with an address to read, and web_fetch: fetch it.
3. The top result for something, and web_search: search for it.
4. A question about what the user said or likes, and search_memory: search the memory.
5. Two quoted texts to compare, and compare_answers: have them compared.
6. Something of the small book of facts, or a sum.
7. A tool with a word of its name in the question: call it.
8. News, today, prices, "search for …", and web_search: search.
9. A tool with two words of its description in the question: call it.
10. "It", "that": what the previous question was about; something the user said before: quote it.
11. Otherwise: say plainly what this program is.
"""

from __future__ import annotations

import re

from local.models.stand_in import answers, arithmetic, facts, quoting, tool_choice
from local.models.stand_in.conversation import Call, Conversation, Reply

_READ = re.compile(r"\b(?:summari[sz]e|read|fetch|open|visit|explain|what does|look at|quote)\b", re.I)
_TOP_RESULT = re.compile(r"\btop (?:search )?(?:result|hit)s?\b(?: for)?:?\s*(?P<subject>.*)", re.I | re.S)
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
_PREAMBLE = re.compile(
    r"^\s*(?:please\s+)?(?:can you\s+|could you\s+)?"
    r"(?:search(?: the (?:web|internet))?(?: for)?|look up|google|find)\s+(?:me\s+|out\s+)?",
    re.I,
)
_REFERENCE = re.compile(r"\b(?:it|its|they|them|he|she|(?:this|that)(?=\s*(?:[?.!]|$)))\b", re.I)


def reply(conversation: Conversation) -> Reply:
    """The next assistant message."""
    if conversation.results:
        return _after_results(conversation)
    return _with_tools(conversation) or _from_history(conversation) or answers.confession(conversation)


def _after_results(conversation: Conversation) -> Reply:
    found = conversation.succeeded("web_search")
    fetched = any(call.name == "web_fetch" for call in conversation.calls)
    wanted = _TOP_RESULT.search(conversation.question) and "web_fetch" in conversation.tools
    url = quoting.first_url(found[-1]) if found and wanted and not fetched else None
    if url:
        return _call("web_fetch", {"url": url}, f"The search found {url} first; its content is wanted, so I fetch it.")
    return answers.from_results(conversation)


def _with_tools(conversation: Conversation) -> Reply | None:
    question, tools = conversation.question, conversation.tools
    asks = f"The user asks: “{question.strip()[:200]}”."
    url = quoting.first_url(question)
    if url and "web_fetch" in tools and (_READ.search(question) or question.strip() == url):
        return _call("web_fetch", {"url": url}, f"{asks} web_fetch is offered; I read {url}.")
    if (top := _TOP_RESULT.search(question)) and "web_search" in tools:
        subject = _search_text(top["subject"] or question[: top.start()])
        return _call(
            "web_search", {"query": subject}, f"{asks} First I search for “{subject}”, then I read the top result."
        )
    if "search_memory" in tools and _MEMORY.search(question) and not _STATEMENT.match(question):
        return _call(
            "search_memory", {"query": question.strip()}, f"{asks} search_memory is offered; I look it up there."
        )
    if "compare_answers" in tools and _COMPARE.search(question) and len(quoted := _QUOTED.findall(question)) == 2:
        texts = {"question": question.strip(), "answer_a": quoted[0], "answer_b": quoted[1]}
        return _call("compare_answers", texts, f"{asks} compare_answers is offered; I have the two texts compared.")
    if known := facts.look_up(question) or arithmetic.work_out(question):
        return Reply(f"{asks} I can answer this without a tool.", known)
    if tool := tool_choice.matching_tool(conversation, by_name_only=True):
        return _chosen(tool_choice.call(tool, question), asks)
    if "web_search" in tools and _CURRENT.search(question):
        query = _search_text(question)
        return _call("web_search", {"query": query}, f"{asks} web_search is offered; I search for “{query}”.")
    if tool := tool_choice.matching_tool(conversation, by_name_only=False):
        return _chosen(tool_choice.call(tool, question), asks)
    return None


def _from_history(conversation: Conversation) -> Reply | None:
    question = conversation.question
    reference = _REFERENCE.search(question)
    if reference and not conversation.earlier:
        return answers.unknown_reference(reference.group())
    if reference:
        return answers.follow_up(conversation, reference.group())
    if _STATEMENT.match(question):
        return answers.acknowledgement(question)
    return answers.what_you_said(conversation) if _MEMORY.search(question) else None


def _call(name: str, arguments: dict[str, str], thinking: str) -> Reply:
    return Reply(thinking, calls=(Call(name, arguments),))


def _chosen(call: Call, asks: str) -> Reply:
    return Reply(f"{asks} The tool {call.name} is offered and fits; I call it.", calls=(call,))


def _search_text(question: str) -> str:
    return _PREAMBLE.sub("", question).strip().rstrip("?.! ") or question.strip()

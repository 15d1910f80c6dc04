"""Words the stand-in's answers. Each one quotes what came back or what was said, or says that there is nothing."""

from __future__ import annotations

from local.models.stand_in import facts, quoting
from local.models.stand_in.conversation import Conversation, Reply, Result
from local.models.stand_in.tool_choice import words

_MAX_HITS = 3


def from_results(conversation: Conversation) -> Reply:
    """Quote each result of this turn, with its source; tell each failure. A page that was read outdoes the search."""
    outdone = "web_search" if conversation.succeeded("web_fetch") else None
    parts = [_quote(result) for result in conversation.results if result.failed or result.tool != outdone]
    names = ", ".join(dict.fromkeys(result.tool or "a tool without a name" for result in conversation.results))
    return Reply(f"Answers came from: {names}. I quote them and name the sources.", "\n\n".join(parts))


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


def follow_up(conversation: Conversation, pronoun: str) -> Reply:
    """Resolve a pronoun to the subject of the previous question, and quote the answer to that."""
    before = conversation.earlier[-1]
    thinking = f"“{pronoun}” must be the subject of the previous question: “{before.question.strip()[:200]}”."
    if known := facts.look_up(f"{before.question} {conversation.question}"):
        return Reply(thinking, known)
    said = f"I said: “{quoting.sentences(before.answer)}”" if before.answer else "I have not answered it."
    return Reply(thinking, f"“{pronoun}” refers to your previous question, “{before.question.strip()}”. {said}")


def unknown_reference(pronoun: str) -> Reply:
    """There is no earlier turn that a pronoun could refer to."""
    text = f"I do not know what “{pronoun}” refers to: nothing was said before this in our conversation."
    return Reply("There is no earlier turn to resolve this from.", text)


def acknowledgement(statement: str) -> Reply:
    """The user tells something about themselves."""
    return Reply("The user tells me something; no tool is needed.", f"Understood. You told me: “{statement.strip()}”")


def what_you_said(conversation: Conversation) -> Reply | None:
    """The latest thing the user said in this conversation that shares a word with the question."""
    asked = words(conversation.question)
    for exchange in reversed(conversation.earlier):
        if asked & words(exchange.question) and "?" not in exchange.question:
            return Reply("The user said something about this before.", f"You told me: “{exchange.question.strip()}”")
    return None


def confession(conversation: Conversation) -> Reply:
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
    return Reply("No rule of mine fits this question, so I say what I am.", text)

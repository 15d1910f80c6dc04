"""Marks that programs leave in a user's message when they put other text into it: retrieved passages, sources, files,
earlier messages.

A program that keeps a conversation outside of LoCAL2 sends one text as the user's, made by a template: "use the
following context", then search results, then the user's words. It cannot be decided for certain which part is the
user's, so a text with such marks counts as untrusted as a whole. The marks are those of common templates (Open WebUI,
LangChain, LlamaIndex, Haystack, ChatML). A false alarm costs little: addresses in that message are not the user's.
"""

from __future__ import annotations

import re

_KINDS = (
    r"contexts?|sources?|documents?|docs|(?:(?:web|search|tool|query) )?(?:results?|outputs?|hits)",
    r"(?:chat |conversation |message |dialogue )?(?:history|transcript)|conversation(?: so far)?",
    r"(?:previous|prior|earlier|past|recent) (?:messages?|conversations?|turns?|chat)|summary so far",
    r"knowledge(?: base)?|references?|passages?|excerpts?|chunks?|snippets?|citations?|retrieved [a-z]+",
    r"(?:attached |uploaded )?files?|attachments?|web ?pages?|page content|observations?",
    r"kontext|quellen|dokumente|verlauf|suchergebnisse|contexte|historique|contexto|fuentes|historial|contesto|fonti",
    r"контекст|источники|история|上下文|资料|参考资料|历史记录|コンテキスト|参考情報|会話履歴|대화 기록",
)
_KIND = f"(?:{'|'.join(_KINDS)})"
_NAME = _KIND.replace(" ", "[ _-]?")
_MORE = r"(?: (?:information|data|text|below|above|\d+|from [^\n:]{1,40}))?(?: ?\([^()\n]{1,40}\))?"
_SPEAKERS = "assistant|ai|bot|chatgpt|claude|gemini|assistent|assistente|asistente|ассистент|助手"
_PATTERNS = (
    # <context>, </source>, <chat_history>, <retrieved-docs id="1">, {{context}}, [document]
    rf"[<{{\[]\s*/?\s*(?:[a-z]+[_-])*{_NAME}(?:[_-][a-z\d]+)*(?:\s[^<>\n]{{0,200}})?[>}}\]]",
    r"</?(?:user_query|user_question|user_input|tool_response|function_results|doc_?\d*)\b[^<>\n]{0,200}>",
    # "Context:", "Document 1 (a.pdf):", "## Sources", "**Search results**", "--- Chat history ---"
    rf"^[ \t>]*(?:the |your )?{_KIND}{_MORE}\s*[:：]",
    rf"^[ \t>]*(?:#{{1,6}}|\*\*|__|\[|={{2,}}|-{{2,}}|`{{3}})\s*(?:the |your |begin |start of |end of )?{_KIND}\b",
    # "use the following pieces of context", "based on the documents below"
    r"\b(?:context|documents|sources|information)\b[^\n.]{0,20}\b(?:below|provided|delimited|enclosed)\b",
    rf"\b(?:following|provided|retrieved|supplied)\b[^\n.:]{{0,40}}\b{_KIND}\b",
    # a pasted conversation, or the words of a model's template
    r"<\|[a-z_]+\|>|\[/?INST\]|<<SYS>>|<(?:start|end)_of_turn>",
    r"^#{1,6}\s*(?:human|user|assistant|system|instruction|response|input)\b",
    rf"^[ \t>*#-]*(?:{_SPEAKERS})\**[ \t]*(?:[(\[][^()\[\]\n]{{0,40}}[)\]])?\**\s*[:：]",
    r"[\"']role[\"']\s*:\s*[\"'](?:user|assistant|system|tool)[\"']",
    rf"[\"']{_NAME}[\"']\s*:\s*[\[{{\"']",
    # where a passage is from
    r"^[ \t>*-]*(?:\[\d+\]\s*)?(?:url|link|page_content)\s*[:=]\s*\S",
)
_MARKS = tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in _PATTERNS)
_NUMBERED = re.compile(r"^[ \t>]*(?:\[\d+\]|【\d+】)[ \t]*\S", re.MULTILINE)


def has_template_marks(text: str) -> bool:
    """Whether a program has put other text into a message, judged by its form."""
    return any(mark.search(text) is not None for mark in _MARKS) or len(_NUMBERED.findall(text)) > 1

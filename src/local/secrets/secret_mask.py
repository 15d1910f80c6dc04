"""Keeps the secrets that a process knows out of what it says: on the bus, in its log, in the results of its tools."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import quote

LEAST_CHARACTERS = 8  # a shorter one could not be told from words that have nothing to do with it


class SecretMask:
    """Puts `[secret:NAME]` where the value of a secret stands: as it is, or as JSON within JSON, `repr`, an address or
    HTML write it.

    `names` are those of the secrets that this process knows: without any there is nothing to do.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._hidden: dict[str, str] = {}  # the name by the value
        # The longest first. One pattern for all would be slower: each by itself is found by how it begins.
        self._patterns: list[tuple[re.Pattern[str], str]] = []

    def hide(self, name: str, value: str) -> None:
        """From now on nobody is told this value, unless it is too short to be told from a word."""
        if len(value) < LEAST_CHARACTERS or value in self._hidden:
            return
        self.names.add(name)
        self._hidden[value] = name
        longest_first = sorted(self._hidden, key=len, reverse=True)
        self._patterns = [(re.compile(_written(each)), f"[secret:{self._hidden[each]}]") for each in longest_first]

    def text(self, text: str) -> str:
        """The text without them."""
        for pattern, placeholder in self._patterns:
            text = pattern.sub(placeholder.replace("\\", r"\\"), text)
        return text

    def payload(self, payload: bytes) -> bytes:
        """A JSON document without them in its strings; its keys stay."""
        text = payload.decode("utf-8", "surrogatepass")
        if not any(pattern.search(text) for pattern, _ in self._patterns):
            return payload
        told = self._without(json.loads(payload))
        return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._without(each) for key, each in value.items()}
        return [self._without(each) for each in value] if isinstance(value, list) else value


def _written(value: str) -> str:
    """A pattern for a value in all its forms; backslashes in a row count as one, of which there may be any number."""
    once = re.sub(r"\\+", r"\\", value)
    return _forms(once[0]) + "".join(map(_behind_backslashes, once[1:]))


def _behind_backslashes(character: str) -> str:
    if character == "\\":
        return r"(?:\\|(?i:%5C))++"
    return character if _is_plain(character) else rf"\\*+{_forms(character)}"


def _forms(character: str) -> str:
    """A pattern for what stands for a character in an address, in HTML, and in JSON behind a backslash."""
    if _is_plain(character):
        return character
    forms = [re.escape(character), re.escape(html.escape(character)), f"(?i:{quote(character, safe='')})"]
    if character == " ":
        forms.append(r"\+")
    if not character.isascii():
        units = r"\\+".join(re.findall("u....", json.dumps(character)))
        forms.append(f"(?i:{units})")
    return f"(?:{'|'.join(dict.fromkeys(forms))})"


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


secret_mask = SecretMask()
"""Of this process."""

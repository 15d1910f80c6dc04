"""Public dialogues with questions and what answers them, read from files that are fetched by hand and never committed.

Two sets are known by their form. **Molweni** (github.com/HIT-SCIR/Molweni) has real support talk, Ubuntu's channel on
IRC, and questions that people wrote about it: `MRC(withDiscourse)/test.json`, and `DP/*.json` for more talk without
questions. **LoCoMo** (github.com/snap-research/locomo, `data/locomo10.zip`) has ten long conversations, which a model
wrote and people corrected, with questions of one and of several steps. All files of Molweni are one memory; each one of
LoCoMo is one of its own.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figure import BenchmarkFailed
from local.core.words import telling_words
from local.memory.store import EngramDraft

SUPPORT, LONG = "support", "long"  # the names of the two in the figures
LEAST_WORDS = 3  # telling ones of a question about Molweni: "what is the problem?" could be of any of the dialogues
STEPS = {1: "several steps", 2: "dated", 3: "open", 4: "one step"}  # LoCoMo's categories; 5 has no answer
FIRST = datetime(2023, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class PublicQuestion:
    """A question of a set, whose memory it is asked of, the exchanges that it needs, one of each, and its kind."""

    user_id: str
    text: str
    answers: tuple[frozenset[str], ...]
    kind: str


@dataclass(frozen=True, slots=True)
class PublicSet:
    """The exchanges of a set and its questions. `name` is SUPPORT or LONG."""

    name: str
    exchanges: list[EngramDraft]
    questions: list[PublicQuestion]


def read_public(paths: Sequence[Path]) -> list[PublicSet]:
    """The sets that the files hold, those with questions. Raises `BenchmarkFailed` for a file that is of neither."""
    support, long = list[Any](), dict[str, Any]()
    for path in paths:
        try:
            content = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise BenchmarkFailed(
                f"{path} cannot be read: {error}; expected a JSON file of Molweni or LoCoMo"
            ) from None
        if isinstance(content, dict) and "qa" in content:
            long[path.stem] = content
        elif isinstance(content, dict) and "data" in content:
            support += content["data"]["dialogues"]
        elif isinstance(content, list) and content and "edus" in content[0]:
            support += content
        else:
            raise BenchmarkFailed(f"{path} is neither of Molweni nor of LoCoMo")
    sets = [_support(support), *([_long(long)] if long else [])]
    return [each for each in sets if each.questions]


def _support(dialogues: Iterable[Any]) -> PublicSet:
    """Each dialogue once, as a session; what the same person says in the same words elsewhere answers as well."""
    made, known, told = PublicSet(SUPPORT, [], []), dict[str, str](), defaultdict[str, set[str]](set)
    found = defaultdict[str, set[str]](set)  # by question
    for dialogue in sorted(dialogues, key=lambda each: "qas" not in each):
        lines = [f"{turn['speaker']}: {turn['text']}" for turn in dialogue["edus"]]
        if known.setdefault("\n".join(lines), session := f"support/{len(known)}") != session:
            continue
        for place, pair in enumerate(_pairs(lines)):
            draft = EngramDraft(f"{session}/{place}", session, SUPPORT, pair[0], "".join(pair[1:]),
                                FIRST + 600 * len(known) + place)  # fmt: skip
            made.exchanges.append(draft)
            for line in pair:
                told[line].add(draft.engram_id)
        for qa in dialogue.get("qas", ()):
            found[" ".join(qa["question"].split())].update(_answering(lines, qa))
    for text, answering in found.items():
        ids = frozenset(engram_id for line in answering for engram_id in told[line])
        if ids and len(telling_words(text)) >= LEAST_WORDS:
            made.questions.append(PublicQuestion(SUPPORT, text, (ids,), "one step"))
    return made


def _answering(lines: Sequence[str], qa: Any) -> Iterator[str]:
    """The lines that the answers of a question begin in; offsets count the lines with a space between them."""
    for answer in qa["answers"]:
        end = 0
        for line in lines:
            end += len(line) + 1
            if answer["answer_start"] < end:
                yield line
                break


def _long(conversations: dict[str, Any]) -> PublicSet:
    made = PublicSet(LONG, [], [])
    for name, content in conversations.items():
        user_id, engram_ids = f"{LONG}/{name}", dict[str, str]()
        for number in range(1, 100):
            turns, day = content.get(f"session_{number}", ()), content.get(f"session_{number}_date_time", "")
            for place, pair in enumerate(_pairs(turns)):
                said = [f"{turn['speaker']}: {turn['text']}" for turn in pair]
                session = f"{user_id}/{number}"
                draft = EngramDraft(f"{session}/{place}", session, user_id, said[0], "".join(said[1:]),
                                    _moment(day) + 60 * place)  # fmt: skip
                made.exchanges.append(draft)
                engram_ids |= {turn["dia_id"]: draft.engram_id for turn in pair}
        for qa in content["qa"]:
            places = [place for each in qa.get("evidence", ()) for place in re.findall(r"D\d+:\d+", each)]
            needed = [frozenset([engram_ids[place]]) for place in places if place in engram_ids]
            if qa["category"] in STEPS and needed:
                answers = tuple(dict.fromkeys(needed))
                made.questions.append(PublicQuestion(user_id, str(qa["question"]), answers, STEPS[qa["category"]]))
    return made


def _pairs(turns: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (turns[start : start + 2] for start in range(0, len(turns), 2))


def _moment(day: str) -> float:
    return datetime.strptime(f"{day} +0000", "%I:%M %p on %d %B, %Y %z").timestamp()

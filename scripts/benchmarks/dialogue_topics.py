"""What the people of the generated dialogues talk about: topics, each with what happened and how somebody asks for it.

`dialogue_topics.txt` has them: `{a/b/c}` is one of these, `%o` the one who listens, `%n` the one who speaks, `%f` a
friend of theirs, `%t` when it was, `%T` the topic. Questions follow each statement and share some of its words, as
questions about real talk do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Event = tuple[str, tuple[str, ...]]


def _topics(text: str) -> Mapping[str, tuple[Event, ...]]:
    topics: dict[str, tuple[Event, ...]] = {}
    for block in text.strip().split("\n\n"):
        name, *lines = (line.strip() for line in block.splitlines())
        told = (line.split(" | ") for line in lines)
        topics[name] = tuple((statement, tuple(questions)) for statement, *questions in told)
    return topics


TOPICS = _topics(Path(__file__).with_suffix(".txt").read_text("utf-8"))
REACTIONS = (
    "Wow, that's awesome, %o! I bet the %T thing means a lot to you.",
    "Oh no, really? How are you holding up?",
    "That sounds so cool! %T is such a nice way to relax, isn't it?",
    "Congrats, %o! You deserve it, you've put so much work into this.",
    "Haha, I can picture that. You always have the best stories about %T.",
    "Thanks, %o! Your support really means a lot. Having people like you around keeps me going.",
    "I hear you. It's been a while since I had anything to do with %T myself.",
    "Good for you! What made you get into %T in the first place?",
    "Aw, %o, that is lovely. Got any pics of it?",
    "That must have been something! Any plans for the weekend?",
    "So glad to hear that. It's important to make time for yourself and the people you love.",
    "Totally agree, %o. Little moments like these make life better.",
)
SMALL_TALK = (
    "Hey %o! Long time no talk, so much going on here. How have you been?",
    "Not much new on my side, just {work and the kids/tired from the week/enjoying the weather}. You?",
    "By the way, did I tell you that %f asked about you? We should all meet up soon.",
    "I still think about what you said on %T. It gave me a lot to think about.",
    "Sure thing! It's been a wild ride, but I'm thankful for everything %T has brought me.",
    "I really need a break, this {month/year/week} flew by. Maybe more %T would help me.",
    "Anyway, gotta run now. Talk to you soon, take care!",
    "Have you heard from %f lately? Last I heard, %f was all into %T.",
    "You inspire me, %o. Keep going, and keep me posted about %T!",
    "%T has taught me patience, I guess. What has it taught you?",
)
TIMES = (
    "yesterday", "today", "last week", "two days ago", "the other day", "last weekend", "a few weeks ago",
    "last month", "this morning", "last Friday",
)  # fmt: skip
MEMBERS = ("Nora", "Dev", "Camille", "Marcus", "Joanna", "Tim", "Priya", "Sean", "Evelyn", "Andre", "Gina", "Luis")
FRIENDS = ("Alex", "Beth", "Hannah", "Jordan", "Kofi", "Maya", "Rob", "Sam", "Tasha", "Will", "Yuki", "Zack")

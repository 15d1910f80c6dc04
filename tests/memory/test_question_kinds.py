"""Which tool a question asks for, by the bundled embedding model."""

from __future__ import annotations

import pytest

from local.generator.hints import hint
from local.memory.embeddings import MiniLmEmbedder
from local.memory.question_kinds import EXAMPLES, NO_TOOL, QuestionKinds

QUESTIONS = [
    ("Which metal is liquid at room temperature?", NO_TOOL),
    ("What is 23 plus 19?", NO_TOOL),
    ("Thanks a lot!", NO_TOOL),
    ("What is the chemical symbol for iron?", NO_TOOL),
    ("Write a haiku about rain.", NO_TOOL),
    ("Implement a queue data structure using two stacks in Python.", NO_TOOL),
    ("What is the temperature in Oslo at the moment?", "web_search"),
    ("What are today's headlines?", "web_search"),
    ("What did we talk about when I asked about mortgages?", "search_memory"),
    ("Have I ever told you my shoe size?", "search_memory"),
    ("Show all files here.", "list_files"),
    ("What files do I have in the folder invoices?", "list_files"),
    ("Fetch https://club.example/events and tell me the date of the next event.", "web_fetch"),
]


@pytest.fixture(scope="module")
def kinds() -> QuestionKinds:
    return QuestionKinds(MiniLmEmbedder().embed_queries)


@pytest.mark.parametrize(("question", "kind"), QUESTIONS)
async def test_a_new_question_is_of_the_kind_that_the_examples_teach(
    question: str, kind: str, kinds: QuestionKinds
) -> None:
    assert question not in EXAMPLES[kind]
    [vector] = await MiniLmEmbedder().embed_queries([question])
    line = hint(question, await kinds.scores(vector), [name for name in EXAMPLES if name])
    assert (kind or "Answer") in line

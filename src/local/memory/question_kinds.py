"""Which tool a question asks for, if any: by example sentences, whose vectors a ridge regression separates.

The nearest example alone decides badly, since vectors are near by subject: "What is the chemical symbol for gold?" is
near to "What is the current price of gold?". The regression finds the directions in which the kinds differ: of 100
questions it picked the right one of seven for 91 where the nearest example did for 76 [m].
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from local.memory.embeddings import Floats, Vectors

NO_TOOL = ""
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    NO_TOOL: (
        "What is the capital of Spain?", "Who wrote Hamlet?", "Hello!", "Hi", "Good evening.", "Thanks, bye.",
        "How many legs does an ant have?", "Who painted the Starry Night?", "Name a bird that cannot fly.",
        "Which country has the most islands?", "How many minutes are in a day?", "What is the largest mammal?",
        "Who composed the Magic Flute?", "What is 20 percent of 50?", "Who discovered America?",
        "What colour are bananas?", "In which country is Rome?", "What gas do we breathe?",
        "What is the past tense of “see”?", "What is the freezing point of water?", "What is 12 times 9?",
        "How do I boil an egg?", "Explain how a rainbow forms.", "Translate “bread” into German.",
        "Write a short story about a dragon.", "What does the word “serene” mean?", "Thank you very much.",
        "Good morning, how are you?", "Write a function that sorts a list.",
        "What is the difference between a lake and a sea?", "Give me ideas for a birthday party.",
        "How many days are in March?", "What is the opposite of “loud”?", "Which is the longest river in the world?",
        "Who invented the telephone?", "How far is the moon from the earth?", "What colour is the sky?",
        "Name three fruits.", "Is a whale a fish?", "What is a third of 60?", "Hi there!", "Bye, see you later.",
        "What does DNA stand for?", "In which year did the Second World War end?", "What is the plural of “foot”?",
        "Why is the sea salty?", "Write a poem about autumn.", "Tell me a joke.", "Which animal is the fastest?",
        "What are the symptoms of a cold?", "What is the chemical symbol of silver?", "How does a vaccine work?",
        "Summarise the plot of Romeo and Juliet.", "Wie viele Planeten gibt es?",
        "Was ist die Hauptstadt von Frankreich?", "Danke!", "Correct the grammar of this sentence: he go home.",
        "Which language do people speak in Mexico?", "How do you make a cup of tea?",
        "What is my best option to learn a language?", "Can you explain the basics of chemistry?",
        "Imagine that you are a pirate and tell me about your day.", "Act as a teacher and explain fractions.",
        "Write a review of a film that you make up.", "Draft an email to my boss to ask for a day off.",
        "Help me write a headline for an article about bees.", "Write a blog post about hiking.",
        "Describe a busy market in one paragraph.", "Tom buys 3 pens for 2 euros each. How much does he pay?",
        "Is this review positive or negative? “The food was cold.”", "Name the people in this sentence: Ann met Bob.",
        "Write a program that counts the words of a text file.", "How can I sleep better?",
        "What would have happened if the dinosaurs had not died out?", "Which instrument has six strings?",
        "Which city is known for the Colosseum?", "Which number comes after nine?", "Who invented the light bulb?",
        "Which vegetable is orange?", "What was the first name of Mozart?", "Which country borders Portugal?",
        "Write it as a letter, please.", "Make it shorter and friendlier.", "Write it again in simple words.",
    ),
    "web_search": (
        "What is the weather in Paris today?", "What are the latest news about the election?",
        "Search the web for cheap flights to Rome.", "What is the current price of gold?",
        "Who won the game last night?", "When does the next train to Berlin leave?",
        "Look up the newest release of Linux.", "How is the stock market doing right now?",
        "Who is the president of France at the moment?", "Find reviews of the new phone online.",
        "What happened in the world this week?", "Is it going to rain tomorrow?",
        "How much does a ticket for the concert cost?", "Google the opening hours of the zoo.",
        "Which company announced layoffs this week?", "Which famous singer died recently?",
        "What did the court decide about the former minister?",
        "Which film won the award for best picture this year?", "How many people were hurt in the earthquake?",
        "Which team won the championship on Sunday?", "What did the government announce about the strike?",
        "Wer hat gestern das Rennen gewonnen?", "Wie wird das Wetter heute?", "Suche im Internet nach einem Rezept.",
    ),
    "web_fetch": (
        "Read https://example.com/article and summarise it.", "What does this page say: www.example.org/about?",
        "Open this link and tell me the main points.", "Fetch the web page and give me the phone number on it.",
        "Summarise this website for me.",
    ),
    "search_memory": (
        "What did I tell you about my brother?", "Do you remember the name of my doctor?",
        "What did we talk about last week?", "Which film did I say I liked?",
        "Have I mentioned my holiday plans to you before?", "What is my favourite colour? I told you once.",
        "What was the recipe that I gave you some time ago?", "When is my mother's birthday?",
        "What do you know about me?", "In an earlier conversation you recommended a book to me. Which one?",
        "What is the name of my dentist?", "Was habe ich dir über meinen Bruder erzählt?", "Wie heißt mein Hund?",
        "Which city did I say I come from?", "What did I mention about my job?",
        "Which instrument did I tell you I play?", "What was the name of the town that I mentioned?",
        "Which pizza did I say I prefer?", "What was the phone number that I gave you?",
    ),
    "read_file": (
        "Read the file report.txt.", "What is written in notes.md?",
        "Open settings.json and tell me the value of the timeout.", "Show me the contents of the file main.c.",
        "Which functions does utils.py define?", "What does the document letter.txt say?",
        "Summarise the file minutes.md.",
    ),
    "list_files": (
        "Which files are in this folder?", "List the files in the directory src.", "What is in my workspace?",
        "How many documents are in the folder letters?", "Show me the folders here.",
        "Is there a file called plan.txt?",
    ),
    "write_file": (
        "Create a file called test.txt with the text “abc”.", "Save this list to shopping.txt.",
        "Write the summary into a new file summary.md.", "Make a file with a poem in it.",
        "Store the result in the file out.csv.", "Put these lines into todo.md.", "Yes, save it now.",
        "I was wrong. Do write the file, please.",
    ),
}  # fmt: skip
RIDGE = 1.0


class QuestionKinds:
    """The regression from a question's vector to a score for each kind, which the examples have taught; about 1 for the
    kind that a question is of, about 0 for the others. It is made when it is first needed, in about a second.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Awaitable[Vectors]]) -> None:
        """`embed` is that of the model that makes the questions' vectors."""
        self._embed, self._learning = embed, asyncio.Lock()
        self._weights: tuple[Floats, Floats] | None = None

    async def scores(self, vector: Floats) -> dict[str, float]:
        """Return the score of each kind: the name of a tool, or `NO_TOOL`. Raises `ModelError`."""
        async with self._learning:
            if self._weights is None:
                sentences = [sentence for kind in EXAMPLES.values() for sentence in kind]
                self._weights = _learned(await self._embed(sentences))
        slopes, means = self._weights
        return {kind: round(float(score), 3) for kind, score in zip(EXAMPLES, vector @ slopes + means, strict=True)}


def _learned(vectors: Vectors) -> tuple[Floats, Floats]:
    """The weights of a ridge regression in which each kind counts as much as every other."""
    import numpy as np

    sizes = np.array([len(kind) for kind in EXAMPLES.values()])
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    wanted = np.eye(len(sizes))[kinds]
    penalty = sizes[kinds] * (1 / sizes[kinds]).mean()
    means = wanted.mean(axis=0)
    found = np.linalg.solve(vectors @ vectors.T + RIDGE * np.diag(penalty), wanted - means)
    return (vectors.T @ found).astype(np.float32), means.astype(np.float32)

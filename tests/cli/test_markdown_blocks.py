"""Markdown in fragments: cut the same way however it comes, and nothing of it lost or said twice."""

from __future__ import annotations

import random

from local.cli.render import Block, MarkdownBlocks

TEXT = """# Title

Some *para* text
that goes on.
1. one
2. two
   - nested

3. three

```python
def f():

    return 1
```
after code
| a | b |
|---|---|
| 1 | 2 |

> quote
> more

<b>html</b>

- x
- y
end"""
BLOCKS = [
    Block("# Title"),
    Block("Some *para* text\nthat goes on."),
    Block("1. one"),
    Block("2. two\n   - nested", continues=True),
    Block("3. three", continues=True),
    Block("def f():", language="python"),
    Block("", continues=True, language="python"),
    Block("    return 1", continues=True, language="python"),
    Block("after code"),
    Block("| a | b |\n|---|---|\n| 1 | 2 |"),
    Block("> quote\n> more"),
    Block("<b>html</b>"),
    Block("- x"),
    Block("- y\nend", continues=True),
]


def cut(text: str, chance: random.Random) -> list[Block]:
    blocks, found = MarkdownBlocks(), []
    while text:
        length = chance.randint(1, 12)
        found += blocks.feed(text[:length])
        text = text[length:]
    return found + blocks.close()


def test_the_blocks_are_the_same_however_the_text_is_cut_into_fragments() -> None:
    for seed in range(20):
        assert cut(TEXT, random.Random(seed)) == BLOCKS


def test_every_word_of_any_text_is_in_one_block_once() -> None:
    chance = random.Random(7)
    pieces = [
        "# ",
        "- ",
        "1. ",
        "> ",
        "    ",
        "```\n",
        "~~~\n",
        "|",
        "*",
        "_",
        "`",
        "\n",
        "\n\n",
        "---",
        "<",
        "[",
        "](",
        " ",
    ]
    for _ in range(50):
        words = [f"w{number}" for number in range(100, 130)]
        text = "".join(f"{chance.choice(pieces)}{word}{chance.choice(['', ' ', chr(10)])}" for word in words)
        said = "\n".join(f"{block.language or ''}\n{block.source}" for block in cut(text, chance))
        assert [said.count(word) for word in words] == [text.count(word) for word in words], text


def test_the_beginning_of_a_long_paragraph_can_be_taken_and_the_rest_stands_below_it() -> None:
    blocks = MarkdownBlocks()
    blocks.feed("one two three")
    assert blocks.take(8) == Block("one two")
    assert blocks.feed(" four\n\nnext\n") == [Block("three four", continues=True)]
    assert blocks.close() == [Block("next")]

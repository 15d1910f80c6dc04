import assert from "node:assert/strict";
import test from "node:test";
import { NOTHING, closed, grown, whole } from "../../src/local/page/core/blocks.js";
import { lex } from "../../src/local/page/markdown/lexer.js";

const TEXT = "# Title\n\nA *word* and **two**.\n\n- one\n- two\n\n  more\n- three\n\n```py\na = 1\n\nb = '**'\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\nThe end, with [a link](https://a.example/x).\n\n> quoted\n> twice\n\n1. x\n2. y\n\nLast.";

const shape = (tokens) => JSON.stringify(tokens.filter((token) => token.type !== "space"));

test("a text that comes in pieces of any size ends as the tree that it is at once", () => {
  for (const size of [1, 2, 3, 7, 19, 400]) {
    let blocks = NOTHING;
    for (let end = size; end < TEXT.length + size; end += size) blocks = grown(blocks, TEXT.slice(0, end), lex);
    assert.equal(shape(whole(blocks, TEXT, lex).tokens), shape(lex(TEXT)), `in pieces of ${size}`);
    assert.equal(shape(grown(blocks, TEXT, lex).tokens), shape(lex(TEXT)), `as it grew in pieces of ${size}`);
  }
});

test("blocks before the last two keep their objects, and only what follows them is lexed again", () => {
  const lexed = [];
  const counting = (text) => (lexed.push(text.length), lex(text));
  let blocks = NOTHING;
  const long = Array.from({ length: 300 }, (_, at) => `Paragraph ${at} of a text.`).join("\n\n");
  for (let end = 40; end <= long.length; end += 40) {
    const next = grown(blocks, long.slice(0, end), counting);
    for (let at = 0; at < blocks.settled; at += 1) assert.equal(next.tokens[at], blocks.tokens[at]);
    blocks = next;
  }
  assert.ok(Math.max(...lexed) < 200, `${Math.max(...lexed)} characters at once`);
});

test("a text that is another one is lexed anew", () => {
  const blocks = grown(grown(NOTHING, "a\n\nb\n\nc\n\nd\n\ne", lex), "Something else.", lex);
  assert.equal(blocks.tokens.length, 1);
  assert.equal(blocks.tokens[0].raw, "Something else.");
});

test("line ends of other systems and tabs lose nothing", () => {
  const text = "a\r\n\r\nb\r\n\r\n\tcode\r\n\r\nc\r\n\r\nd";
  let blocks = NOTHING;
  for (let end = 1; end <= text.length; end += 1) blocks = grown(blocks, text.slice(0, end), lex);
  assert.equal(shape(blocks.tokens), shape(lex(text)));
});

test("what the end leaves open is closed, and no half mark is shown", () => {
  assert.equal(closed("a **bol"), "a **bol**");
  assert.equal(closed("a **bold**"), "a **bold**");
  assert.equal(closed("a **"), "a ");
  assert.equal(closed("a `co"), "a `co`");
  assert.equal(closed("see [the pa"), "see ");
  assert.equal(closed("see [the page](https://a.exam"), "see ");
  assert.equal(closed("see [the page](https://a.example)"), "see [the page](https://a.example)");
  assert.equal(closed("```py\nx = a[0"), "```py\nx = a[0");
  assert.equal(closed("**a** and **b"), "**a** and **b**");
  assert.equal(closed("2 * 3 = 6"), "2 * 3 = 6");
});

import assert from "node:assert/strict";
import test from "node:test";
import { NOTHING, grown, whole } from "../../src/local/page/core/blocks.js";
import { lex } from "../../src/local/page/markdown/lexer.js";

const formulas = (tokens) => tokens.flatMap((one) => (one.type === "math" ? [[one.tex, one.isDisplay]] : formulas(one.tokens ?? one.items ?? [])));

test("formulas are found in a line, by themselves and in a list", () => {
  assert.deepEqual(formulas(lex("Energy $E = mc^2$, \\(a_1 + b_1\\) and $$x$$.")), [["E = mc^2", false], ["a_1 + b_1", false], ["x", true]]);
  assert.deepEqual(formulas(lex("So:\n\\[ x = \\frac{1}{2} \\]\nthen\n\n$$\na\n\nb\n$$\n\n- $y$")), [["x = \\frac{1}{2}", true], ["a\n\nb", true], ["y", false]]);
});

test("money, code, marked dollars and half a formula are none", () => {
  for (const text of ["$5 and $6", "US$30 or $20,000.50", "$ a $", "`$x$`", "\\$x$", "$x", "$$", "\\(a", "```\n$x$\n```", "$HOME and $PATH2"]) assert.deepEqual(formulas(lex(text)), [], text);
});

test("an answer with formulas that comes in pieces ends as the tree that it is at once", () => {
  const text = "One $a_1$.\n\n$$\n\\sum_i x_i\n$$\n\nand \\[ y \\]\n\n- $z$ costs $5\n\nLast.";
  for (const size of [1, 3, 7]) {
    let blocks = NOTHING;
    for (let end = size; end < text.length + size; end += size) blocks = grown(blocks, text.slice(0, end), lex);
    assert.deepEqual(formulas(whole(blocks, text, lex).tokens), formulas(lex(text)));
    assert.deepEqual(formulas(blocks.tokens), formulas(lex(text)), `in pieces of ${size}`);
  }
});

test("a long word takes no longer than its length, whatever its letters are", () => {
  for (const letters of ["W", "_a", "a.", "**", "[", "`a ", "\\(", "$$a", "<a ", "~"]) {
    const text = letters.repeat(1_000_000 / letters.length);
    const before = process.cpuUsage();
    assert.equal(lex(text).map((token) => token.raw).join(""), text);
    const { user } = process.cpuUsage(before);
    assert.ok(user < 1_000_000, `${letters} took ${user / 1000} ms`);
  }
});

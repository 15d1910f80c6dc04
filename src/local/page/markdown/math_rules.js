/**
 * The syntax of formulas in Markdown: `$…$` and `\(…\)` within a line, `$$…$$` and `\[…\]` by themselves. A dollar that
 * has a space inside or a digit behind it is money.
 */

const LINE = /^(?:\$\$([^$\n]{1,1000}?)\$\$|\$(?![\s$])((?:\\.|[^\\$\n]){1,1000}?)(?<!\s)\$(?!\d)|\\\(([^\n]{1,1000}?)\\\))/;
const BLOCK = /^ {0,3}(?:\$\$([^]{1,5000}?)\$\$|\\\[([^]{1,5000}?)\\\])[ \t]*(?:\n|$)/;
const BEGINS_BLOCK = /\n {0,3}(?:\$\$|\\\[)/;
const BEGINS = /\$|\\\(/;

function token(found, isDisplay) {
  const tex = found.slice(1).find((group) => group !== undefined).trim();
  return tex ? { type: "math", raw: found[0], tex, isDisplay } : undefined;
}

export const MATH = [
  {
    name: "math_block",
    level: "block",
    start: (source) => BEGINS_BLOCK.exec(source)?.index,
    tokenizer(source) {
      const found = BLOCK.exec(source);
      return found ? token(found, true) : undefined;
    },
  },
  {
    name: "math",
    level: "inline",
    start: (source) => BEGINS.exec(source)?.index,
    tokenizer(source) {
      const found = LINE.exec(source);
      return found ? token(found, found[1] !== undefined) : undefined;
    },
  },
];

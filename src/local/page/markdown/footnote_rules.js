/** The syntax of footnotes in Markdown: `[^1]` within a line, and `[^1]: …` at the beginning of one. */

const NOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]+([^\n]{1,5000}(?:\n(?![ \t]*\n|[ \t]*\[\^)[^\n]{1,5000}){0,20})(?:\n+|$)/;
const MARK = /^\[\^([^\]\s]{1,40})\](?!:)/;

export const FOOTNOTES = [
  {
    name: "footnote",
    level: "block",
    start: (source) => /\n {0,3}\[\^[^\]\s]{1,40}\]:/.exec(source)?.index,
    tokenizer(source) {
      const found = NOTE.exec(source);
      if (!found) return undefined;
      const token = { type: "footnote", raw: found[0], label: found[1], tokens: [] };
      this.lexer.inline(found[2].trim(), token.tokens);
      return token;
    },
  },
  {
    name: "footnote_mark",
    level: "inline",
    start: (source) => source.indexOf("[^"),
    tokenizer(source) {
      const found = MARK.exec(source);
      return found ? { type: "footnote_mark", raw: found[0], label: found[1] } : undefined;
    },
  },
];

/** The one Markdown lexer. It makes tokens; HTML is made nowhere. */

import { Lexer, Marked } from "../vendor/marked.js";
import { FOOTNOTES } from "./footnote_rules.js";
import { MATH } from "./math_rules.js";

const LONGEST = 10_000; // characters; the marks within a longer paragraph are not looked for, which takes their square

const marked = new Marked({ gfm: true, breaks: false }, { extensions: [...FOOTNOTES, ...MATH] });

class PatientLexer extends Lexer {
  inlineTokens(source, tokens = []) {
    if (source.length <= LONGEST) return super.inlineTokens(source, tokens);
    tokens.push({ type: "text", raw: source, text: source, escaped: false });
    return tokens;
  }
}

/** GitHub's Markdown with formulas, as tokens. Raises nothing: what cannot be read is one block of text.
 * @param {string} text */
export function lex(text) {
  try {
    return new PatientLexer(marked.defaults).lex(text);
  } catch {
    return [{ type: "paragraph", raw: text, tokens: [{ type: "text", raw: text, text }] }];
  }
}

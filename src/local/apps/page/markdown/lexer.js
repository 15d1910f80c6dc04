/** The one Markdown lexer. It makes tokens; HTML is made nowhere. */

import { Marked } from "../vendor/marked.js";

const marked = new Marked({ gfm: true, breaks: false });

/** GitHub's Markdown as tokens. Raises nothing: what cannot be read is one block of text. @param {string} text */
export function lex(text) {
  try {
    return marked.lexer(text);
  } catch {
    return [{ type: "paragraph", raw: text, tokens: [{ type: "text", raw: text, text }] }];
  }
}

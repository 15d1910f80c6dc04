/**
 * A text that grows, as Markdown blocks: only its end is lexed again.
 *
 * The last two blocks stay open, for a line may still turn into a list's next item or a table's next row. What stands
 * before them keeps its objects, so that the renderer of a block sees by identity that nothing changed.
 */

const OPEN = 2;

/** @typedef {{text: string, tokens: any[], settled: number, offset: number}} Blocks */

/** @type {Blocks} `settled` of `tokens` are final and end at `offset` in `text` */
export const NOTHING = Object.freeze({ text: "", tokens: [], settled: 0, offset: 0 });

/**
 * The blocks of `text`, from those of an earlier state of it where it has only grown.
 * @param {Blocks} before @param {string} text @param {(text: string) => any[]} lex
 */
export function grown(before, text, lex) {
  if (text === before.text) return before;
  const from = before.settled && text.startsWith(before.text) ? before : NOTHING;
  const fresh = lex(closed(text.slice(from.offset)));
  let { settled, offset } = from;
  for (const token of fresh.slice(0, Math.max(0, fresh.length - OPEN))) {
    if (!text.startsWith(token.raw, offset)) break; // the lexer has put something in its place, a tab say
    settled += 1;
    offset += token.raw.length;
  }
  return { text, tokens: [...from.tokens.slice(0, from.settled), ...fresh], settled, offset };
}

/** The blocks of a finished text: lexed once and whole, so that link definitions count wherever they stand. */
export function whole(before, text, lex) {
  const tokens = lex(text);
  const kept = tokens.map((token, index) => {
    const old = before.tokens[index];
    return old && old.type === token.type && old.raw === token.raw && !REFERS.test(token.raw) ? old : token;
  });
  return { text, tokens: kept, settled: kept.length, offset: text.length };
}

const REFERS = /\[[^\]]*\]/;

/** Close what the end of an unfinished text leaves open, so that half an emphasis is not shown as asterisks. */
export function closed(text) {
  if ((text.match(FENCE) ?? []).length % 2) return text;
  const start = text.lastIndexOf("\n\n") + 1;
  const bare = text.slice(start).replace(/`[^`]*`/g, "");
  if (bare.includes("`")) return `${text}\``;
  const link = HALF_LINK.exec(bare)?.[0] ?? "";
  const kept = text.slice(0, text.length - link.length).replace(/(^|[^*])\*{1,2}$/, "$1");
  const stars = (bare.slice(0, bare.length - link.length).match(/\*\*/g) ?? []).length - (kept.length < text.length - link.length - 1 ? 1 : 0);
  return stars % 2 ? `${kept}**` : kept;
}

const FENCE = /^ {0,3}(?:`{3,}|~{3,})/gm;
const HALF_LINK = /!?\[[^\]\n]{0,300}(?:\](?:\([^)\s]{0,2000})?)?$/;

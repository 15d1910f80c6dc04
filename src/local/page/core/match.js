/** Finding by a few letters, as a palette does it. */

/** How well `text` answers to what was typed: the positions of its letters and a score, or null for not at all.
 * @param {string} text @param {string} typed */
export function matched(text, typed) {
  const low = text.toLowerCase();
  let score = 0;
  const marks = new Set();
  for (const word of typed.toLowerCase().split(/\s+/).filter(Boolean)) {
    const found = ofWord(low, word);
    if (!found) return null;
    score += found.score;
    for (const mark of found.marks) marks.add(mark);
  }
  return { score: score - low.length / 1000, marks: [...marks].sort((one, other) => one - other) };
}

function ofWord(low, word) {
  const at = beginning(low, word);
  if (at >= 0) return { score: at === 0 ? 12 : 10, marks: range(at, word.length) };
  const inside = low.indexOf(word);
  if (inside >= 0) return { score: 6, marks: range(inside, word.length) };
  return word.length > 1 ? scattered(low, word) : null;
}

/** Where the word begins a word of the text, or -1. */
function beginning(low, word) {
  for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + 1)) {
    if (at === 0 || !isWordLetter(low[at - 1])) return at;
  }
  return -1;
}

function isWordLetter(letter) {
  return /[\p{L}\p{N}]/u.test(letter);
}

/** The letters one after the other, each at the beginning of a word or behind the last one: "nc" for New conversation. */
function scattered(low, word) {
  const marks = [];
  let from = 0;
  for (const letter of word) {
    let at = low.indexOf(letter, from);
    while (at > 0 && at !== from && isWordLetter(low[at - 1])) at = low.indexOf(letter, at + 1);
    if (at < 0 || (at === from && at > 0 && !marks.length && isWordLetter(low[at - 1]))) return null;
    marks.push(at);
    from = at + 1;
  }
  return { score: 3, marks };
}

function range(from, length) {
  return Array.from({ length }, (_, index) => from + index);
}

/** How well other words for a thing, or its name with them, answer; each typed word has to begin one of them. */
function meant(text, words, typed) {
  const low = `${text} ${words}`.toLowerCase();
  const all = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return words && all.every((word) => beginning(low, word) >= 0) ? { score: 5 * all.length - low.length / 1000, marks: [] } : null;
}

/** The items that answer to what was typed, the best first: `{item, marks}`. Without anything typed all, as they stand.
 * `wordsOf` are other words by which an item is found.
 * @template Item @param {Item[]} items @param {string} typed @param {(item: Item) => string} textOf @param {(item: Item) => string} wordsOf */
export function ranked(items, typed, textOf, most = 50, wordsOf = () => "") {
  if (!typed.trim()) return items.slice(0, most).map((item) => ({ item, marks: [] }));
  const found = [];
  items.forEach((item, index) => {
    const match = matched(textOf(item), typed) ?? meant(textOf(item), wordsOf(item), typed);
    if (match) found.push({ item, marks: match.marks, score: match.score, index });
  });
  found.sort((one, other) => other.score - one.score || one.index - other.index);
  return found.slice(0, most).map(({ item, marks }) => ({ item, marks }));
}

/** A text in pieces, `[text, isMarked]`, for what is to be set off. */
export function pieces(text, marks) {
  const marked = new Set(marks);
  const found = [];
  for (let at = 0; at < text.length; at += 1) {
    const is = marked.has(at);
    const last = found.at(-1);
    if (last && last[1] === is) last[0] += text[at];
    else found.push([text[at], is]);
  }
  return found;
}

/** What is remembered, as rows and in words. No clock, no page. */

const MOST = 160; // characters of a question in a list
const ORIGINS = { user: "you", assistant: "assistant", web: "web", tool: "tool" };

/** The rows of a list after its first page was read again: older rows stay, what is gone from the first page goes.
 * @param {any[]} first the latest first @param {any[]} rows @param {boolean} isAll whether nothing comes after `first` */
export function merged(first, rows, isAll) {
  const last = first.at(-1);
  if (isAll || !last) return first;
  const isIn = new Set(first.map((one) => one.engram_id));
  return [...first, ...rows.filter((one) => one.asked_at <= last.asked_at && !isIn.has(one.engram_id))];
}

/** One line for an exchange, or for a note. */
export function lineOf(engram) {
  const text = (engram.note_of ? engram.answer : engram.query).replace(/\s+/g, " ").trim();
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text || "(no words)";
}

/** Whose words an exchange has. */
export const originOf = (engram) => ORIGINS[engram.origin] ?? engram.origin;

/** A user's rating in a word, "" where there is none. */
export const ratingOf = (engram) => (engram.sentiment > 0 ? "good" : engram.sentiment < 0 ? "bad" : "");

/** The longest part of the relevance of what a search has found, by which the bars are drawn. */
export function longestPart(hits) {
  const parts = hits.flatMap((hit) => Object.entries(hit.parts ?? {})).filter(([name]) => name !== "threshold");
  return Math.max(...parts.map(([, value]) => Math.abs(value)), 0.01);
}

/** What a found exchange says that no longer holds, in sentences. */
export function outdatedIn(hit) {
  return (hit.outdated ?? []).map((one) => `${one.slot}: “${one.value}” no longer holds${one.values?.length ? `; now “${one.values.join("”, “")}”` : ""}.`);
}

/** "2026-11-27" as a day in words; what is no day as it is. */
export function dayOf(day) {
  const at = new Date(`${day}T12:00`);
  return Number.isNaN(at.getTime()) ? day : at.toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
}

/** From and until when a fact is so, "" where nobody said. */
export function holdsOf(fact) {
  return [fact.holds_from ? `from ${dayOf(fact.holds_from)}` : "", fact.holds_until ? `until ${dayOf(fact.holds_until)}` : ""].filter(Boolean).join(" ");
}

/** What is to be known of a fact besides its words. */
export function marksOf(fact) {
  return [fact.certain === false ? "not certain" : "", fact.questioned ? "may have changed since" : "", fact.superseded_at ? "no longer holds" : ""].filter(Boolean);
}

/** A note about an exchange, such as its grade, in words. @param {{what: string, value: any}} change */
export function changeOf({ what, value }) {
  const number = Number(value);
  if (what === "pinned") return number ? "You pinned it." : "You unpinned it.";
  if (what === "sentiment") return number ? `You rated it ${number > 0 ? "good" : "bad"}.` : "You withdrew your rating.";
  if (what === "score") return value == null ? "The critic gave no grade." : `The critic graded it ${number} of 5.`;
  if (what === "winner") return value === "tie" ? "Compared with a second answer, it was as good." : `Of two answers, ${value === "A" ? "this one" : "the other one"} was better.`;
  if (what === "withdrawn") return "The note was withdrawn.";
  return `${what}: ${value ?? "none"}`;
}

const DONE = { added: "Added", changed: "Changed", removed: "Removed", conflict: "Left as it is", refused: "Refused" };
const TO_DO = { added: "Add", changed: "Change", removed: "Remove", conflict: "Leave as it is", refused: "Refuse" };

/** One change of MEMORY.md: what it does or has done, and to what. @param {any} outcome @param {boolean} isDone */
export function outcomeOf(outcome, isDone) {
  const words = isDone ? DONE : TO_DO;
  return { word: words[outcome.what] ?? outcome.what, text: [outcome.before, outcome.text].filter(Boolean).join(" → "), why: outcome.why, isBad: outcome.what === "conflict" || outcome.what === "refused" };
}

/** Whether anything of that would be done. */
export const doesAnything = (outcomes) => outcomes.some((one) => ["added", "changed", "removed"].includes(one.what));

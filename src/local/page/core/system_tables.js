/** What the system's screen makes of what the API says: roles of models, fixes of findings, use by day, lines of the log. */

const ROLES = [["generator", "model", "Answers"], ["generator_b", "model", "Answers as the second one"], ["critic", "model", "Judges answers"], ["memory", "classifier", "Reads facts"], ["memory", "embedding_model", "Embeds memories"]];

/** Which model does what, as the participants say themselves. @param {Map<string, any>} participants by name
 * @returns {{title: string, model: string, by: string}[]} */
export function rolesIn(participants) {
  return ROLES.flatMap(([by, key, title]) => {
    const model = participants.get(by)?.details?.[key];
    return model ? [{ title, model, by }] : [];
  });
}

/** The roles of one model, by its id or name; `name` is `name:latest` to a server. */
export function rolesOf(roles, model) {
  const names = [model.id, model.name].flatMap((name) => (name ? [name, name.replace(/:latest$/, "")] : []));
  return roles.filter((one) => names.includes(one.model)).map((one) => one.title.toLowerCase());
}

/**
 * What a button can do about a finding, or null: nothing is done that would lose something.
 * @param {{name: string, status: string, text: string, fix: string}} finding @param {Map<string, any>} participants
 * @returns {{kind: "restart" | "pull" | "settings", name: string} | null}
 */
export function fixOf(finding, participants) {
  if (finding.status === "ok") return null;
  if (participants.get(finding.name)?.state === "failed") return { kind: "restart", name: finding.name };
  const pulled = /'ollama pull ([^'\s]+)'/.exec(finding.fix);
  if (pulled) return { kind: "pull", name: pulled[1] };
  const file = /\b([a-z][a-z_]*)\.yaml\b/.exec(`${finding.fix} ${finding.text}`);
  return file ? { kind: "settings", name: file[1] } : null;
}

export const tokensOf = (row) => (row.prompt_tokens ?? 0) + (row.completion_tokens ?? 0);

/** One entry for each of the last `count` days up to `today` (2026-11-26), also for those on which nothing was used.
 * @param {any[]} rows by day @param {string} today @param {number} count @returns {{day: string, tokens: number}[]} */
export function daysOf(rows, today, count) {
  const used = new Map(rows.map((row) => [row.day, tokensOf(row)]));
  return Array.from({ length: count }, (_, index) => {
    const day = dayBefore(today, count - 1 - index);
    return { day, tokens: used.get(day) ?? 0 };
  });
}

/** @param {string} day @param {number} count */
export function dayBefore(day, count) {
  return new Date(Date.parse(`${day}T12:00:00Z`) - count * 86_400_000).toISOString().slice(0, 10);
}

/** The day of a time, here. @param {number} seconds since 1970 */
export function dayAt(seconds) {
  const then = new Date(seconds * 1000);
  return [then.getFullYear(), then.getMonth() + 1, then.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

const MOST_LINES = 1000;

/** The lines with those that are new: a request from a time on answers what was there at that time once more.
 * @param {any[]} lines @param {any[]} found @returns {any[]} the same array where nothing is new */
export function withLines(lines, found) {
  const last = lastAt(lines);
  const there = new Set(lines.filter((line) => line.at === last).map(keyOf));
  const fresh = found.filter((line) => line.at === null || last === null || line.at > last || (line.at === last && !there.has(keyOf(line))));
  return fresh.length ? [...lines, ...fresh].slice(-MOST_LINES) : lines;
}

/** The time of the last line that has one, or null. */
export function lastAt(lines) {
  return lines.findLast((line) => line.at !== null)?.at ?? null;
}

const keyOf = (line) => JSON.stringify([line.participant, line.level, line.message]);

/** A limit as somebody types it: nothing is none. @returns {{value: number | null, trouble: string}} */
export function limitOf(text, isWhole) {
  const plain = text.trim().replace(/[\s\u202f]/g, "");
  if (!plain) return { value: null, trouble: "" };
  const value = Number(plain);
  if (!Number.isFinite(value) || value <= 0 || (isWhole && !Number.isInteger(value))) return { value: null, trouble: `Enter a ${isWhole ? "whole number" : "number"} above 0, or nothing for no limit.` };
  return { value, trouble: "" };
}

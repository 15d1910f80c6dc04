/** What is typed and not sent, for each conversation; it survives a reload. What is typed incognito is not kept. */

import { signal } from "../html.js";

const KEPT_AS = "local2.drafts";
const MOST = 50;
export const NEW = "new";
const EMPTY = Object.freeze({ text: "", files: [], replaces: null });

/** By conversation: `{text, files, replaces}`; `replaces` is a turn that is asked again, changed. */
export const drafts = signal(read());
export function draftOf(sessionId) {
  return drafts.value.get(sessionId ?? NEW) ?? EMPTY;
}

/** @param {string | null} sessionId @param {Partial<typeof EMPTY>} change @param {boolean} isKept */
export function changeDraft(sessionId, change, isKept = true) {
  const key = sessionId ?? NEW;
  const next = new Map(drafts.peek());
  const draft = { ...(next.get(key) ?? EMPTY), ...change, isKept };
  next.delete(key);
  if (draft.text || draft.files.length || draft.replaces) next.set(key, draft);
  drafts.value = next;
  write();
}

let timer = 0;

function write() {
  clearTimeout(timer);
  timer = setTimeout(save, 150);
}

addEventListener("pagehide", save);

function save() {
  const kept = [...drafts.peek()].filter(([, draft]) => draft.isKept).slice(-MOST);
  try {
    localStorage.setItem(KEPT_AS, JSON.stringify(kept.map(([key, { text, files, replaces }]) => [key, { text, files: files.filter((file) => file.id), replaces }])));
  } catch {
    // a full store: the draft is in memory
  }
}

function read() {
  try {
    return new Map(JSON.parse(localStorage.getItem(KEPT_AS) ?? "[]").map(([key, draft]) => [key, { ...EMPTY, ...draft, isKept: true }]));
  } catch {
    return new Map();
  }
}

/** Files for a question: sent as soon as they are chosen, so that the question has only to name them. */

import { request } from "../net/api.js";
import { fresh } from "../net/ids.js";
import { changeDraft, draftOf } from "./drafts.js";
import { isSecret } from "./actions.js";

const MOST = 16;

/** Send files and put them into a draft. @param {string|null} sessionId @param {Iterable<File>} files */
export function attach(sessionId, files) {
  for (const file of files) {
    if (draftOf(sessionId).files.length >= MOST) return;
    const entry = { key: fresh("f", 8), name: file.name || "pasted", size: file.size, state: "sending" };
    put(sessionId, entry);
    void upload(sessionId, entry, file);
  }
}

/** Take a file out of a draft. */
export function detach(sessionId, key) {
  const { files } = draftOf(sessionId);
  changeDraft(sessionId, { files: files.filter((file) => file.key !== key) }, !isSecret(sessionId));
}

async function upload(sessionId, entry, file) {
  try {
    const address = `/attachments?name=${encodeURIComponent(entry.name)}`;
    const kept = await request("POST", address, undefined, { file });
    put(sessionId, { ...entry, ...kept, state: "ready" });
  } catch (failure) {
    put(sessionId, { ...entry, state: "failed", trouble: failure.message, again: () => upload(sessionId, entry, file) });
  }
}

function put(sessionId, entry) {
  const { files } = draftOf(sessionId);
  const others = files.some((file) => file.key === entry.key);
  const next = others ? files.map((file) => (file.key === entry.key ? entry : file)) : [...files, entry];
  changeDraft(sessionId, { files: next }, !isSecret(sessionId));
}

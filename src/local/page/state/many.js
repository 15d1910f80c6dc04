/** What is done to several conversations at once, or to where one is listed; fetched when it is needed. */

import { batch } from "../html.js";
import { tagsIn } from "../core/session_list.js";
import { request, send } from "../net/api.js";
import { changeSession, hearDeleted, hearSession, saveFile } from "./listing.js";
import { folderNames, openFolders, picked, sessions, tagNames, tell } from "./store.js";

/** Change several conversations, and say which could not be. @param {string[]} sessionIds
 * @param {{folder?: string|null, archived?: boolean, add_tags?: string[], remove_tags?: string[]}} change */
export async function changeSessions(sessionIds, change) {
  const { results } = await request("POST", "/sessions/change", { session_ids: sessionIds, ...change });
  batch(() => {
    for (const one of results) if (one.session) hearSession(one.session);
    if (change.folder) {
      folderNames.value = [...new Set([...folderNames.peek(), change.folder])];
      openFolders.value = new Set([...openFolders.peek(), change.folder]);
    }
    tagNames.value = [...new Set([...tagNames.peek(), ...(change.add_tags ?? [])])].sort();
  });
  sayFailed(results, "changed");
}

const AT_ONCE = 200;

/** Give all conversations of a folder another one, or with null none. @param {string} name @param {string | null} to */
export async function changeFolder(name, to) {
  const ids = [];
  let cursor = "";
  do {
    const page = await request("GET", `/sessions?${new URLSearchParams({ folder: name, archived: "any", limit: "1000", cursor })}`);
    ids.push(...page.sessions.map((one) => one.session_id));
    cursor = page.cursor ?? "";
  } while (cursor);
  for (let at = 0; at < ids.length; at += AT_ONCE) await changeSessions(ids.slice(at, at + AT_ONCE), { folder: to });
  folderNames.value = folderNames.peek().filter((one) => one !== name);
}

/** Delete several permanently. @param {string[]} sessionIds @returns {Promise<number>} how many were */
export async function deleteSessions(sessionIds) {
  const { results } = await request("POST", "/sessions/delete", { session_ids: sessionIds });
  const done = results.filter((one) => !one.error);
  batch(() => {
    for (const { session_id: id } of done) {
      const { conversation = id } = sessions.peek().get(id) ?? {};
      for (const one of [...sessions.peek().values()]) if (one.conversation === conversation) hearDeleted(one.session_id);
      hearDeleted(id);
    }
  });
  sayFailed(results, "deleted");
  return done.length;
}

function sayFailed(results, what) {
  const failed = results.filter((one) => one.error);
  if (failed.length) tell(`${failed.length} of ${results.length} conversations could not be ${what}: ${failed[0].error.message}`);
}

/** Put a conversation, or all that are selected with it, into a folder, or with null out of it. */
export function moveInto(sessionId, folder) {
  const together = picked.peek();
  const ids = together?.has(sessionId) ? [...together] : [sessionId];
  changeSessions(ids, { folder }).catch((failure) => tell(`The conversation was not moved: ${failure.message}`));
}

/** Give one conversation these tags and no others. @param {string} text with commas */
export async function setTags(sessionId, text) {
  const tags = tagsIn(text);
  await changeSession(sessionId, { tags });
  tagNames.value = [...new Set([...tagNames.peek(), ...tags])].sort();
}

/** Save several conversations as one file, a list of what each one's JSON is. @param {string[]} sessionIds */
export async function exportSessions(sessionIds) {
  const parts = [];
  for (const sessionId of sessionIds) {
    const response = await send("GET", `/sessions/${sessionId}/export?format=json`);
    parts.push(parts.length ? ",\n" : "[", await response.blob());
  }
  saveFile(new Blob([...parts, "]\n"], { type: "application/json" }), "conversations.json");
}

/** The list of conversations: loaded, searched, renamed, pinned, deleted, exported. */

import { request, send } from "../net/api.js";
import { batch } from "../html.js";
import { latest } from "../core/latest.js";
import { withChanges, withSession, withoutSession } from "../core/session_list.js";
import { choice, cursor, folderNames, found, isListed, listTrouble, me, openFolders, sessions, showsOthers, tagNames } from "./store.js";
import { hearModel } from "./choices.js";
import { all, forget } from "./conversation.js";

const PAGE = 100;

/** Whose conversations are asked for: the owner's own, unless those of other users are wanted, too. */
const whose = () => (me.peek().owner && !showsOthers.peek() ? "&user_id=owner" : "");

/** Show the owner the conversations of other users, too, or no longer. @param {boolean} isWanted */
export async function showOthers(isWanted) {
  showsOthers.value = isWanted;
  await loadList();
}

/** The first page of the list. */
export async function loadList() {
  const before = sessions.peek();
  try {
    const page = await request("GET", `/sessions?limit=${PAGE}${whose()}`);
    batch(() => {
      let list = new Map();
      for (const row of page.sessions) list = withSession(list, row);
      sessions.value = withChanges(list, before, sessions.peek());
      isListed.value = true;
      cursor.value = page.cursor ?? null;
      folderNames.value = page.folders ?? [];
      tagNames.value = page.tags ?? [];
      listTrouble.value = null;
    });
  } catch (failure) {
    listTrouble.value = failure.message;
  }
}

export async function loadMore() {
  if (!cursor.peek()) return;
  const page = await request("GET", `/sessions?limit=${PAGE}&cursor=${encodeURIComponent(cursor.peek())}${whose()}`);
  batch(() => {
    for (const row of page.sessions) sessions.value = withSession(sessions.peek(), row);
    cursor.value = page.cursor ?? null;
  });
}

/** Search titles and texts; an empty text ends the search. */
export const search = latest(async (text, isLast) => {
  const rows = await searched(text.trim());
  if (isLast()) found.value = rows;
});

async function searched(text) {
  if (!text) return null;
  try {
    const page = await request("GET", `/sessions?limit=50&archived=any&query=${encodeURIComponent(text)}${whose()}`);
    return { text, rows: page.sessions, trouble: null };
  } catch (failure) {
    return { text, rows: [], trouble: failure.message };
  }
}

export function hearSession(row) {
  hearModel(row);
  sessions.value = withSession(sessions.peek(), row);
}

export function hearDeleted(sessionId) {
  sessions.value = withoutSession(sessions.peek(), sessionId);
  forget(sessionId);
}

/** Show all conversations, those that are archived, or those with a tag. @param {import("../core/session_list.js").Choice} wanted */
export async function choose(wanted) {
  choice.value = wanted;
  if (wanted.kind === "archived") await loadWith("archived=true");
  if (wanted.kind === "tag") await loadWith(`tag=${encodeURIComponent(wanted.tag)}`);
}

/** Show what is in a folder, or do no longer. @param {string} name @param {boolean} isOpen */
export async function showFolder(name, isOpen) {
  if (openFolders.peek().has(name) === isOpen) return;
  const open = new Set(openFolders.peek());
  if (isOpen) open.add(name);
  else open.delete(name);
  openFolders.value = open;
  if (isOpen && cursor.peek()) await loadWith(`folder=${encodeURIComponent(name)}`);
}

async function loadWith(query) {
  try {
    const page = await request("GET", `/sessions?${query}${whose()}`);
    batch(() => {
      for (const row of page.sessions) sessions.value = withSession(sessions.peek(), row);
    });
  } catch (failure) {
    listTrouble.value = failure.message;
  }
}

/** @param {string} sessionId @param {{title?: string|null, pinned?: boolean, tags?: string[], archived?: boolean}} change */
export async function changeSession(sessionId, change) {
  const before = sessions.peek().get(sessionId);
  hearSession({ session_id: sessionId, ...change });
  try {
    hearSession({ ...(await request("PATCH", `/sessions/${sessionId}`, change)), session_id: sessionId });
  } catch (failure) {
    if (before) sessions.value = new Map(sessions.peek()).set(sessionId, before);
    throw failure;
  }
}

/** Whether two sessions are versions of one conversation, as far as that is known here. */
export function isVersion(one, other) {
  const of = (id) => sessions.value.get(id)?.conversation ?? all().find((one) => one.id === id)?.about.value?.conversation ?? id;
  return one === other || (one !== null && other !== null && of(one) === of(other));
}

/** Delete a conversation permanently, with all its versions. @returns {Promise<{repeated_in: string[] | null,
 * copied_to?: string[]}>} */
export async function deleteSession(sessionId) {
  const done = await request("DELETE", `/sessions/${sessionId}?versions=true`);
  const { conversation = sessionId } = sessions.peek().get(sessionId) ?? {};
  const versions = [...sessions.peek().values()].filter((one) => one.conversation === conversation);
  for (const { session_id: id } of versions) hearDeleted(id);
  hearDeleted(sessionId);
  return done;
}

/** Save a conversation as a file. @param {"markdown" | "json"} format */
export async function exportSession(sessionId, format) {
  const response = await send("GET", `/sessions/${sessionId}/export?format=${format}`);
  saveFile(await response.blob(), `${sessionId}.${format === "json" ? "json" : "md"}`);
}

/** Have the browser save a file. @param {Blob} content @param {string} name */
export function saveFile(content, name) {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

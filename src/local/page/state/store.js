/** What the page knows, as signals. Views read them; the files beside this one change them. */

import { computed, signal } from "../html.js";

/** Conversations by id, as far as they are listed. @type {any} */
export const sessions = signal(new Map());
/** Whether the owner sees the conversations of other users, too. */
export const showsOthers = signal(false);
/** The list as it was searched: null where nothing is searched, else rows with a `match`. */
export const found = signal(null);
/** What of the list is shown. @type {import("../vendor/signals.js").Signal<import("../core/session_list.js").Choice>} */
export const choice = signal({ kind: "all" });
/** The names of all folders and tags, as they were last read. */
export const folderNames = signal([]);
export const tagNames = signal([]);
/** The folders whose conversations are shown. @type {any} */
export const openFolders = signal(new Set());
/** The conversations that are selected, null while none can be. @type {any} */
export const picked = signal(null);
/** How to get more of the list, null where this is all. */
export const cursor = signal(null);
/** Whether the list was read: before that nobody knows whether it is empty. */
export const isListed = signal(false);
/** What the list could not do, a sentence or null. */
export const listTrouble = signal(null);

/** The screen that is shown, by its id, and the rest of its address. */
export const screen = signal("chat");
/** @type {import("../vendor/signals.js").Signal<string[]>} */
export const path = signal([]);
/** The conversation that is shown, or was last, null for a new one. */
export const currentId = signal(null);
/** Whether a new conversation shall leave nothing behind. */
export const isIncognito = signal(false);
/** What is selected for the inspector: `{kind: "turn"|"call"|"engram", …}` or null. */
export const selected = signal(null);
/** Which tab of the inspector is open, and whether it is. */
export const inspectorTab = signal("time");
export const isInspectorOpen = signal(false);

/** Who takes part, by name. */
export const participants = signal(new Map());
/** What /health says, null before it was heard. */
export const health = signal(null);
/** `since` is when the connection was lost, in seconds since 1970; null while there is one. */
export const offlineSince = signal(null);
/** Another version of the page is served now. */
export const isOutdated = signal(false);
/** Who asks, as the stream says: `{user_id, owner}`. */
export const me = signal({ user_id: null, owner: true });
/** How often something was remembered, noted or deleted, or a fact changed. */
export const remembered = signal(0);
/** What opens over the page: `{kind, …}` or null. */
export const dialog = signal(null);
/** What happened that somebody should know, until they have put it away: `{id, text, action?}`. */
export const notices = signal([]);
/** A short text for screen readers. */
export const spoken = signal("");
/** On a small screen: whether the list covers the conversation. */
export const isRailOpen = signal(false);
/** Seconds since 1970, once a minute: what says "3 minutes ago" reads it. */
export const now = signal(Date.now() / 1000);

export const current = computed(() => sessions.value.get(currentId.value) ?? null);

setInterval(() => (now.value = Date.now() / 1000), 30_000);

/** Tell something that must not be overlooked. */
export function tell(text, action = null) {
  notices.value = [...notices.value.filter((one) => one.text !== text), { id: `${Date.now()}${text.length}`, text, action }];
}

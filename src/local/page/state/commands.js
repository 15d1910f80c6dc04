/**
 * Everything a person can have done by name or by key, in one table: the keyboard, the list of keys and the palette
 * read it. `when` says whether it makes sense now.
 */

import { NEW, changeDraft } from "./drafts.js";
import { conversationOf } from "./conversation.js";
import { arriveAt, edit, go, isSecret, regenerate, stop } from "./actions.js";
import { inspectTurn } from "./inspection.js";
import { goToScreen, hasScreen } from "./screens.js";
import { signIn, signOut } from "../net/token.js";
import { SCREENS } from "../screens.js";
import { currentId, dialog, isIncognito, isInspectorOpen, isRailOpen, me, screen, tell } from "./store.js";

/** @typedef {{id: string, title: string, keys?: string[], group: string, when?: () => boolean, run: () => void}} Command */

/** @type {Command[]} */
export const COMMANDS = [
  { id: "new", title: "New conversation", keys: ["g n"], group: "Go", run: () => begin(false) },
  { id: "incognito", title: "New incognito conversation", group: "Go", run: () => begin(true) },
  { id: "search", title: "Search conversations", keys: ["g f"], group: "Go", run: () => focus("search-conversations", true) },
  ...SCREENS.map(({ id, title, key }) => ({ id: `screen-${id}`, title, keys: [`g ${key}`], group: "Screens", when: () => hasScreen(id), run: () => goToScreen(id) })),
  { id: "find", title: "Find in this conversation", keys: ["/"], group: "Conversation", when: hasConversation, run: () => (dialog.value = { kind: "find" }) },
  { id: "next", title: "Next turn", keys: ["j"], group: "Conversation", when: hasConversation, run: () => step(1) },
  { id: "previous", title: "Previous turn", keys: ["k"], group: "Conversation", when: hasConversation, run: () => step(-1) },
  { id: "thinking", title: "Show or fold the thinking", keys: ["t"], group: "Conversation", when: hasConversation, run: () => press(".thinking > summary") },
  { id: "branch-before", title: "Previous version", keys: ["["], group: "Conversation", when: hasConversation, run: () => press(".versions > button:first-child") },
  { id: "branch-after", title: "Next version", keys: ["]"], group: "Conversation", when: hasConversation, run: () => press(".versions > button:last-child") },
  { id: "regenerate", title: "Regenerate the last answer", group: "Conversation", when: () => lastAnswered() !== null, run: () => void regenerate(lastAnswered()) },
  { id: "answering", title: "How this conversation is answered: profile, instructions, parameters", group: "Conversation", run: () => (dialog.value = { kind: "answering", sessionId: currentId.peek() }) },
  { id: "rename", title: "Rename this conversation", group: "Conversation", when: hasConversation, run: () => (dialog.value = { kind: "rename", sessionId: currentId.peek() }) },
  { id: "delete", title: "Delete this conversation", group: "Conversation", when: hasConversation, run: () => (dialog.value = { kind: "delete", sessionId: currentId.peek() }) },
  { id: "export", title: "Export this conversation", group: "Conversation", when: hasConversation, run: () => (dialog.value = { kind: "export", sessionId: currentId.peek() }) },
  { id: "import", title: "Import conversations", group: "Conversation", run: () => (dialog.value = { kind: "import" }) },
  { id: "inspector", title: "Open or close the inspector", keys: ["i"], group: "View", when: hasConversation, run: inspector },
  { id: "waterfall", title: "Show where the time went", keys: ["w"], group: "View", when: hasConversation, run: () => inspectTurn(turnInFocus()?.dataset.query, "time") },
  { id: "sign-out", title: "Sign out of this browser", group: "View", when: () => signIn.peek() !== null, run: () => leave(false) },
  { id: "sign-out-all", title: "Sign out of all browsers", group: "View", when: () => signIn.peek() !== null, run: () => leave(true) },
  { id: "write", title: "Write", keys: ["c"], group: "Go", run: () => focus("question") },
  { id: "keys", title: "All keys", keys: ["?"], group: "View", run: () => (dialog.value = { kind: "keys" }) },
];

/** Stop the answer that runs, or the one that waits; false where there is none. */
export function stopNow() {
  const id = hasConversation() ? currentId.peek() : null;
  const open = id ? conversationOf(id).open : [];
  if (!open.length) return false;
  void stop(open[0]);
  return true;
}

/** Put the last question back into the composer, to ask it again, changed. */
export function editLast() {
  const id = currentId.peek();
  const last = id ? conversationOf(id).order.peek().at(-1) : null;
  if (!last) return false;
  void edit(conversationOf(id).turns.get(last).peek());
  return true;
}

/** The last turn, if it has its answer. */
function lastAnswered() {
  const id = currentId.peek();
  const last = id ? conversationOf(id).order.peek().at(-1) : null;
  const turn = last ? conversationOf(id).turns.get(last).peek() : null;
  return turn?.status === "answered" ? turn : null;
}

/** A new conversation, with the cursor in it. */
export function begin(incognito) {
  if (incognito !== isIncognito.peek()) changeDraft(NEW, {}, !incognito);
  isIncognito.value = incognito;
  go(null);
  isRailOpen.value = false;
  focus("question");
}

async function leave(everywhere) {
  const trouble = await signOut(everywhere);
  if (trouble) tell(trouble);
}

function hasConversation() {
  return screen.peek() === "chat" && currentId.peek() !== null;
}

/** Give the focus to a part of the chat, from wherever one is. */
function focus(id, isInRail = false) {
  const isHere = screen.peek() === "chat";
  if (!isHere) {
    arriveAt(id);
    goToScreen("chat");
  }
  if (isInRail) isRailOpen.value = true;
  if (isHere) requestAnimationFrame(() => document.getElementById(id)?.focus());
}

/** Have the inspector show the turn in focus, or close it. */
function inspector() {
  if (isInspectorOpen.peek()) isInspectorOpen.value = false;
  else inspectTurn(turnInFocus()?.dataset.query);
}

/** The turn that has the focus, else the last one. @returns {HTMLElement | undefined} */
export function turnInFocus() {
  return focused() ?? turns().at(-1);
}

function turns() {
  return [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("article.turn"))];
}

/** @returns {HTMLElement | null | undefined} */
function focused() {
  return document.activeElement?.closest("article.turn");
}

function step(by) {
  const all = turns();
  const at = all.indexOf(focused());
  const next = at < 0 ? all.at(by < 0 ? -1 : 0) : all[at + by];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

function press(selector) {
  turnInFocus()?.querySelector(selector)?.click();
}

export { isSecret };

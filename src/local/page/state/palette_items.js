/** Everything that can be gone to or done by its name: commands, conversations, participants, settings, models. */

import { conversationsIn } from "../core/session_list.js";
import { me, participants, sessions } from "./store.js";
import { COMMANDS } from "./commands.js";
import { go } from "./actions.js";
import { inspect } from "./inspection.js";
import { askAs } from "./choices.js";
import { profiles } from "./profiles.js";
import { restart } from "./system.js";

/** @typedef {{key: string, group: string, title: string, detail?: string, words?: string, keys?: string[], run: () => void}} Item */

/** @param {Item[]} places @returns {Item[]} what makes sense now, the likeliest first */
export function paletteItems(places) {
  return [...commands(), ...conversations(), ...kinds(), ...places, ...people()];
}

const WORDS = { answering: "language temperature style system prompt", incognito: "private secret temporary", import: "chatgpt claude upload", export: "download save", keys: "shortcuts keyboard" };

function commands() {
  const shown = COMMANDS.filter((command) => command.id !== "palette" && (command.when?.() ?? true));
  return shown.map(({ id, title, keys, group, run }) => ({ key: `command ${id}`, group: group === "Screens" ? group : "Do", title, words: WORDS[id], keys, run }));
}

function conversations() {
  const recent = conversationsIn(sessions.value.values()).sort((one, other) => (other.updated_at ?? 0) - (one.updated_at ?? 0));
  return recent.map((one) => ({
    key: `session ${one.session_id}`,
    group: "Conversations",
    title: one.title || "Untitled",
    detail: one.pinned ? "pinned" : one.incognito ? "incognito" : "",
    run: () => go(one.session_id),
  }));
}

function kinds() {
  return profiles.value.map(({ name, description }) => ({ key: `profile ${name}`, group: "Profiles", title: `Ask as ${name}`, detail: description, run: () => askAs(name) }));
}

function people() {
  if (!me.value.owner) return [];
  return [...participants.value.values()].flatMap(({ name, kind, state }) => [
    { key: `participant ${name}`, group: "Participants", title: `Participant ${name}`, detail: `${kind}, ${state}`, run: () => inspect({ kind: "participant", name }, "story") },
    { key: `restart ${name}`, group: "Participants", title: `Restart ${name}`, detail: kind, run: () => void restart(name) },
  ]);
}

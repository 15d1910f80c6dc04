/** The parts of the screens and every setting by everyday words, for the palette, which fetches this when it opens. */

import { signal } from "../html.js";
import { firstSentence, titleOf } from "../core/settings_form.js";
import { request } from "../net/api.js";
import { screenOf } from "../screens.js";
import { goToScreen, hasScreen } from "./screens.js";
import { me } from "./store.js";

/** Screen, address in it, title, what people call it, and whether it is the owner's alone, unless the screen is. */
const PARTS = [
  ["memory", "engrams", "Exchanges", "remembered conversations history recall forget"],
  ["memory", "facts", "Known about you: facts", "confirm drop correct personal name birthday allergy"],
  ["memory", "notes", "Notes", "remember write down"],
  ["memory", "file", "MEMORY.md", "instructions about me context"],
  ["memory", "soul", "SOUL.md", "character personality tone style language prompt", true],
  ["activity", "happened", "What happened", "history events timeline audit"],
  ["activity", "questions", "Questions", "queries asked failed slow"],
  ["activity", "changes", "File changes", "undo restore revert edited files workspace", true],
  ["activity", "messages", "Messages", "journal record export", true],
  ["activity", "bus", "Bus", "live traffic messages", true],
  ["activity", "subjects", "Subjects", "message types rates", true],
  ["activity", "dead", "Dead letters", "failed messages retry errors", true],
  ["agents", "goals", "Goals", "aims heartbeat reminders", true],
  ["agents", "reflection", "Reflection", "dreams background idle", true],
  ["tools", "tools", "Tools", "functions what the model can call"],
  ["tools", "approvals", "Approvals", "permissions allow deny grants waiting"],
  ["tools", "skills", "Skills", "instructions abilities"],
  ["tools", "profiles", "Profiles", "assistants personas roles"],
  ["tools", "mcp", "MCP servers", "plugins extensions connectors integrations"],
  ["tools", "hooks", "Hooks", "scripts before after"],
  ["tools", "folders", "Folders", "workspace trust directories"],
  ["participants", "critic/judgements", "Judgements of the critic", "grades ratings scores quality stars"],
  ["participants", "critic/compare", "Compare A and B", "blind vote second model"],
  ["system", "models", "Models: choose, download or add a server", "ollama openai provider api key llm gguf download server"],
  ["system", "participants", "Processes", "restart stop start memory cpu"],
  ["system", "usage", "Usage", "tokens cost money price statistics limits"],
  ["system", "backups", "Backups", "backup back up restore save copy export data"],
  ["system", "log", "Log", "logs errors debug output"],
  ["system", "doctor", "Doctor", "diagnose problems check health repair help"],
  ["system", "users", "Users", "invite share guests people accounts family access"],
  ["settings", "", "This page: theme and text size", "dark light mode colours colors appearance font zoom accessibility display night"],
  ["settings", "", "Signed in: browsers", "sign out log out sessions devices phone code security"],
  ["settings", "secrets", "Secrets", "api keys passwords tokens credentials", true],
  ["settings", "web_search", "Web search: choose an engine", "internet google brave tavily searxng duckduckgo online", true],
];

const settings = signal([]);

export async function loadSettings() {
  if (settings.peek().length || !me.peek().owner) return;
  settings.value = (await request("GET", "/settings").catch(() => ({ settings: [] }))).settings; // the next look may find them
}

/** @returns {import("./palette_items.js").Item[]} */
export function places() {
  const here = PARTS.filter(([screen, , , , isOwners]) => hasScreen(screen) && (!isOwners || me.value.owner));
  const parts = here.map(([screen, path, title, words]) => ({
    key: `part ${screen} ${title}`, group: "Parts of screens", title, words, detail: screenOf(screen).title, run: () => goToScreen(screen, ...path.split("/").filter(Boolean)),
  }));
  const files = settings.value.map(({ name }) => ({ key: `settings ${name}`, group: "Settings", title: `Settings of ${titleOf(name)}`, run: () => goToScreen("settings", name) }));
  const keys = settings.value.flatMap(({ name, keys = {} }) => Object.entries(keys).map(([key, texts]) => ({
    key: `setting ${name} ${key}`, group: "Settings", title: titleOf(key), words: `${titleOf(name)} ${firstSentence(texts[0] ?? "")}`, detail: titleOf(name), run: () => goToScreen("settings", name, key),
  })));
  return [...parts, ...files, ...keys];
}

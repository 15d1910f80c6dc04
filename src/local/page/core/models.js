/** Models in words. */

const ABILITIES = { tools: "tools", thinking: "thinking", vision: "pictures" };

/** What a model can do that matters to a person, as its server says. @param {{capabilities?: string[]}} model */
export function abilities({ capabilities = [] }) {
  return Object.entries(ABILITIES).filter(([name]) => capabilities.includes(name)).map(([, word]) => word);
}

const NUMBERS = { temperature: "temperature", top_p: "top-p", max_tokens: "at most" };

/** What was chosen for a conversation, in a few words; empty where all is as usual. @param {any} settings */
export function settingsLine(settings) {
  const parts = [settings.profile ? `profile ${settings.profile}` : "", settings.instructions ? "own instructions" : ""];
  for (const [name, word] of Object.entries(NUMBERS)) {
    if (settings[name] != null) parts.push(`${word} ${settings[name]}${name === "max_tokens" ? " tokens" : ""}`);
  }
  return parts.filter(Boolean).join(", ");
}

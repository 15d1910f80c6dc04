/** The permission modes in words: what becomes of a call that does more than read. */

/** @type {{id: string, title: string, text: string, ownerOnly: boolean}[]} */
export const MODES = [
  { id: "dontAsk", title: "Only read", text: "It may read and search. Every other call is denied without a question. Use it while you are away.", ownerOnly: false },
  { id: "default", title: "Ask me", text: "Calls that change something wait for your approval and are denied after five minutes without an answer.", ownerOnly: false },
  { id: "plan", title: "Plan first", text: "It only reads until you have approved its plan.", ownerOnly: false },
  { id: "acceptEdits", title: "Change files without asking", text: "Changes of files in the workspace, which can be undone, are made. Everything else is as with “Ask me”.", ownerOnly: true },
  { id: "bypassPermissions", title: "Allow everything", text: "Nothing is asked, whatever it does. Only where the settings of gatekeeper have may_bypass.", ownerOnly: true },
];

/** @param {string} id */
export function modeWords(id) {
  const mode = MODES.find((one) => one.id === id);
  return mode ? `${mode.title}: ${mode.text}` : id;
}

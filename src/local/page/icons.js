/** The page's own icons: 20 by 20, drawn in the colour of the text; the words beside them carry the meaning. */

import { html } from "./html.js";

/** Paths by name. @type {Record<string, string>} */
const PATHS = {
  chat: "M3.5 5.5a2 2 0 0 1 2-2h9a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H9l-4 3v-3a2 2 0 0 1-1.5-2z",
  memory: "M5 3.5h8.5a1.5 1.5 0 0 1 1.5 1.5v11.5H6.5A1.5 1.5 0 0 1 5 15zM5 15a1.5 1.5 0 0 1 1.5-1.5H15M8 7h4M8 9.8h2.5",
  activity: "M2.5 10.5h3l2.2-6 4 11.5 2.3-5.5h3.5",
  agents: "M10 6.2v3.3M5 13V11.3a1.8 1.8 0 0 1 1.8-1.8h6.4a1.8 1.8 0 0 1 1.8 1.8V13M10 2.3a1.9 1.9 0 1 0 0 3.9 1.9 1.9 0 0 0 0-3.9M5 13a1.9 1.9 0 1 0 0 3.9A1.9 1.9 0 0 0 5 13M15 13a1.9 1.9 0 1 0 0 3.9 1.9 1.9 0 0 0 0-3.9",
  schedules: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 6v4.2l2.8 1.7",
  tools: "M12.6 3.3a4.2 4.2 0 0 0-5 5.6l-4 4a1.9 1.9 0 0 0 0 2.6l.9.9a1.9 1.9 0 0 0 2.6 0l4-4a4.2 4.2 0 0 0 5.6-5L14.2 10 11 9 10 5.8z",
  system: "M4.5 3.5h11a1 1 0 0 1 1 1v3.5a1 1 0 0 1-1 1h-11a1 1 0 0 1-1-1V4.5a1 1 0 0 1 1-1M4.5 11h11a1 1 0 0 1 1 1v3.5a1 1 0 0 1-1 1h-11a1 1 0 0 1-1-1V12a1 1 0 0 1 1-1M6.2 6.2h.1M6.2 13.7h.1",
  settings: "M3 6h6.2M13.4 6H17M3 14h2.6M9.8 14H17M11.3 3.9a2.1 2.1 0 1 0 0 4.2 2.1 2.1 0 0 0 0-4.2M7.7 11.9a2.1 2.1 0 1 0 0 4.2 2.1 2.1 0 0 0 0-4.2",
  keys: "M3.5 5.5h13a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-13a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1M5.5 8.5h.1M8.5 8.5h.1M11.5 8.5h.1M14.5 8.5h.1M6.5 11.5h7",
  more: "M4.5 8.8a1.2 1.2 0 1 0 0 2.4 1.2 1.2 0 0 0 0-2.4M10 8.8a1.2 1.2 0 1 0 0 2.4 1.2 1.2 0 0 0 0-2.4M15.5 8.8a1.2 1.2 0 1 0 0 2.4 1.2 1.2 0 0 0 0-2.4",
};

/** @param {{name: string}} given */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}

/** The page's own icons: 20 by 20, drawn in the colour of the text; the words beside them carry the meaning. */

import { html } from "./html.js";

/** Paths by name. @type {Record<string, string>} */
const PATHS = {
  settings: "M3 6h6.2M13.4 6H17M3 14h2.6M9.8 14H17M11.3 3.9a2.1 2.1 0 1 0 0 4.2 2.1 2.1 0 0 0 0-4.2M7.7 11.9a2.1 2.1 0 1 0 0 4.2 2.1 2.1 0 0 0 0-4.2",
  good: "M6.5 9 9.6 3.2a1.7 1.7 0 0 1 1.9 1.7V8h3.6a1.6 1.6 0 0 1 1.6 1.9l-1 5.2a1.6 1.6 0 0 1-1.6 1.4H6.5zM6.5 9H3.8v7.5h2.7",
  bad: "M6.5 11l3.1 5.8a1.7 1.7 0 0 0 1.9-1.7V12h3.6a1.6 1.6 0 0 0 1.6-1.9l-1-5.2a1.6 1.6 0 0 0-1.6-1.4H6.5zM6.5 11H3.8V3.5h2.7",
  copy: "M7.5 7.5V5A1.5 1.5 0 0 1 9 3.5h6A1.5 1.5 0 0 1 16.5 5v6a1.5 1.5 0 0 1-1.5 1.5h-2.5M5 7.5h6A1.5 1.5 0 0 1 12.5 9v6a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 15V9A1.5 1.5 0 0 1 5 7.5",
  done: "M4.5 10.5l3.6 3.6 7.4-8",
  edit: "M4 16l.8-3.2 8.6-8.6a1.7 1.7 0 0 1 2.4 2.4l-8.6 8.6zM12 5.6 14.4 8",
  again: "M15.8 7.6a6.3 6.3 0 1 0 .5 3M16 3.8v3.9h-3.9",
  branch: "M6 7.2v5.6c0-3.4 8-2 8-5.6M6 3.6a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6M6 12.8a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6M14 3.6a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6",
  why: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M8 8.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.7-.8 1.4M10 14h.1",
};

/** @param {{name: string}} given */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}

/** A small button with an icon; its word is shown where there is room, its tip by the pointer. */

import { html } from "../html.js";
import { Icon } from "../icons.js";

/** @param {{icon: string, word: string, label: string, tip?: string, act: () => void, class?: string, pressed?: boolean}} given */
export function Act({ icon, word, label, tip = label, act, class: kind = "", pressed }) {
  return html`<button type="button" class=${`quiet act ${kind}`} aria-label=${label} title=${tip} aria-pressed=${pressed ?? null} onClick=${act}><${Icon} name=${icon} /><span class="word">${word}</span></button>`;
}

/** The parts of one screen, of which one is shown; each has an address. */

import { html, useLayoutEffect, useRef } from "../html.js";
import { addressOf } from "../state/screens.js";

/** @param {{screen: string, at: string, tabs: {id: string, title: string}[], path?: string[], label?: string}} given the
 * first tab has the address of the screen, or of its `path`, itself */
export function Tabs({ screen, at, tabs, path = [], label = "Parts of this screen" }) {
  const node = useRef(null);
  useLayoutEffect(() => node.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [at]);
  return html`<nav ref=${node} class="screen-tabs" aria-label=${label}>
    ${tabs.map(({ id, title }, index) => html`<a key=${id} href=${addressOf(screen, ...path, ...(index ? [id] : []))} aria-current=${id === at ? "page" : null}>${title}</a>`)}
  </nav>`;
}

/** The parts of one screen, of which one is shown; each has an address. */

import { html, useLayoutEffect, useRef } from "../html.js";
import { addressOf } from "../state/screens.js";

/** @param {{screen: string, at: string, tabs: {id: string, title: string}[]}} given the first tab has the screen's own address */
export function Tabs({ screen, at, tabs }) {
  const node = useRef(null);
  useLayoutEffect(() => node.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [at]);
  return html`<nav ref=${node} class="screen-tabs" aria-label="Parts of this screen">
    ${tabs.map(({ id, title }, index) => html`<a key=${id} href=${index ? addressOf(screen, id) : addressOf(screen)} aria-current=${id === at ? "page" : null}>${title}</a>`)}
  </nav>`;
}

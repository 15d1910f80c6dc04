/** One thing of a list, on its own address: the way back, its facts, its texts. */

import { html, useLayoutEffect } from "../html.js";
import { sheet } from "./sheet.js";

await sheet("./detail.css", import.meta.url);

/** Give the heading of the screen the focus. */
export function focusHead() {
  /** @type {HTMLElement | null} */
  const head = document.querySelector(".screen h1");
  head?.focus({ preventScroll: true });
}

/** The link back to the list; with it the heading has the focus on arrival, and again where it was left. */
export function Back({ href, children }) {
  useLayoutEffect(() => {
    focusHead();
    return () => void requestAnimationFrame(() => document.activeElement === document.body && focusHead());
  }, [location.hash]);
  return html`<p class="back-link"><a href=${href}>‹ ${children}</a></p>`;
}

/** Names and values; what has no value is left out. @param {{rows: [string, any][]}} given */
export function Facts({ rows }) {
  return html`<dl class="facts">${rows.filter(([, value]) => value != null && value !== "").map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl>`;
}

/** A text that somebody or something wrote, as it is. */
export function Words({ children }) {
  return html`<div class="words" dir="auto">${children}</div>`;
}

/** A longer text of a machine, which is scrolled by keys, too. @param {{label: string, text: string}} given */
export function Code({ label, text }) {
  return html`<pre class="text-block" tabindex="0" aria-label=${label} role="region">${text}</pre>`;
}

/** A word with a dot in its colour. @param {{state: "good" | "busy" | "bad" | "off", children: any}} given */
export function State({ state, children }) {
  return html`<span class="state"><span class="dot" data-tone=${state} aria-hidden="true"></span> ${children}</span>`;
}

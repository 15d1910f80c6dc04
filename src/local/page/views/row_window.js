/** A list of any length in rows of one height, of which those in sight are in the page. */

import { html, useLayoutEffect, useRef, useState } from "../html.js";

const BEYOND = 30; // rows before and behind those in sight
const FIRST = 60;

/** `draw(row, index)` makes an `li`; the nearest `[data-scroll]` scrolls it. */
export function RowWindow({ rows, draw, label, className }) {
  const list = useRef(null);
  const [sight, show] = useState({ first: 0, last: FIRST, height: 26 });
  useLayoutEffect(() => watched(list.current, show), []);
  const { height } = sight;
  const first = Math.min(sight.first, Math.max(0, rows.length - 1));
  const last = Math.min(rows.length, sight.last);
  return html`<ol ref=${list} class=${className} aria-label=${label} onKeyDown=${walk}>
    ${first > 0 ? html`<${Gap} height=${first * height} />` : null}
    ${rows.slice(first, last).map((row, index) => draw(row, first + index))}
    ${last < rows.length ? html`<${Gap} height=${(rows.length - last) * height} />` : null}
  </ol>`;
}

/** The room of the rows that are not in the page. */
function Gap({ height }) {
  return html`<li class="gap" aria-hidden="true"><svg width="1" height=${height}></svg></li>`;
}

/** Measure at the beginning, and whenever it is scrolled or its box changes: to measure at each change of the rows would
 * have the browser lay them out once more each time. */
function watched(list, show) {
  const root = list.closest("[data-scroll]") ?? document.scrollingElement;
  let frame = 0;
  const look = () => {
    frame = 0;
    const row = list.querySelector("li:not([aria-hidden])")?.offsetHeight;
    const above = root.getBoundingClientRect().top - list.getBoundingClientRect().top;
    show((before) => {
      const height = row || before.height;
      const first = Math.max(0, Math.floor(above / height) - BEYOND);
      const last = Math.ceil((above + root.clientHeight) / height) + BEYOND;
      return before.first === first && before.last === last && before.height === height ? before : { first, last, height };
    });
  };
  const later = () => (frame ||= requestAnimationFrame(look));
  const grown = new ResizeObserver(later);
  grown.observe(root);
  root.addEventListener("scroll", later, { passive: true });
  look();
  return () => {
    cancelAnimationFrame(frame);
    grown.disconnect();
    root.removeEventListener("scroll", later);
  };
}

/** Up and down from row to row. */
function walk(event) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const row = event.target.closest("li");
  const next = event.key === "ArrowDown" ? row?.nextElementSibling : row?.previousElementSibling;
  const button = next?.querySelector("button, a");
  if (!button) return;
  event.preventDefault();
  button.focus();
}

/** A button with a menu, as the keyboard expects it. */

import { html, useId, useLayoutEffect, useRef, useState } from "../html.js";

/** `items`: `{title, run, isBad?, isChecked?}`; those with `isChecked` are a choice of one. `onOpen` is called each time
 * before it opens. */
export function Menu({ label, items, children = "…", onOpen = () => {} }) {
  const [isOpen, open] = useState(false);
  const root = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    (root.current.querySelector("[aria-checked=true]") ?? root.current.querySelector("[role^=menuitem]"))?.focus();
    const outside = (event) => !root.current?.contains(event.target) && open(false);
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [isOpen]);
  const close = () => {
    open(false);
    root.current.querySelector("button").focus();
  };
  return html`<div class="menu" ref=${root} onKeyDown=${(event) => isOpen && move(event, close)}>
    <button type="button" class="quiet" aria-label=${label} aria-haspopup="menu" aria-expanded=${isOpen} aria-controls=${isOpen ? id : null} onClick=${() => (isOpen || onOpen(), open(!isOpen))}>${children}</button>
    ${isOpen
      ? html`<div role="menu" id=${id}>${items.map(
          (item) => html`<button type="button" role=${item.isChecked === undefined ? "menuitem" : "menuitemradio"} aria-checked=${item.isChecked ?? null} tabindex="-1" class=${item.isBad ? "bad" : null} onClick=${() => (close(), item.run())}>${item.title}</button>`
        )}</div>`
      : null}
  </div>`;
}

function move(event, close) {
  const items = [...event.currentTarget.querySelectorAll("[role^=menuitem]")];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === "Escape") close();
  else if (to !== undefined) items[(to + items.length) % items.length].focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

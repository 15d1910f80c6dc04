/** A button whose act cannot be undone: a dialog says what will be lost, and has it confirmed. */

import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { focusHead } from "./detail.js";

/** `act` throws what went wrong, which the dialog then says. @param {{act: () => Promise<any>, title: string, text: any,
 * verb: string, label?: string, kind?: string, children: any}} given */
export function ConfirmButton({ act, title, text, verb, label, kind = "edged", children }) {
  const [isOpen, open] = useState(false);
  const opener = useRef(null);
  useEffect(() => () => void requestAnimationFrame(() => document.activeElement === document.body && focusHead()), []); // its row is gone
  const close = () => {
    open(false);
    requestAnimationFrame(() => (opener.current?.isConnected ? opener.current.focus() : focusHead()));
  };
  return html`<button type="button" ref=${opener} class=${kind} aria-label=${label} aria-haspopup="dialog" onClick=${() => open(true)}>${children}</button>
    ${isOpen ? html`<${Dialog} title=${title} text=${text} verb=${verb} act=${act} close=${close} />` : null}`;
}

function Dialog({ title, text, verb, act, close }) {
  const [state, put] = useState({ isBusy: false, trouble: "" });
  const node = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    node.current?.showModal();
    node.current?.querySelector("[data-first]")?.focus();
  }, []);
  const run = async () => {
    put({ isBusy: true, trouble: "" });
    try {
      await act();
      close();
    } catch (failure) {
      put({ isBusy: false, trouble: failure.message });
    }
  };
  return html`<dialog ref=${node} class="dialog" aria-labelledby=${id} onCancel=${(event) => (event.preventDefault(), close())} onClose=${close} onMouseDown=${(event) => event.target === node.current && close()}>
    <h2 id=${id} dir="auto">${title}</h2><p>${text}</p>
    ${state.trouble ? html`<p class="trouble" role="alert">${state.trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Cancel</button>
      <button type="button" class="bad" aria-disabled=${state.isBusy || null} onClick=${() => state.isBusy || void run()}>${verb}</button></div>
  </dialog>`;
}

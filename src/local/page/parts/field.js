/** A field with its label, its help and its error; and a button that waits for what it began. */

import { html, useId, useState } from "../html.js";

/** @param {{label: string, help?: any, trouble?: string, children: (given: {id: string, "aria-describedby": string | null, "aria-invalid": boolean}) => any}} given */
export function Field({ label, help = "", trouble = "", children }) {
  const id = useId();
  const note = trouble || help ? `${id}-note` : null;
  return html`<div class="setting"><label for=${id}><b>${label}</b></label>
    ${children({ id, "aria-describedby": note, "aria-invalid": Boolean(trouble) })}
    ${trouble ? html`<small class="trouble" id=${note} role="alert">${trouble}</small>` : help ? html`<small id=${note}>${help}</small>` : null}</div>`;
}

/** A button that cannot be pressed again until `act` has ended. @param {{act: () => any, kind?: string, label?: string, disabled?: boolean, children: any}} given */
export function Button({ act, kind = "edged", label, disabled = false, children }) {
  const [isBusy, mark] = useState(false);
  const press = async () => {
    mark(true);
    try {
      await act();
    } finally {
      mark(false);
    }
  };
  return html`<button type="button" class=${kind} aria-label=${label} aria-busy=${isBusy || null} aria-disabled=${isBusy || null} disabled=${disabled} onClick=${() => isBusy || void press()}>${children}</button>`;
}

/** A list that shows its first rows and folds the others away. */

import { html, useState } from "../html.js";

/** The first `most` of `rows`, each drawn by `row`, and a button for the rest; the other attributes are the list's. */
export function FoldedList({ rows, most, row, ...attributes }) {
  const [isOpen, open] = useState(false);
  return html`<ol ...${attributes}>
    ${(isOpen ? rows : rows.slice(0, most)).map(row)}
    ${rows.length > most
      ? html`<li class="plain"><button type="button" class="quiet" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>${isOpen ? "Fewer" : `${rows.length - most} more`}</button></li>`
      : null}
  </ol>`;
}

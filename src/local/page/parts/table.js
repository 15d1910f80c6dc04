/** A table that can be sorted by its heads; on a phone each row is a card with the same words. */

import { html, useState } from "../html.js";

/**
 * @typedef {{id: string, title: string, value?: (row: any) => any, show?: (row: any) => any, isNumber?: boolean, isWide?: boolean}} Column
 * `value` is sorted by, and shown where there is no `show`; a column without it cannot be sorted. What `below` gives
 * stands under its row, as wide as the table.
 * @param {{label: string, columns: Column[], rows: any[], keyOf: (row: any) => string, below?: (row: any) => any}} given
 */
export function Table({ label, columns, rows, keyOf, below = () => null }) {
  const [order, sort] = useState({ id: "", isDown: false });
  const by = columns.find((column) => column.id === order.id);
  const shown = by?.value ? [...rows].sort((one, other) => compared(by.value?.(one), by.value?.(other)) * (order.isDown ? -1 : 1)) : rows;
  return html`<table class="table" role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th key=${column.id} role="columnheader" scope="col" class=${column.isNumber ? "r" : null} aria-sort=${column.id === order.id ? (order.isDown ? "descending" : "ascending") : null}>
      ${column.value ? html`<button type="button" onClick=${() => sort({ id: column.id, isDown: column.id === order.id && !order.isDown })}>${column.title}<span aria-hidden="true">${column.id === order.id ? (order.isDown ? " ↓" : " ↑") : ""}</span></button>` : html`<span>${column.title}</span>`}</th>`)}</tr></thead>
    <tbody role="rowgroup">${shown.map((row) => html`<${Row} key=${keyOf(row)} columns=${columns} row=${row} under=${below(row)} />`)}</tbody>
  </table>`;
}

function Row({ columns, row, under }) {
  return html`<tr role="row" class=${under ? "open" : null}>${columns.map((column) => html`<td key=${column.id} role="cell" data-title=${column.title} class=${column.isNumber ? "r num" : column.isWide ? "wide" : null}><div dir="auto">${column.show ? column.show(row) : column.value?.(row)}</div></td>`)}</tr>
    ${under ? html`<tr role="row" class="below"><td role="cell" colspan=${columns.length}>${under}</td></tr>` : null}`;
}

/** Numbers by their size, all else as words; what is missing comes first. */
function compared(one, other) {
  if (one == null || other == null) return Number(one != null) - Number(other != null);
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}

/** What the model has set itself to do, with ticks: open while it works on it, folded to its count afterwards. */

import { html } from "../html.js";
import { STATES, listAfter, progress } from "../core/todo.js";

export function TodoCard({ turn }) {
  const items = listAfter(turn.tool_calls);
  if (!items.length) return null;
  return html`<details class="todo" open=${turn.status === "open"}>
    <summary><span class="caret" aria-hidden="true"></span>To do <em class="num">${progress(items)}</em></summary>
    <ol>${items.map(
      ({ text, state }, index) => html`<li key=${index} data-state=${state}><i aria-hidden="true">${STATES[state][1]}</i><span class="unseen">${STATES[state][0]}: </span><span dir="auto">${text}</span></li>`
    )}</ol>
  </details>`;
}

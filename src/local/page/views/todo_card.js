/** What the model has set itself to do, a plan and a list, with ticks: open while it works on it, folded to its count afterwards. */

import { html } from "../html.js";
import { planAfter } from "../core/plan.js";
import { STATES, listAfter, progress } from "../core/todo.js";

export function TodoCard({ turn }) {
  const items = listAfter(turn.tool_calls);
  const plan = planAfter(turn.tool_calls);
  return html`${plan ? html`<${Items} title=${`Plan: ${plan.title}`} fact=${plan.status === "approved" ? progress(plan.steps) : plan.status} items=${plan.steps} turn=${turn} />` : null}
    ${items.length ? html`<${Items} title="To do" fact=${progress(items)} items=${items} turn=${turn} />` : null}`;
}

function Items({ title, fact, items, turn }) {
  return html`<details class="todo" open=${turn.status === "open"}>
    <summary><span class="caret" aria-hidden="true"></span><span dir="auto">${title}</span> <em class="num">${fact}</em></summary>
    <ol>${items.map(
      ({ text, state }, index) => html`<li key=${index} data-state=${state}><i aria-hidden="true">${STATES[state][1]}</i><span class="unseen">${STATES[state][0]}: </span><span dir="auto">${text}</span></li>`
    )}</ol>
  </details>`;
}

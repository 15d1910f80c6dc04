/** The tool calls of a turn as cards; more than three are folded. */

import { html } from "../html.js";
import { isDone } from "../core/turn.js";
import { isOfPlan, planAfter } from "../core/plan.js";
import { setsList } from "../core/todo.js";
import { counted, duration } from "../core/words.js";
import { useFold } from "../state/folds.js";
import { ToolCard } from "./tool_card.js";

const MOST = 3;

export function ToolCalls({ turn, sources }) {
  const plan = planAfter(turn.tool_calls);
  const calls = turn.tool_calls.filter((call) => !setsList(call) && !isOfPlan(call, plan)); // those are cards of their own
  const [isOpen, open] = useFold(`calls ${turn.query_id}`);
  if (!calls.length) return null;
  const isFolded = calls.length > MOST && !isOpen;
  const shown = isFolded ? calls.filter((call) => !isDone(call) || call.error) : calls;
  const total = calls.reduce((sum, call) => sum + (call.duration_ms ?? 0), 0) / 1000;
  return html`<div class="calls">
    ${calls.length > MOST
      ? html`<button type="button" class="calls-fold" aria-expanded=${!isFolded} onClick=${() => open(!isOpen)}><span class="caret" aria-hidden="true"></span>${counted(calls.length, "tool call")} <em>${duration(total)} · ${summary(calls)}</em></button>`
      : null}
    ${shown.map((call) => html`<${ToolCard} key=${call.call_id} call=${call} turn=${turn} sources=${sources} />`)}
  </div>`;
}

function summary(calls) {
  const counts = new Map();
  for (const call of calls) counts.set(call.tool, (counts.get(call.tool) ?? 0) + 1);
  return [...counts].map(([tool, count]) => (count > 1 ? `${tool} × ${count}` : tool)).join(", ");
}

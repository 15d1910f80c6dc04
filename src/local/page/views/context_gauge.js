/** How full the model's window is. */

import { html } from "../html.js";
import { figure } from "../core/words.js";
import { inspectorTab, isInspectorOpen } from "../state/store.js";

const PARTS = ["system", "tools", "summary", "history", "question", "steps"];

export function ContextGauge({ conversation }) {
  const context = conversation.context.value;
  if (!context?.limit) return null;
  const label = `Context: ${context.used} of ${context.limit} tokens`;
  const show = () => {
    inspectorTab.value = "context";
    isInspectorOpen.value = true;
  };
  let at = 0;
  const bars = PARTS.map((part) => {
    const width = (100 * (context.parts?.[part] ?? 0)) / context.limit;
    at += width;
    return html`<rect class=${`part-${part}`} x=${at - width} y="0" width=${width} height="6" />`;
  });
  return html`<button type="button" class="gauge" aria-label=${label} title=${label} onClick=${show}>
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">${bars}</svg>
    <span class="num">${figure(context.used)} / ${figure(context.limit)}</span>
  </button>`;
}

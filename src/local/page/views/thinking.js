/** What the model thought, folded to one line; it stays as the reader left it. */

import { html, signal } from "../html.js";
import { counted, duration } from "../core/words.js";
import { Prose } from "../markdown/prose.js";
import { foldOf, keepFold } from "../state/folds.js";

const KEPT_AS = "local2.thinking";

/** Whether thinking stands open while it comes. */
const opensLive = signal(localStorage.getItem(KEPT_AS) === "open");

export function Thinking({ turn }) {
  const isLive = turn.status === "open" && turn.phase === "thinking";
  const isOpen = foldOf(`thinking ${turn.query_id}`) ?? (isLive && opensLive.value);
  const toggle = (event) => {
    if (event.currentTarget.open === isOpen) return;
    keepFold(`thinking ${turn.query_id}`, event.currentTarget.open);
    if (isLive) keep(event.currentTarget.open);
  };
  return html`<details class="thinking" open=${isOpen} onToggle=${toggle} data-live=${isLive}>
    <summary><span class="caret" aria-hidden="true"></span>${isLive ? html`<span class="dots" aria-hidden="true"><u></u><u></u><u></u></span> Thinking` : "Thought"}${" "}<em>${extent(turn, isLive)}</em>
      ${isLive && !isOpen ? html`<q dir="auto" aria-hidden="true">${lastLine(turn.thinking)}</q>` : null}</summary>
    ${isOpen || !isLive ? html`<div class="thought"><${Prose} text=${turn.thinking} live=${isLive} /></div>` : null}
  </details>`;
}

function keep(isOpen) {
  opensLive.value = isOpen;
  localStorage.setItem(KEPT_AS, isOpen ? "open" : "folded");
}

function extent(turn, isLive) {
  if (isLive) return "";
  const seconds = (turn.usage?.steps ?? []).reduce((sum, step) => sum + (step.thinking ?? 0), 0);
  const words = turn.thinking.split(/\s+/).filter(Boolean).length;
  return seconds ? `for ${duration(seconds)} · ${counted(words, "word")}` : counted(words, "word");
}

function lastLine(text) {
  return text.slice(-160).split("\n").at(-1).trim();
}

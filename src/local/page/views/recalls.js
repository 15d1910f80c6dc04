/** What was remembered for an answer: the words, how old and how near they are, and why they came up. */

import { html, useEffect, useState } from "../html.js";
import { request } from "../net/api.js";
import { ago } from "../core/words.js";
import { dialog, now } from "../state/store.js";
import { FoldedList } from "./folded_list.js";

const MOST = 3;

export function Recalls({ recalled, sources }) {
  const most = Math.max(...recalled.flatMap((one) => Object.values(one.parts ?? {})).map(Math.abs), 0.01);
  const row = (one) => html`<${Recall} key=${one.engram_id} recall=${one} most=${most} number=${numberOf(sources, one.engram_id)} />`;
  return html`<${FoldedList} class="recalls" rows=${recalled} most=${MOST} row=${row} />`;
}

function numberOf(sources, engramId) {
  return sources.find((one) => one.address === `engram:${engramId}`)?.number;
}

const engrams = new Map();

function useEngram(id) {
  const [engram, keep] = useState(engrams.get(id) ?? null);
  useEffect(() => {
    if (engram) return;
    request("GET", `/memory/${encodeURIComponent(id)}`).then(
      (found) => (engrams.set(id, found.engram), keep(found.engram)),
      (failure) => keep({ trouble: failure.kind === "not_found" ? "This memory was deleted." : failure.message })
    );
  }, [id]);
  return engram;
}

function Recall({ recall, most, number }) {
  const engram = useEngram(recall.engram_id);
  const age = recall.asked_at ? now.value - recall.asked_at : recall.age_seconds;
  const outdated = isOutdated(recall.outdated);
  const facts = [age == null ? "" : ago(age), similarity(recall.similarity), engram?.score ? `graded ${engram.score}` : "", outdated].filter(Boolean);
  return html`<li class=${outdated ? "old" : null} value=${number}>
    <p dir="auto">${engram ? (engram.trouble ?? `“${shortened(engram.query)}”`) : html`<span class="skeleton line"></span>`}</p>
    <${Why} parts=${recall.parts} most=${most} />
    <small>${facts.join(" · ")} ${engram && !engram.trouble ? html`<button type="button" class="quiet" onClick=${() => (dialog.value = { kind: "forget", engramId: recall.engram_id, text: engram.query })}>Forget</button>` : null}</small>
  </li>`;
}

function isOutdated(outdated) {
  if (!outdated || (Array.isArray(outdated) && !outdated.length)) return "";
  const said = Array.isArray(outdated) ? outdated.map((one) => one.instead ?? one.now ?? "").find(Boolean) : "";
  return said ? `outdated: now “${said}”` : "outdated: contradicted later";
}

function similarity(value) {
  return value == null ? "" : `similarity ${value.toFixed(2).replace(/^(-?)0/, "$1")}`;
}

const NAMES = { fused: "match", words: "words", lexical: "words", bm25: "words", meaning: "meaning", semantic: "meaning", vector: "meaning", recency: "recent", critic: "well graded", rating: "your rating", pairwise: "better of two" };

/** The parts of the relevance as signed bars; `most` is the longest of them all. */
export function Why({ parts, most }) {
  const shown = Object.entries(parts ?? {}).filter(([name, value]) => typeof value === "number" && name !== "threshold" && Math.abs(value) >= 0.005);
  if (!shown.length) return null;
  return html`<div class="why"><span class="unseen">Why: </span>${shown.map(
    ([name, value]) => html`<span class="part" title=${`${name} ${value.toFixed(2)}`}>${NAMES[name] ?? name}
      <svg viewBox="0 0 56 4" width="56" height="4" role="img" aria-label=${value.toFixed(2)}><rect class="all" width="56" height="4" rx="2" /><rect class=${value < 0 ? "minus" : name === "fused" ? "match" : "plus"} width=${(56 * Math.abs(value)) / most} height="4" rx="2" /></svg></span>`
  )}</div>`;
}

function shortened(text) {
  return text.length > 220 ? `${text.slice(0, 220)}…` : text;
}

/** The critic's grade, 1 to 5; its words open beside it. */

import { html, useId, useState } from "../html.js";

const WORDS = { 1: "useless", 2: "poor", 3: "fair", 4: "good", 5: "very good" };

export function Grade({ critique }) {
  const [isOpen, open] = useState(false);
  const id = useId();
  if (!critique) return null;
  const { score, feedback, status, judge, self_judged: isOwn } = critique;
  if (score == null) return status === "failed" || status === "unparsed" ? html`<span title=${feedback || status}>not graded</span>` : null;
  return html`<span class="graded">
    <button type="button" class=${`grade g${score}`} aria-expanded=${isOpen} aria-controls=${id} aria-label=${`The critic: ${score} of 5, ${WORDS[score] ?? ""}`} onClick=${() => open(!isOpen)}>${score}</button>
    ${isOpen
      ? html`<span class="grade-words" id=${id} role="note"><b>${score} of 5, ${WORDS[score]}</b> ${feedback || "No explanation was given."} <small>${judge ?? "critic"}${isOwn ? ", the same model that answered" : ""}</small></span>`
      : null}
  </span>`;
}

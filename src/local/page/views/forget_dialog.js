/** Removes one memory: says what goes with it and what rests on it before, and who may repeat it afterwards. */

import { html, useState } from "../html.js";
import { counted } from "../core/words.js";
import { request } from "../net/api.js";
import { useResource } from "../parts/resource.js";
import { Repeated } from "./repeated.js";

/** @param {{engramId: string, text: string, done?: () => void, close: () => void}} given `done` is called when it is gone */
export function ForgetDialog({ engramId, text, done = () => {}, close }) {
  const [step, put] = useState({ name: "ask" });
  const forget = () => {
    put({ name: "working" });
    return request("DELETE", `/memory/${encodeURIComponent(engramId)}`).then(
      (gone) => (gone.repeated_in?.length ? put({ name: "done", ids: gone.repeated_in }) : (close(), done())),
      (failure) => put({ name: "ask", trouble: failure.message })
    );
  };
  if (step.name === "done") return html`<h2 id="dialog-title">Forgotten</h2><p>These answers recalled it and may repeat it:</p><${Repeated} ids=${step.ids} />
    <div class="dialog-acts"><button type="button" data-first onClick=${() => (close(), done())}>Close</button></div>`;
  return html`<h2 id="dialog-title">Forget this?</h2><blockquote dir="auto">${text}</blockquote>
    <p>The memory and its exchange are deleted permanently, also from the conversation.</p>
    <${Rests} engramId=${engramId} />
    ${step.trouble ? html`<p class="trouble" role="alert">${step.trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Cancel</button><button type="button" class="bad" aria-disabled=${step.name === "working" || null} onClick=${() => step.name === "working" || void forget()}>Forget</button></div>`;
}

/** The facts that go with it, and the answers that stay and may repeat it. */
function Rests({ engramId }) {
  const path = `/memory/${encodeURIComponent(engramId)}`;
  const facts = useResource(path).data?.facts?.filter((fact) => !fact.superseded_at) ?? [];
  const rests = useResource(`${path}/repeated`).data?.repeated_in?.length ?? 0;
  return html`${facts.length ? html`<p>Facts that are deleted with it: ${facts.map((fact, index) => html`${index ? ", " : ""}<bdi key=${index}>${fact.slot}: ${fact.value}</bdi>`)}. What they replaced holds again.</p>` : null}
    ${rests ? html`<p>${counted(rests, "answer")} ${rests === 1 ? "rests on it, stays, and may repeat it" : "rest on it, stay, and may repeat it"}.</p>` : null}`;
}

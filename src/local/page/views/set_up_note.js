/** What the owner has still to choose, one note at a time. One that is put away stays so in this tab, or in this browser. */

import { html, useState } from "../html.js";
import { goToScreen } from "../state/screens.js";
import { health, me, participants } from "../state/store.js";

const KEPT_AS = "local2.put_away";

/** @returns {{id: string, store: Storage, text: any, label: string, to: string[]}[]} the most important first */
function notes() {
  const detailsOf = (name) => (me.value.owner && participants.value.get(name)?.details) || {};
  const unfit = detailsOf("critic").grading_off;
  return [
    health.value?.stand_in && {
      id: "stand-in", store: sessionStorage, label: "Get a model", to: ["system", "models"],
      text: html`<b>The stand-in answers:</b> a small program with fixed rules<span class="long">, for a first look</span>. <span class="long">For real answers install a model; <code>local2 model try</code> installs a very small one.</span>`,
    },
    detailsOf("web_search").provider === "auto" && {
      id: "search", store: localStorage, label: "Choose a search engine", to: ["settings", "web_search"],
      text: html`<b>No search engine is chosen,</b> so the assistant may not find anything on the web.`,
    },
    unfit && { id: `grading ${unfit}`, store: localStorage, label: "Choose another judge", to: ["settings", "critic", "model"], text: html`<b>Grading is off,</b> because ${unfit}.` },
  ].filter(Boolean);
}

const putAway = (store) => store.getItem(KEPT_AS)?.split("\n") ?? [];

export function SetUpNote() {
  const [, draw] = useState(0);
  const note = notes().find(({ id, store }) => !putAway(store).includes(id));
  if (!note) return null;
  const { id, store, text, label, to } = note;
  const away = () => {
    store.setItem(KEPT_AS, [...putAway(store), id].join("\n"));
    draw(Date.now());
  };
  return html`<p class="bar-note" role="status" data-state=${id.split(" ")[0]}><span>${text}</span>
    <button type="button" class="get" onClick=${() => goToScreen(...to)}>${label}</button><button type="button" aria-label="Close this note" onClick=${away}>Later</button></p>`;
}

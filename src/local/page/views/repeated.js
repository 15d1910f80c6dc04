/** Memories that may repeat what was deleted; each can be deleted, too. */

import { html, useEffect, useState } from "../html.js";
import { request } from "../net/api.js";

export function Repeated({ ids }) {
  const [known, add] = useState(ids);
  const more = (others) => add((now) => [...new Set([...now, ...others])]);
  return html`<ul class="repeated">${known.map((id) => html`<${Memory} key=${id} id=${id} more=${more} />`)}</ul>`;
}

function Memory({ id, more }) {
  const [state, put] = useState({ text: "…" });
  useEffect(() => {
    request("GET", `/memory/${id}`).then(({ engram }) => put({ text: engram.query }), (failure) => put({ text: failure.message, isGone: true }));
  }, [id]);
  const forget = () =>
    request("DELETE", `/memory/${id}`).then(
      (done) => (put({ ...state, isGone: true }), more(done.repeated_in ?? [])),
      (failure) => put({ ...state, trouble: failure.message })
    );
  return html`<li><span dir="auto">${state.text}</span> ${state.isGone ? html`<small>deleted</small>` : html`<button type="button" onClick=${() => void forget()}>Delete it, too</button>`}
    ${state.trouble ? html`<small class="trouble" role="alert">${state.trouble}</small>` : null}</li>`;
}

/** A slider over all that is on record, and a field for an exact time; at the end it is now. */

import { html, useEffect, useState } from "../html.js";
import { request } from "../net/api.js";

/** @param {{until: number | null, jump: (until: number | null) => void}} given `until` is in seconds since 1970, null for now */
export function Times({ until, jump }) {
  const [span, put] = useState(null);
  const [at, move] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    request("GET", "/journal/span", undefined, { signal: stop.signal }).then(put, () => {});
    return () => stop.abort();
  }, []);
  if (!span?.first_at) return null;
  const first = Math.floor(span.first_at);
  const last = Math.ceil(span.last_at);
  const shown = at ?? until ?? last;
  const isNow = shown >= last;
  const text = isNow ? "now, with new messages as they come" : `up to ${whole(shown)}`;
  const choose = (seconds) => {
    move(null);
    jump(seconds >= last ? null : Math.max(seconds, first));
  };
  return html`<div class="times"><label for="journal-time">Time</label>
    <input type="range" id="journal-time" min=${first} max=${last} step="1" value=${shown} aria-valuetext=${text} onInput=${(event) => move(Number(event.target.value))} onChange=${(event) => choose(Number(event.target.value))} />
    <input type="datetime-local" step="1" aria-label="Date and time" value=${local(shown)} onChange=${(event) => event.target.value && choose(new Date(event.target.value).getTime() / 1000)} />
    <output for="journal-time">${text}</output>
    <button type="button" class="edged" disabled=${isNow} onClick=${() => (move(null), jump(null))}>Back to now</button></div>`;
}

function whole(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** As a field for a date and time takes it: 2026-11-27T09:30:00, of this time zone. */
function local(seconds) {
  const at = new Date(seconds * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

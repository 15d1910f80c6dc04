/** The messages on record: of now, as they come, or of the time that the slider is at. */

import { html, useEffect, useState } from "../html.js";
import { Messages } from "../parts/messages.js";
import { journalPath } from "../core/bus.js";
import { request, send } from "../net/api.js";
import { Button } from "../parts/field.js";
import { Trouble } from "../parts/notes.js";
import { saveFile } from "../state/listing.js";
import { Chosen, KINDS_OF_MESSAGES, Participants, Sessions } from "./filters.js";

export function Recorded() {
  const [wanted, want] = useState({ kind: "", session: "", participant: "" });
  const [until, jump] = useState(null);
  const [failure, fail] = useState(null);
  const save = () =>
    send("GET", journalPath({ ...wanted, until, limit: null }, "/journal/export"))
      .then((response) => response.blob())
      .then((content) => (fail(null), saveFile(content, "messages.ndjson")), fail);
  return html`<div class="filters"><${Chosen} label="Kind" at=${wanted.kind} options=${KINDS_OF_MESSAGES} choose=${(kind) => want({ ...wanted, kind })} />
      <${Sessions} at=${wanted.session} choose=${(session) => want({ ...wanted, session })} />
      <${Participants} at=${wanted.participant} choose=${(participant) => want({ ...wanted, participant })} /><span class="push"></span><${Button} act=${save}>Save as a file</${Button}></div>
    ${failure ? html`<${Trouble} text="The messages were not saved." failure=${failure} act=${() => void save()} />` : null}
    <${Times} until=${until} jump=${jump} />
    <${Messages} wanted=${wanted} until=${until} label="Messages" empty="No message of this kind is on record." />`;
}

/** A slider over all that is on record; at its end it is now. */
function Times({ until, jump }) {
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
  const choose = (event) => {
    const value = Number(event.target.value);
    move(null);
    jump(value >= last ? null : value);
  };
  return html`<div class="times"><label for="journal-time">Time</label>
    <input type="range" id="journal-time" min=${first} max=${last} step="1" value=${shown} aria-valuetext=${text} onInput=${(event) => move(Number(event.target.value))} onChange=${choose} />
    <output for="journal-time">${text}</output>
    <button type="button" class="edged" disabled=${isNow} onClick=${() => (move(null), jump(null))}>Back to now</button></div>`;
}

function whole(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

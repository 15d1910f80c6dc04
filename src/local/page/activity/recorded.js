/** The messages on record: of now, as they come, or of the time that the slider is at. */

import { html, useState } from "../html.js";
import { journalPath } from "../core/bus.js";
import { send } from "../net/api.js";
import { Button } from "../parts/field.js";
import { Messages } from "../parts/messages.js";
import { Trouble } from "../parts/notes.js";
import { saveFile } from "../state/listing.js";
import { Chosen, KINDS_OF_MESSAGES, Participants, Sessions } from "./filters.js";
import { Times } from "./times.js";

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

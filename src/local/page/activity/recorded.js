/** The messages on record: of now, as they come, or of the time that the slider is at. */

import { html, useState } from "../html.js";
import { journalPath } from "../core/bus.js";
import { send } from "../net/api.js";
import { Button } from "../parts/field.js";
import { Messages } from "../parts/messages.js";
import { Trouble } from "../parts/notes.js";
import { saveFile } from "../state/listing.js";
import { FilterField } from "./filter_field.js";
import { Times } from "./times.js";

export function Recorded() {
  const [filter, want] = useState("");
  const [until, jump] = useState(null);
  const [failure, fail] = useState(null);
  const save = () =>
    send("GET", journalPath({ filter, until, limit: null }, "/journal/export"))
      .then((response) => response.blob())
      .then((content) => (fail(null), saveFile(content, "messages.ndjson")), fail);
  return html`<div class="filters"><${FilterField} at=${filter} choose=${want} /><${Button} act=${save}>Save as a file</${Button}></div>
    ${failure ? html`<${Trouble} text="The messages were not saved." failure=${failure} act=${() => void save()} />` : null}
    <${Times} until=${until} jump=${jump} />
    <${Messages} filter=${filter} until=${until} label="Messages" empty=${filter ? "No message on record matches this filter." : "No message is on record."} />`;
}

/** Messages that a participant could not handle, and their redelivery. */

import { html, useState } from "../html.js";
import { counted, moment } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { ownerRequest } from "../state/system.js";
import { now } from "../state/store.js";

export function DeadLetters() {
  const { data, trouble, reload } = useResource("/journal/dead");
  const [told, tell] = useState({ done: "", failure: null, retry: null });
  const redeliver = async (body) => {
    try {
      const { redelivered } = await ownerRequest("POST", "/journal/redeliver", body);
      const count = Object.values(redelivered).reduce((sum, numbers) => sum + numbers.length, 0);
      tell({ done: count ? `${counted(count, "message")} will be delivered again.` : "Nothing was left to deliver again.", failure: null, retry: null });
      reload();
    } catch (failure) {
      tell({ done: "", failure, retry: () => void redeliver(body) });
    }
  };
  const letters = data?.dead_letters ?? [];
  const consumers = [...new Set(letters.map((one) => one.consumer))].sort();
  const columns = [
    { id: "subject", title: "Message", value: (row) => row.dead_subject, show: (row) => html`<code>${row.dead_subject}</code>` },
    { id: "at", title: "When", value: (row) => row.committed_at, show: (row) => moment(row.committed_at, now.value) },
    { id: "consumer", title: "For", value: (row) => row.consumer },
    { id: "reason", title: "Why", value: (row) => row.reason, isWide: true },
    { id: "number", title: "Number", value: (row) => row.number, isNumber: true },
    { id: "act", title: "Action", show: (row) => html`<${Button} label=${`Deliver message ${row.number} to ${row.consumer} again`} act=${() => redeliver({ numbers: [row.number], consumer: row.consumer })}>Redeliver</${Button}>` },
  ];
  return html`<p class="help">A message that a participant has failed on too often is set aside here, so that it holds up nobody. Repair the cause first; then have it delivered again. A failed question already has its answer, the error: ask it again instead.</p>
    <p role="status">${told.done}</p>
    ${told.failure ? html`<${Trouble} text="The message was not delivered again." failure=${told.failure} act=${told.retry} />` : null}
    ${trouble ? html`<${Trouble} text="The dead letters could not be read." failure=${trouble} act=${reload} />` : null}
    ${letters.length
      ? html`<${Table} label="Dead letters" columns=${columns} rows=${letters} keyOf=${(row) => `${row.consumer} ${row.number}`} />
          ${data.count > letters.length ? html`<p class="help">The latest ${letters.length} of ${data.count}.</p>` : null}
          <div class="row-acts all-of">${consumers.map((name) => html`<${Button} key=${name} act=${() => redeliver({ consumer: name })}>Redeliver all for ${name}</${Button}>`)}</div>`
      : data ? html`<${Empty}>There are no dead letters: every message was handled.</${Empty}>` : trouble ? null : html`<${Loading} />`}`;
}

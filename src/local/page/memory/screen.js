/** What is known about the user, and what was found and not confirmed: that is confirmed or dropped here. */

import { html, useState } from "../html.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { request } from "../net/api.js";
import { Fact } from "../views/fact.js";

export function Screen() {
  const { data, trouble, reload } = useResource("/memory/facts");
  const [failure, fail] = useState(null);
  const settle = (fact, method) => request(method, `/memory/facts/${fact.fact_id}${method === "POST" ? "/confirm" : ""}`).then(() => (fail(null), reload()), fail);
  return html`<${ScreenHead} title="Memory" text="What LoCAL2 knows about you. Unconfirmed facts are not told to any model." />
    ${failure ? html`<${Trouble} text="The fact was not changed." failure=${failure} label="Reload" act=${() => (fail(null), reload())} />` : null}
    ${trouble ? html`<${Trouble} text="The facts could not be read." failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${Facts} known=${data} settle=${settle} />` : trouble ? null : html`<${Loading} />`}`;
}

function Facts({ known, settle }) {
  if (!known.facts.length && !known.unconfirmed.length) return html`<${Empty}>No fact is known yet. State one in a conversation, such as “I take my coffee black.”</${Empty}>`;
  return html`${known.unconfirmed.length ? html`<h2>Unconfirmed</h2><ul class="plain-rows">${known.unconfirmed.map((fact) => html`<${Fact} key=${fact.fact_id} fact=${fact} settle=${settle} />`)}</ul>` : null}
    ${known.facts.length ? html`<h2>Facts</h2><ul class="plain-rows">${known.facts.map((fact) => html`<${Fact} key=${fact.fact_id} fact=${fact} />`)}</ul>` : null}`;
}

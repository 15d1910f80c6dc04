/** Whether this browser is signed in, the other browsers that are, and signing in and out. */

import { html, useState } from "../html.js";
import { request } from "../net/api.js";
import { signIn, signOut } from "../net/token.js";
import { Button } from "../parts/field.js";
import { Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { me } from "../state/store.js";
import { ownerRequest } from "../state/system.js";
import { CopyButton } from "../views/copy_button.js";
import { dayOf } from "./day.js";

export function SignedIn() {
  const [trouble, put] = useState("");
  const leave = async (everywhere) => put(await signOut(everywhere));
  const now = signIn.value;
  return html`<section class="signed-in"><h2>Signing in</h2>
    ${now ? html`<p class="help">This browser is signed in as ${now.owner ? "the owner" : html`<b dir="auto">${now.user_id}</b>`}, until you sign out or do not use it for 90 days.</p>` : html`<p class="help">This browser is not signed in. Enter the code that <code>local2 code</code> prints at the top of the page.</p>`}
    ${now ? html`<${Browsers} />
    <div class="ask-acts"><button type="button" onClick=${() => void leave(false)}>Sign out</button>
      <button type="button" onClick=${() => void leave(true)}>Sign out of all browsers</button>
      ${me.value.owner ? html`<${AnotherOne} />` : null}</div>` : null}
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
  </section>`;
}

function Browsers() {
  const { data, trouble, reload } = useResource("/sign-ins");
  const [failure, fail] = useState(null);
  const out = (row) => request("DELETE", `/sign-ins/${row.id}`).then(() => (fail(null), reload()), fail);
  const columns = [
    { id: "browser", title: "Browser", value: (row) => row.browser, show: (row) => html`${row.browser || "unknown"}${row.is_this ? html` <span class="tag">this one</span>` : null}` },
    { id: "begun", title: "Signed in", value: (row) => row.begun_at, show: (row) => dayOf(row.begun_at * 1000) },
    { id: "used", title: "Last used", value: (row) => row.used_at, show: (row) => dayOf(row.used_at * 1000) },
    { id: "acts", title: "Action", show: (row) => (row.is_this ? null : html`<${Button} kind="quiet edged" label=${`Sign out ${row.browser || "the unknown browser"} of ${dayOf(row.begun_at * 1000)}`} act=${() => out(row)}>Sign it out</${Button}>`) },
  ];
  if (!data) return trouble ? html`<${Trouble} text="The signed-in browsers could not be read." failure=${trouble} act=${reload} />` : html`<${Loading} />`;
  return html`${failure ? html`<${Trouble} text="The browser was not signed out." failure=${failure} label="Reload" act=${() => (fail(null), reload())} />` : null}
    <${Table} label="Signed-in browsers" columns=${columns} rows=${data.sign_ins} keyOf=${(row) => row.id} />`;
}

/** A code for a browser elsewhere, as `local2 code` prints it. */
function AnotherOne() {
  const [state, put] = useState({ code: "", trouble: "" });
  const make = () => ownerRequest("POST", "/sign-in/codes", {}).then(({ code }) => put({ code, trouble: "" }), (failure) => put({ code: "", trouble: failure.message }));
  return html`<${Button} act=${make}>Sign in another browser</${Button}>
    ${state.code ? html`<p class="help" role="status">Enter <code>${state.code}</code> <${CopyButton} text=${state.code} what="code" /> on the page in the other browser. It works once, within ten minutes, and signs that browser in as you, the owner.</p>` : null}
    ${state.trouble ? html`<p class="trouble" role="alert">No code was made: ${state.trouble}</p>` : null}`;
}

/** The secrets: which there are, what uses them, a new one. Their values are shown nowhere. */

import { html, useRef, useState } from "../html.js";
import { Button, Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { addressOf } from "../state/screens.js";
import { ownerRequest } from "../state/system.js";
import { dayOf } from "./day.js";
import { waitFor } from "./waiting.js";

/** @param {{listing: any[]}} given */
export function Secrets({ listing }) {
  const { data, trouble, reload } = useResource("/secrets");
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [wrong, say] = useState({ of: "", text: "" });
  const [sure, ask] = useState("");
  const nameBox = useRef(/** @type {HTMLInputElement | null} */ (null));
  const valueBox = useRef(/** @type {HTMLInputElement | null} */ (null));
  const rows = data?.secrets ?? [];
  const readersOf = (row) => row.used_by.flatMap((place) => listing.find((one) => one.name === place.split(".")[0])?.read_by ?? (place.startsWith("mcp_") ? [place] : []));
  const doing = async (of, method, body) => {
    say({ of: "", text: "" });
    try {
      await ownerRequest(method, `/secrets/${encodeURIComponent(of)}`, body);
      const row = rows.find((one) => one.name === of);
      if (row) waitFor(readersOf(row));
      setName("");
      setValue("");
      ask("");
      reload();
      nameBox.current?.focus();
    } catch (failure) {
      say({ of: method === "PUT" ? "new" : of, text: failure.message });
    }
  };
  const columns = [
    { id: "name", title: "Name", value: (row) => row.name, show: (row) => html`<code>${row.name}</code>` },
    { id: "set", title: "Stored", value: (row) => row.set_at ?? "", show: (row) => (row.set_at ? dayOf(row.set_at) : html`<b class="missing">missing</b>`) },
    { id: "used", title: "Used by", show: (row) => (row.used_by.length ? row.used_by.map((place) => html`<div key=${place}>${used(place, listing)}</div>`) : html`<small>nothing</small>`) },
    { id: "acts", title: "Actions", show: (row) => html`<div class="row-acts"><button type="button" class="quiet edged" aria-label=${`Set ${row.name}`} onClick=${() => (setName(row.name), valueBox.current?.focus())}>Set</button>
      ${row.set_at ? html`<button type="button" class="quiet edged" aria-label=${`Remove ${row.name}`} onClick=${() => ask(row.name)}>Remove</button>` : null}</div>
      ${sure === row.name ? html`<div class="sure" role="group" aria-label="Confirm"><p>The value will be deleted; it cannot be restored.${row.used_by.length ? " What uses it does not start without it." : ""}</p>
        <div class="row-acts"><${Button} kind="bad edged" act=${() => doing(row.name, "DELETE")}>Remove it</${Button}><button type="button" class="edged" onClick=${() => ask("")}>Keep it</button></div></div>` : null}
      ${wrong.of === row.name ? html`<small class="trouble" role="alert">${wrong.text}</small>` : null}` },
  ];
  return html`<h2>Secrets</h2>
    <div class="help"><p>Keys and passwords, encrypted in the data directory. A setting names one as <code>secret:NAME</code>. A participant reads them when it starts. They are in no backup, and this page never gets a value back.</p></div>
    ${trouble ? html`<${Trouble} text="The secrets could not be read." failure=${trouble} act=${reload} />` : null}
    ${data ? (rows.length ? html`<${Table} label="Secrets" columns=${columns} rows=${rows} keyOf=${(row) => row.name} />` : html`<${Empty}>No secret is stored. A key that you enter in a setting is listed here, and so is one that you store below.</${Empty}>`) : trouble ? null : html`<${Loading} />`}
    <form class="new-secret" aria-label="Store a secret" onSubmit=${(event) => (event.preventDefault(), name.trim() && value.trim() && void doing(name.trim(), "PUT", { value: value.trim() }))}>
      <${Field} label="Name" help="Letters, digits and _.-">${(given) => html`<input type="text" ref=${nameBox} autocomplete="off" spellcheck="false" ...${given} value=${name} onInput=${(event) => setName(event.target.value)} />`}</${Field}>
      <${Field} label="Value" help="One line of at least 8 characters" trouble=${wrong.of === "new" ? wrong.text : ""}>${(given) => html`<input type="password" ref=${valueBox} autocomplete="off" spellcheck="false" ...${given} value=${value} onInput=${(event) => setValue(event.target.value)} />`}</${Field}>
      <button type="submit" class="accent" disabled=${!name.trim() || !value.trim()}>Store</button>
    </form>`;
}

function used(place, listing) {
  const [section, key] = place.split(".");
  return listing.some((one) => one.name === section) ? html`<a href=${addressOf("settings", section, key)}>${place}</a>` : place;
}

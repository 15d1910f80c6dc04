/** The folders that are trusted: whose files count as the owner's, and which may instruct the assistant. */

import { html, useState } from "../html.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Code } from "../parts/detail.js";
import { Button, Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { request } from "../net/api.js";
import { ownerRequest } from "../state/system.js";

export function Folders() {
  const { data, trouble, reload } = useResource("/trust");
  const withdraw = (folder) => ownerRequest("DELETE", `/trust?${new URLSearchParams({ folder })}`).then(reload);
  const columns = [
    { id: "path", title: "Folder", value: (row) => row.path, show: (row) => html`<code>${row.path}</code>${row.problem ? html` <small>${row.problem}</small>` : null}`, isWide: true },
    { id: "since", title: "Since", value: (row) => row.trusted_at, show: (row) => row.trusted_at.slice(0, 10) },
    { id: "acts", title: "Actions", show: ({ path }) => html`<${ConfirmButton} kind="quiet edged" label=${`Trust ${path} no longer`} title="Trust this folder no longer?" verb="Trust it no longer" text="Its files count as untrusted content again, and what it instructs does not count." act=${() => withdraw(path)}>Trust no longer</${ConfirmButton}>` },
  ];
  return html`${trouble ? html`<${Trouble} text="The trusted folders could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.folders.length ? html`<${Table} label="Trusted folders" columns=${columns} rows=${data.folders} keyOf=${(row) => row.path} />` : data ? html`<${Empty}>No folder is trusted. Files that the assistant did not write itself count as untrusted content.</${Empty}>` : trouble ? null : html`<${Loading} />`}
    <h2>Trust a folder</h2><${NewFolder} done=${reload} />`;
}

/** What the folder instructs is shown first; what has changed meanwhile is not trusted. */
function NewFolder({ done }) {
  const [folder, type] = useState("");
  const [state, put] = useState({ found: null, trouble: "", said: "" });
  const look = async (event) => {
    event.preventDefault();
    await request("GET", `/trust/contents?${new URLSearchParams({ folder: folder.trim() })}`).then((found) => put({ found, trouble: "", said: "" }), (failure) => put({ found: null, trouble: failure.message, said: "" }));
  };
  const trust = () =>
    ownerRequest("POST", "/trust", { folder: state.found.folder, digest: state.found.digest }).then(
      () => (put({ found: null, trouble: "", said: `${state.found.folder} is trusted.` }), type(""), done()),
      (failure) => put({ found: null, trouble: failure.message, said: "" })
    );
  const { found } = state;
  return html`<form class="box" onSubmit=${look} noValidate>
    <${Field} label="Folder" help="Its whole path on the machine that LoCAL2 runs on." trouble=${state.trouble}>${(given) => html`<input type="text" ...${given} autocomplete="off" spellcheck=${false} placeholder="/home/ann/notes" value=${folder} onInput=${(event) => (type(event.currentTarget.value), put({ found: null, trouble: "", said: "" }))} />`}</${Field}>
    ${state.said ? html`<p role="status">${state.said}</p>` : null}
    ${found ? null : html`<div class="deeds"><button class="accent" type="submit" disabled=${!folder.trim()}>Show what it instructs</button></div>`}</form>
    ${found ? html`<p class="lead">${found.problem || (found.files.length ? "The assistant will be told this where it works in the folder. After any change it must be trusted again." : "It instructs nothing. Its files will count as yours.")}</p>
      ${found.files.map((file) => html`<h3 key=${file.path}><code>${file.path}</code></h3><${Code} label=${file.path} text=${file.text} />`)}
      ${found.problem ? null : html`<div class="deeds"><${Button} kind="accent" act=${trust}>Trust this folder</${Button}></div>`}` : null}`;
}

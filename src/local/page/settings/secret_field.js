/** A setting that names a secret: whether it is there, a new value, and none. The value goes to LoCAL2 and never back. */

import { html, useState } from "../html.js";
import { Button } from "../parts/field.js";
import { ownerRequest } from "../state/system.js";
import { dayOf } from "./day.js";

/** The name under which a key is stored: the one that the setting names, else one after the key. */
export function secretName(field) {
  if (String(field.value ?? "").startsWith("secret:")) return field.value.slice("secret:".length);
  return field.name.replace(/_(api_)?(key|token|secret|password)$/, "");
}

/** @param {{field: any, section: string, secrets: any[] | null, id: string, note: string, changed: (shown: any) => void}} given */
export function SecretField({ field, section, secrets, id, note, changed }) {
  const [typed, type] = useState("");
  const [trouble, put] = useState("");
  const [isSure, ask] = useState(false);
  const name = secretName(field);
  const found = secrets?.find((one) => one.name === name);
  const others = (found?.used_by ?? []).filter((one) => one !== `${section}.${field.name}`);
  const settings = (body) => ownerRequest("PUT", `/settings/${encodeURIComponent(section)}`, body);
  const doing = (act) => async () => {
    put("");
    try {
      changed(await act());
      type("");
      ask(false);
      document.getElementById(id)?.focus();
    } catch (failure) {
      put(failure.message);
    }
  };
  const store = doing(async () => {
    await ownerRequest("PUT", `/secrets/${encodeURIComponent(name)}`, { value: typed.trim() });
    return settings({ values: { [field.name]: `secret:${name}` } });
  });
  const clear = doing(async () => {
    const shown = await settings(field.source?.from === "file" ? { reset: [field.name] } : { values: { [field.name]: null } });
    if (found?.set_at && !others.length) await ownerRequest("DELETE", `/secrets/${encodeURIComponent(name)}`);
    return shown;
  });
  return html`<p class="state" data-state=${field.value && found?.set_at ? "set" : "none"}>${stateOf(field, name, found)}</p>
    <div class="secret"><input type="password" id=${id} autocomplete="off" spellcheck="false" placeholder=${field.value ? "a new value" : "the value"} aria-describedby=${note} aria-invalid=${Boolean(trouble)} value=${typed} onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && (event.preventDefault(), typed.trim() && void store())} />
      <${Button} disabled=${!typed.trim()} label=${`Store ${field.title}`} act=${store}>Store</${Button}>
      ${field.value && secrets ? html`<button type="button" class="edged" aria-label=${`Clear ${field.title}`} onClick=${() => ask(true)}>Clear</button>` : null}</div>
    ${isSure ? html`<div class="sure" role="group" aria-label="Confirm"><p>${others.length || !found?.set_at ? `The setting will name no secret any more.` : `The stored value of ${name} will be deleted; it cannot be shown or restored.`}</p>
      <div class="row-acts"><${Button} kind="bad edged" act=${clear}>Clear it</${Button}><button type="button" class="edged" onClick=${() => ask(false)}>Keep it</button></div></div>` : null}
    ${trouble ? html`<small class="trouble" role="alert">${trouble}</small>` : null}`;
}

function stateOf(field, name, found) {
  if (field.source?.from === "variable") return html`Set by the environment variable <code>${field.source.name}</code>, which overrides what is stored here.`;
  if (!field.value) return "Not set.";
  if (!String(field.value).startsWith("secret:")) return "Written in the file itself. Store it here, so that it is encrypted.";
  if (!found?.set_at) return html`<b>Missing:</b> the setting names <code>${field.value}</code>, and nothing is stored by that name.`;
  return html`Stored as <code>${name}</code> on ${dayOf(found.set_at)}.`;
}

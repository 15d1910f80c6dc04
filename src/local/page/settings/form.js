/** One file of settings, as a form made from its schema. */

import { html, useState } from "../html.js";
import { fieldsOf, parsed, shown } from "../core/settings_form.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ownerRequest, restart } from "../state/system.js";

/** @param {{name: string}} given */
export function SettingsForm({ name }) {
  const { data, trouble, reload } = useResource(`/settings/${encodeURIComponent(name)}`);
  return html`<h2>Settings of ${name}</h2>
    ${trouble ? html`<${Trouble} text=${trouble.kind === "not_found" ? `There are no settings of ${name}.` : "The settings could not be read."} failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${Form} name=${name} read=${data} />` : trouble ? null : html`<${Loading} />`}`;
}

function Form({ name, read }) {
  const [settings, put] = useState(read);
  const fields = fieldsOf(settings);
  const [typed, type] = useState({});
  const [state, tell] = useState({ trouble: "", saved: null });
  const answers = Object.fromEntries(Object.keys(typed).map((key) => [key, parsed(fields.find((field) => field.name === key), typed[key])]));
  const isWrong = Object.values(answers).some((answer) => answer.trouble);
  const save = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(Object.entries(answers).map(([key, { value }]) => [key, value]));
    try {
      const saved = await ownerRequest("PUT", `/settings/${encodeURIComponent(name)}`, { values });
      put({ ...settings, ...saved });
      type({});
      tell({ trouble: "", saved: settings.restart_needed ?? [] });
    } catch (failure) {
      tell({ trouble: failure.message, saved: null });
    }
  };
  if (!fields.length) return html`<${Empty}>There are no settings.</${Empty}>`;
  return html`<form onSubmit=${save} noValidate>
    ${settings.problem ? html`<p class="trouble" role="alert">${settings.problem}</p>` : null}
    ${settings.file ? html`<p class="help">Stored in <code>${settings.file}</code>.</p>` : null}
    ${fields.map((field) => html`<${Setting} key=${field.name} field=${field} typed=${typed[field.name]} trouble=${answers[field.name]?.trouble} change=${(value) => type({ ...typed, [field.name]: value })} />`)}
    ${state.trouble ? html`<p class="trouble" role="alert">Not saved: ${state.trouble}</p>` : null}
    ${state.saved ? html`<${Saved} readers=${state.saved} />` : null}
    <div class="form-acts"><button class="accent" type="submit" disabled=${isWrong || !Object.keys(typed).length}>Save</button></div>
  </form>`;
}

/** What is saved counts when those that read it are started again. */
function Saved({ readers }) {
  if (!readers.length) return html`<p role="status">Saved.</p>`;
  if (readers.includes("system")) return html`<p role="status">Saved. The change takes effect after the next start of LoCAL2.</p>`;
  return html`<p role="status">Saved. The change takes effect after a restart. ${readers.map((name) => html`<button type="button" key=${name} onClick=${() => void restart(name)}>Restart ${name}</button> `)}</p>`;
}

function Setting({ field, typed, trouble, change }) {
  const value = typed ?? (field.kind === "switch" ? field.value : shown(field, field.value));
  const id = `setting-${field.name}`;
  const notes = field.isChanged ? `default: ${shown(field, field.standard) || "none"}` : "";
  const Box = BOXES[field.kind];
  return html`<div class="setting">
    <label for=${id}><b>${field.title}</b>${notes ? html` <small>${notes}</small>` : null}</label>
    <${Box} id=${id} field=${field} value=${value} isWrong=${Boolean(trouble)} change=${change} />
    ${trouble ? html`<small class="trouble" id=${`${id}-note`} role="alert">${trouble}</small>` : field.description ? html`<small id=${`${id}-note`}>${field.description}</small>` : null}
  </div>`;
}

const BOXES = {
  switch: ({ id, value, change }) => html`<input type="checkbox" id=${id} checked=${Boolean(value)} onChange=${(event) => change(event.target.checked)} />`,
  choice: ({ id, field, value, change }) => html`<select id=${id} aria-describedby=${`${id}-note`} onChange=${(event) => change(event.target.value)}>${field.options.map((one) => html`<option value=${String(one)} selected=${String(one) === String(value)}>${String(one)}</option>`)}</select>`,
  json: ({ id, value, isWrong, change }) => html`<textarea id=${id} rows="3" spellcheck="false" aria-invalid=${isWrong} aria-describedby=${`${id}-note`} value=${value} onInput=${(event) => change(event.target.value)}></textarea>`,
  number: (given) => html`<${Line} ...${given} />`,
  text: (given) => html`<${Line} ...${given} />`,
};

function Line({ id, field, value, isWrong, change }) {
  return html`<input type=${field.isSecret ? "password" : "text"} inputmode=${field.kind === "number" ? "decimal" : null} id=${id} autocomplete="off" spellcheck="false" aria-invalid=${isWrong} aria-describedby=${`${id}-note`} placeholder=${field.isNullable ? "none" : ""} value=${value} onInput=${(event) => change(event.target.value)} />`;
}

/** One file of settings, as a form made from its schema and its comments. */

import { html, useEffect, useLayoutEffect, useState } from "../html.js";
import { changesOf, fieldsOf, parsed, range, shown, titleOf, withoutPlace } from "../core/settings_form.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ownerRequest } from "../state/system.js";
import { SecretField } from "./secret_field.js";
import { waitFor } from "./waiting.js";
import { WebSearch } from "./web_search.js";

/** @param {{name: string, at: string, changed: () => void}} given `at` is the key to go to */
export function SettingsForm({ name, at, changed }) {
  const { data, trouble, reload } = useResource(`/settings/${encodeURIComponent(name)}`);
  return html`<h2>Settings of ${titleOf(name)}</h2>
    ${trouble ? html`<${Trouble} text=${trouble.kind === "not_found" ? `There are no settings of ${name}.` : "The settings could not be read."} failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${Form} name=${name} at=${at} read=${data} changed=${changed} />` : trouble ? null : html`<${Loading} />`}`;
}

function Form({ name, at, read, changed }) {
  const [settings, put] = useState(read);
  const [typed, type] = useState({});
  const [wrong, say] = useState({ key: "", text: "" });
  const [turn, again] = useState(0);
  const fields = fieldsOf(settings);
  const answers = Object.fromEntries(Object.keys(typed).map((key) => [key, parsed(fields.find((field) => field.name === key), typed[key])]));
  const isWrong = Object.values(answers).some((answer) => answer.trouble);
  const secrets = useResource(fields.some((field) => field.kind === "secret") ? `/secrets?${turn}` : null).data?.secrets ?? null;
  const count = Object.keys(typed).length;
  useEffect(() => {
    const found = at ? document.getElementById(`setting-${at}`) : null;
    found?.scrollIntoView({ block: "center" });
    found?.focus({ preventScroll: true });
  }, [at]);
  useLayoutEffect(() => {
    if (wrong.key) document.getElementById(`setting-${wrong.key}`)?.focus();
  }, [wrong]);
  const took = (saved) => {
    put({ ...settings, ...saved });
    waitFor(saved.restart_needed ?? settings.restart_needed ?? []);
    again(turn + 1);
    changed();
  };
  const send = async (body, keys) => {
    say({ key: "", text: "" });
    try {
      took(await ownerRequest("PUT", `/settings/${encodeURIComponent(name)}`, body));
      type(Object.fromEntries(Object.entries(typed).filter(([key]) => !keys.includes(key))));
    } catch (failure) {
      say({ key: keys.includes(failure.key) ? failure.key : "", text: withoutPlace(failure.message) });
    }
  };
  const save = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(Object.entries(answers).map(([key, { value }]) => [key, value]));
    const { trouble = "", key = "", ...body } = changesOf(fields, values);
    if (trouble) return say({ key, text: trouble });
    return send(body.reset.length ? body : { values: body.values }, Object.keys(values));
  };
  const reset = async (key) => {
    await send({ reset: [key] }, [key]);
    document.getElementById(`setting-${key}`)?.focus();
  };
  return html`<div class="help">${(settings.about ?? []).map((text) => html`<p key=${text}>${plain(text)}</p>`)}
      <p>${appliesWhen(settings.restart_needed ?? [])}${settings.file ? html` Your changes are in <code>${settings.file}</code>.` : null}</p></div>
    ${settings.problem ? html`<${Trouble} text="Your file is not valid, so these settings are not in use." failure=${settings.problem} />` : null}
    ${name === "web_search" ? html`<${WebSearch} key=${turn} fields=${fields} secrets=${secrets} changed=${took} />` : null}
    ${fields.length ? html`<form onSubmit=${save} noValidate aria-label=${`Settings of ${titleOf(name)}`}>
      ${fields.map((field) => html`<${Setting} key=${field.name} section=${name} field=${field} typed=${typed[field.name]} secrets=${secrets} took=${took}
        trouble=${answers[field.name]?.trouble || (wrong.key === field.name ? wrong.text : "")} isOfConversation=${(settings.by_conversation ?? []).includes(field.name)}
        reset=${field.source?.from === "file" && field.source.name === `${name}.yaml` ? () => reset(field.name) : null} change=${(value) => (type({ ...typed, [field.name]: value }), say({ key: "", text: "" }))} />`)}
      ${wrong.text && !wrong.key ? html`<p class="trouble" role="alert">Not saved: ${wrong.text}</p>` : null}
      <div class="form-acts"><button class="accent" type="submit" disabled=${isWrong || !count}>Save</button>
        ${count ? html`<button type="button" class="quiet" onClick=${() => (type({}), say({ key: "", text: "" }))}>Discard ${count === 1 ? "the change" : `${count} changes`}</button>` : null}</div>
    </form>` : html`<${Empty}>There is nothing to set here.</${Empty}>`}
    ${settings.text == null ? null : html`<details class="yaml"><summary>Your file as YAML</summary>${settings.text ? html`<pre dir="ltr"><code>${settings.text}</code></pre>` : html`<p>It is empty: everything is as by default.</p>`}</details>`}`;
}

function appliesWhen(readers) {
  if (readers.includes("system")) return "A change takes effect after the next start of LoCAL2.";
  return readers.length ? `A change takes effect after a restart of ${readers.join(", ")}.` : "";
}

/** A comment's reference to a page of the documentation, which is not served here, is left out. */
const plain = (text) => text.replace(/ ?See docs\/\S+\.md\.?/, "");

function Setting({ section, field, typed, secrets, trouble, isOfConversation, took, reset, change }) {
  const value = typed ?? (field.kind === "switch" ? field.value : shown(field, field.value));
  const id = `setting-${field.name}`;
  const note = `${id}-note`;
  const Box = BOXES[field.kind];
  const [first = "", ...more] = field.texts;
  return html`<div class="setting" data-source=${field.source?.from ?? "default"}>
    <div class="setting-head"><label for=${id}><b>${field.title}</b></label><code aria-hidden="true">${field.name}</code></div>
    <div class="about" id=${note}><p>${first}</p>${more.map((text) => (text.startsWith("    ") ? html`<pre dir="ltr">${dedented(text)}</pre>` : html`<p>${text}</p>`))}</div>
    ${field.kind === "secret" ? html`<${SecretField} field=${field} section=${section} secrets=${secrets} id=${id} note=${note} changed=${took} />` : html`<${Box} id=${id} field=${field} value=${value} isWrong=${Boolean(trouble)} change=${change} />`}
    ${trouble ? html`<small class="trouble" role="alert">${trouble}</small>` : null}
    <div class="facts-line"><small>${factsOf(field, isOfConversation)}</small>
      ${reset ? html`<button type="button" class="quiet" aria-label=${`Reset ${field.title} to the default`} onClick=${() => void reset()}>Reset</button>` : null}</div>
  </div>`;
}

/** Its default, what it takes, where its value comes from. */
function factsOf(field, isOfConversation) {
  const standard = shown({ ...field, kind: field.kind === "lines" ? "json" : field.kind }, field.standard).replace(/\s+/g, " ");
  const from = { file: "set in your file", variable: `set by the environment variable ${field.source?.name}`, system: `set for ${field.source?.name} in system.yaml` }[field.source?.from ?? ""];
  return [`default: ${standard.length > 80 ? "a longer text" : standard || "none"}`, range(field), from, isOfConversation ? "a conversation, and a profile, can have its own" : ""].filter(Boolean).join(" · ");
}

function dedented(text) {
  const lines = text.split("\n");
  const most = Math.min(...lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(most)).join("\n");
}

const BOXES = {
  switch: ({ id, value, change }) => html`<label class="switch"><input type="checkbox" id=${id} aria-describedby=${`${id}-note`} checked=${Boolean(value)} onChange=${(event) => change(event.target.checked)} /> <span aria-hidden="true">${value ? "on" : "off"}</span></label>`,
  choice: ({ id, field, value, change }) => html`<select id=${id} aria-describedby=${`${id}-note`} onChange=${(event) => change(event.target.value)}>${field.options.map((one) => html`<option value=${String(one)} selected=${String(one) === String(value)}>${String(one)}</option>`)}</select>`,
  json: (given) => html`<${Area} ...${given} />`,
  lines: (given) => html`<${Area} ...${given} />`,
  number: (given) => html`<${Line} ...${given} />`,
  text: (given) => (given.field.isLong ? html`<${Area} ...${given} />` : html`<${Line} ...${given} />`),
};

function Area({ id, value, isWrong, change }) {
  const rows = Math.min(12, Math.max(2, String(value).split("\n").length));
  return html`<textarea id=${id} rows=${rows} spellcheck="false" aria-invalid=${isWrong} aria-describedby=${`${id}-note`} value=${value} onInput=${(event) => change(event.target.value)}></textarea>`;
}

function Line({ id, field, value, isWrong, change }) {
  const models = useResource(field.name === "model" ? "/models" : null).data?.models ?? [];
  return html`${models.length ? html`<datalist id=${`${id}-known`}>${models.map((one) => html`<option key=${one.id ?? one.name} value=${one.id ?? one.name} />`)}</datalist>` : null}<input type=${field.isSecret ? "password" : "text"} list=${models.length ? `${id}-known` : null} inputmode=${field.kind === "number" ? "decimal" : null} id=${id} autocomplete="off" spellcheck="false" aria-invalid=${isWrong} aria-describedby=${`${id}-note`} placeholder=${field.isNullable ? "none" : ""} value=${value} onInput=${(event) => change(event.target.value)} />`;
}

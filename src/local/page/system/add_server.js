/** A model server that is added: of which kind, where, with which key; what models it has, and which of them answers. */

import { html, useState } from "../html.js";
import { counted } from "../core/words.js";
import { Field } from "../parts/field.js";
import { addressOf } from "../state/screens.js";
import { ownerRequest } from "../state/system.js";
import { request } from "../net/api.js";

const KINDS = {
  openai: { title: "A server with OpenAI's API", about: "llama.cpp, LM Studio, vLLM, OpenRouter, OpenAI and most others.", at: "http://127.0.0.1:8080/v1" },
  ollama: { title: "Ollama", about: "On this machine or on another one of yours.", at: "http://192.168.1.20:11434" },
  google_genai: { title: "Google Gemini", about: "Needs a key from aistudio.google.com. What you say goes to Google.", at: "" },
};
const NOTHING = { step: "", trouble: "", found: /** @type {any} */ (null) };

export function AddServer() {
  const [kind, choose] = useState("openai");
  const [url, setUrl] = useState("");
  const [key, setKey] = useState("");
  const [name, setName] = useState("");
  const [model, pick] = useState("");
  const [agrees, agree] = useState(false);
  const [state, put] = useState(NOTHING);
  const [saved, say] = useState("");
  const about = KINDS[kind];
  const { found } = state;
  const called = name.trim() || nameOf(kind, url);
  const isCloud = kind === "google_genai" || found?.is_cloud;
  const changed = (set) => (event) => (set(event.target.value), put(NOTHING), agree(false), say(""));
  const trying = (work, step) => {
    put({ ...state, step, trouble: "" });
    return work().catch((failure) => put({ ...NOTHING, trouble: failure.message }));
  };
  const test = () =>
    trying(async () => {
      const answer = await ownerRequest("POST", "/models/servers/try", { kind, url: url.trim(), ...(key.trim() ? { api_key: key.trim() } : {}) });
      put({ ...NOTHING, found: answer });
      pick(kind === "openai" ? "" : (answer.models[0] ?? "")); // the models of other kinds can be chosen only where one of them answers
    }, "Asking the server …");
  const save = () =>
    trying(async () => {
      const { values } = await request("GET", "/settings/models");
      if (key.trim()) await ownerRequest("PUT", `/secrets/${called}`, { value: key.trim() });
      const server = { kind, ...(kind === "google_genai" ? {} : { url: found.url }), ...(key.trim() ? { api_key: `secret:${called}` } : {}), ...(isCloud && kind !== "google_genai" ? { allow_cloud: true } : {}) };
      const chain = [`${called}/${model}`, ...(values?.roles.chat ?? []).filter((one) => one !== `${called}/${model}`)];
      await ownerRequest("PUT", "/settings/models", { values: { providers: { [called]: server }, ...(model ? { roles: { chat: chain } } : {}) } });
      put(NOTHING);
      setKey("");
      say(`${called} is saved. ${model ? `${model} answers` : "Its models can be chosen"} after the next start of LoCAL2.`);
    }, "Saving …");
  const press = (event) => {
    event.preventDefault();
    if (!state.step) void (found ? save() : test());
  };
  const isReady = found ? !isCloud || agrees : Boolean(url.trim() || kind === "google_genai");
  return html`<details class="add-server"><summary>Add a model server</summary><form class="set-up" aria-label="Add a model server" onSubmit=${press} noValidate>
    <${Field} label="Kind" help=${about.about}>${(given) => html`<select ...${given} onChange=${changed(choose)}>${Object.entries(KINDS).map(([id, { title }]) => html`<option key=${id} value=${id} selected=${id === kind}>${title}</option>`)}</select>`}</${Field}>
    ${about.at ? html`<${Field} label="Address" help=${`Such as ${about.at}`}>${(given) => html`<input type="text" inputmode="url" autocomplete="off" spellcheck="false" ...${given} value=${url} onInput=${changed(setUrl)} />`}</${Field}>` : null}
    ${kind === "ollama" ? null : html`<${Field} label="Key" help="If the server wants one. It is encrypted in the data directory, and this page never sees it again.">${(given) => html`<input type="password" autocomplete="off" spellcheck="false" ...${given} value=${key} onInput=${changed(setKey)} />`}</${Field}>`}
    ${found ? html`<p role="status"><b>It answers,</b> and has ${counted(found.models.length, "model")}.</p>
      <${Field} label="Model that answers by default">${(given) => html`<select ...${given} onChange=${(event) => pick(event.target.value)}>${kind === "openai" ? html`<option value="">The same as now</option>` : null}${found.models.map((one) => html`<option key=${one} value=${one} selected=${one === model}>${one}</option>`)}</select>`}</${Field}>
      <${Field} label="Name" help="By which models of this server are called, as in NAME/MODEL">${(given) => html`<input type="text" autocomplete="off" spellcheck="false" pattern="[A-Za-z0-9_.-]+" ...${given} value=${name} placeholder=${called} onInput=${(event) => setName(event.target.value)} />`}</${Field}>
      ${isCloud ? html`<label class="switch"><input type="checkbox" checked=${agrees} onChange=${(event) => agree(event.target.checked)} /> My conversations and memories may leave my machines and go to this server</label>` : null}` : null}
    <div class="row-acts"><button type="submit" class="accent" aria-busy=${Boolean(state.step) || null} disabled=${!isReady}>${found ? "Save" : "Test"}</button></div>
    <div role="status">${state.step ? html`<p class="help">${state.step}</p>` : null}${saved ? html`<p>${saved} <a href=${addressOf("settings", "models", "providers")}>Change or remove servers</a></p>` : null}</div>
    ${state.trouble ? html`<p class="trouble" role="alert">It did not work: ${state.trouble}</p>` : null}
  </form></details>`;
}

/** A name after the address: "openrouter" of https://openrouter.ai/api/v1. */
function nameOf(kind, url) {
  const host = /^(?:\w+:\/\/)?([^/:]+)/.exec(url.trim())?.[1] ?? "";
  const label = /^[\d.]+$|^localhost$/.test(host) ? "" : host.replace(/^(api|www)\./, "").split(".")[0];
  return label.replace(/[^\w-]/g, "") || (kind === "google_genai" ? "google_genai" : "my_server");
}

/** The models that are here, what each of them does, and the way to further ones. */

import { html, useEffect, useState } from "../html.js";
import { PROPOSED, extent, isOver, progress } from "../core/pulls.js";
import { rolesIn, rolesOf } from "../core/system_tables.js";
import { bytes } from "../core/words.js";
import { Code, Facts } from "../parts/detail.js";
import { Button } from "../parts/field.js";
import { health, participants } from "../state/store.js";
import { AddServer } from "./add_server.js";
import { chooseModel, loadModels, models, modelsTrouble, ownerRequest, pull, pulls, stopPull } from "../state/system.js";

export function Models() {
  useEffect(() => void loadModels(), []);
  const [trouble, fail] = useState("");
  const [chosen, tell] = useState("");
  const known = models.value?.models ?? [];
  const names = new Set(known.map((one) => one.name));
  const choose = (name) => chooseModel(name).then((waits) => (fail(""), tell(waits ? `${name} answers after the next start of LoCAL2.` : `${name} answers now.`)), (failure) => fail(failure.message));
  const hold = (name, verb) => ownerRequest("POST", `/models/${verb}`, { name }).then(() => (fail(""), loadModels()), (failure) => fail(`${name} was not ${verb}ed: ${failure.message}`));
  const [tested, test] = useState({ name: "", lines: [], isFit: false });
  const check = (name) => {
    test({ name, lines: [], isFit: false });
    return ownerRequest("POST", "/models/check", { name }).then(
      ({ lines, is_fit: isFit }) => (fail(""), test({ name, lines, isFit })),
      (failure) => (test({ name: "", lines: [], isFit: false }), fail(`${name} was not tested: ${failure.message}`))
    );
  };
  const roles = rolesIn(participants.value);
  const fetched = [...pulls.value.values()].filter((one) => !names.has(one.name) || !isOver(one));
  const proposed = PROPOSED.filter((one) => !names.has(one.name) && !pulls.value.has(one.name));
  return html`
    ${health.value?.stand_in ? html`<p>The stand-in answers now: a small program with fixed rules that calls the same tools. For real answers download a model here, or run <code>local2 model try</code> for a very small one without Ollama.</p>` : null}
    ${roles.length ? html`<${Facts} rows=${roles.map((one) => [one.title, html`<code>${one.model}</code>`])} />` : null}
    ${modelsTrouble.value ? html`<${NoServer} message=${modelsTrouble.value} />` : null}
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    ${chosen ? html`<p role="status">${chosen}</p>` : null}
    ${models.value?.note && !modelsTrouble.value ? html`<${NoServer} message=${models.value.note} />` : null}
    ${known.length ? html`<ul class="models" aria-label="Installed models">${known.map((model) => html`<${Model} key=${model.id ?? model.name} model=${model} roles=${rolesOf(roles, model)} choose=${choose} hold=${hold} check=${check} />`)}</ul>` : null}
    ${tested.name ? html`<${Tested} ...${tested} />` : null}
    ${models.value && !known.length && !modelsTrouble.value ? html`<p class="empty">No model is installed yet.</p>` : null}
    ${fetched.length ? html`<ul class="models" aria-label="Downloads">${fetched.map((one) => html`<${Pulling} key=${one.name} pull=${one} />`)}</ul>` : null}
    ${modelsTrouble.value || !models.value ? null : html`<h2>Download <small>with Ollama, to this machine</small></h2>
      <ul class="models">${proposed.map((one) => html`<li key=${one.name}><div><b>${one.name}</b> <small>${one.note}</small></div><button type="button" class=${one.isBest ? "accent" : null} aria-label=${`Get ${one.name}`} onClick=${() => void pull(one.name)}>Get it</button></li>`)}</ul>
      <${Other} />`}
    <${AddServer} />`;
}

function NoServer({ message }) {
  return html`<div class="note"><p role="alert">${message}</p>
    <p>Install Ollama from <a href="https://ollama.com/download" target="_blank" rel="noopener noreferrer">ollama.com</a> and start it; <code>local2 doctor</code> finds what is missing.</p>
    <button type="button" onClick=${() => void loadModels()}>Check again</button></div>`;
}

/** Whether a model can grade answers and extract facts: what `local2 model check` prints. */
function Tested({ name, lines, isFit }) {
  if (!lines.length) return html`<p role="status">Testing whether ${name} can grade answers and extract facts. This takes some minutes; the result is stored, also if you go elsewhere.</p>`;
  return html`<p role="status">${isFit ? `${name} has passed: it can grade answers and extract facts.` : `${name} has failed. The last lines say of what, and what would help.`}</p><${Code} label=${`Test of ${name}`} text=${lines.join("\n")} />`;
}

function Model({ model, roles, choose, hold, check }) {
  const name = model.id || model.name;
  const held = model.loaded ? (model.memory ? `${bytes(model.memory)} in memory` : "loaded") : model.loaded === false ? "not loaded" : "";
  const facts = [roles.join(", "), model.size ? `${bytes(model.size)} on disk` : "", held, (model.capabilities ?? []).join(", "), model.unfit ?? ""];
  return html`<li><div><b>${name}</b> <small>${facts.filter(Boolean).join(" · ")}</small></div>
    <div class="row-acts">${model.chat === false ? null : html`<${Button} kind="quiet edged" label=${`Test ${name}`} act=${() => check(name)}>Test<//>`}${model.server === "ollama" && typeof model.loaded === "boolean" && model.provider ? html`<${Button} kind="quiet edged" label=${`${model.loaded ? "Unload" : "Load"} ${name}`} act=${() => hold(name, model.loaded ? "unload" : "load")}>${model.loaded ? "Unload" : "Load"}<//>` : null}
      ${model.current ? html`<span class="tag">chosen</span>` : html`<button type="button" aria-label=${`Use ${name}`} onClick=${() => void choose(name)}>Use it</button>`}</div></li>`;
}

function Pulling({ pull: one }) {
  const share = progress(one);
  return html`<li class="pulling" data-state=${one.state}><div><b>${one.name}</b> <small class=${one.state === "failed" ? "trouble" : null} role="status">${extent(one)}</small>
      ${isOver(one) ? null : html`<progress aria-label=${`Downloading ${one.name}`} max="1" value=${share}></progress>`}</div>
    ${share === null || isOver(one) ? null : html`<span class="num">${Math.floor(100 * share)} %</span>`}
    ${one.state === "running" ? html`<button type="button" aria-label=${`Stop downloading ${one.name}`} onClick=${() => void stopPull(one.name)}>Stop</button>` : one.state === "done" ? null : html`<button type="button" onClick=${() => void pull(one.name)}>${one.state === "failed" ? "Try again" : "Go on"}</button>`}</li>`;
}

function Other() {
  const [name, type] = useState("");
  const ask = (event) => {
    event.preventDefault();
    if (name.trim()) void pull(name.trim());
    type("");
  };
  return html`<form class="other-model" onSubmit=${ask}><input type="text" aria-label="Another model's name" placeholder="another one, such as qwen3:8b" autocomplete="off" spellcheck="false" value=${name} onInput=${(event) => type(event.target.value)} /><button type="submit" disabled=${!name.trim()}>Get it</button></form>`;
}

/** The model that answers in the conversation that is shown, and a menu to choose another one, here or as the default. */

import { html, useEffect, useState } from "../html.js";
import { abilities } from "../core/models.js";
import { bytes } from "../core/words.js";
import { choose, defaultModel, loadOffered, modelOf, offered } from "../state/choices.js";
import { goToScreen } from "../state/screens.js";
import { health, me, tell } from "../state/store.js";
import { chooseModel } from "../state/system.js";
import { Menu } from "./menu.js";

export function ModelPicker({ sessionId }) {
  const [trouble, fail] = useState("");
  const name = modelOf(sessionId);
  const isOwner = me.value.owner;
  useEffect(() => void (isOwner || offered.peek() || loadOffered().catch(() => {})), [isOwner]);
  if (!name) return null;
  const load = () => void loadOffered().then(() => fail(""), (failure) => fail(failure.message));
  const usual = { id: defaultModel(), name: defaultModel(), default: true };
  const listed = offered.value?.models ?? [];
  const models = listed.some((model) => model.default) || !usual.id ? listed : [usual, ...listed];
  const items = models.map((model) => ({
    title: html`<${Model} model=${model} />`,
    isChecked: model.id === name || (model.default && name === usual.id),
    run: () => choose(sessionId, model),
  }));
  if (trouble) items.push({ title: `Other models could not be listed: ${trouble}`, run: load });
  if (me.value.owner && listed.some((model) => model.id === name && !model.default)) items.push({ title: `Use ${name} for all new conversations`, run: () => void makeDefault(name) });
  if (me.value.owner) items.push({ title: "Download or set up models…", run: () => goToScreen("system", "models") });
  return html`<span class="model" title="The model that answers in this conversation"><${Menu} label=${`Model: ${name}. Choose another`} items=${items} onOpen=${load}><span class="model-name">${name}</span><span class="down" aria-hidden="true"></span></${Menu}></span>`;
}

function Model({ model }) {
  const facts = [model.size ? bytes(model.size) : "", ...abilities(model)].filter(Boolean).join(" · ");
  return html`<span class="model-row"><b>${model.id}</b>${model.loaded ? html` <span class="tag on">loaded</span>` : null}${model.default ? html` <span class="tag">default</span>` : null}${facts ? html` <small>${facts}</small>` : null}</span>`;
}

async function makeDefault(name) {
  try {
    const waits = await chooseModel(name);
    if (!waits && health.peek()) health.value = { ...health.peek(), model: name };
    tell(waits ? `${name} answers new conversations after the next start of LoCAL2.` : `${name} answers new conversations from now on.`);
    await loadOffered();
  } catch (failure) {
    tell(`The default model was not changed: ${failure.message}`);
  }
}

/** The model that answers in the conversation that is shown, and a menu to choose another one. */

import { html, useState } from "../html.js";
import { bytes } from "../core/words.js";
import { choose, loadOffered, modelOf, offered } from "../state/choices.js";
import { goToScreen } from "../state/screens.js";
import { health, me } from "../state/store.js";
import { Menu } from "./menu.js";

export function ModelPicker({ sessionId }) {
  const [trouble, fail] = useState("");
  const name = modelOf(sessionId);
  if (!name) return null;
  const load = () => void loadOffered().then(() => fail(""), (failure) => fail(failure.message));
  const usual = { id: health.value?.model ?? "", name: health.value?.model ?? "", default: true };
  const listed = offered.value?.models ?? [];
  const models = listed.some((model) => model.default) ? listed : [usual, ...listed];
  const items = models.map((model) => ({
    title: about(model),
    isChecked: model.id === name || (model.default && name === usual.id),
    run: () => choose(sessionId, model),
  }));
  if (trouble) items.push({ title: `Other models could not be listed: ${trouble}`, run: load });
  if (me.value.owner) items.push({ title: "Download or set up models…", run: () => goToScreen("system", "models") });
  return html`<span class="model" title="the model that answers in this conversation"><${Menu} label=${`Model: ${name}. Choose another`} items=${items} onOpen=${load}>${name}</${Menu}></span>`;
}

function about(model) {
  return [model.id, model.size ? bytes(model.size) : "", model.default ? "default" : "", model.loaded ? "loaded" : ""].filter(Boolean).join(" · ");
}

/** How the questions of one conversation are answered: profile, permissions, instructions, sampling. */

import { html, useEffect, useId, useState } from "../html.js";
import { RANGES, settingsFrom } from "../core/answering.js";
import { MODES, modeWords } from "../core/modes.js";
import { signIn } from "../net/token.js";
import { changeSettings, chooseMode, modeOf, settingsOf } from "../state/choices.js";
import { loadProfiles, profiles } from "../state/profiles.js";
import { addressOf } from "../state/screens.js";
import { me, participants } from "../state/store.js";

export function AnsweringDialog({ sessionId, close }) {
  useEffect(() => void loadProfiles(), []);
  const known = settingsOf(sessionId);
  const [form, put] = useState({ profile: known.profile ?? "", instructions: known.instructions ?? "", ...Object.fromEntries(Object.keys(RANGES).map((name) => [name, known[name] == null ? "" : String(known[name])])) });
  const [modeId, choose] = useState(modeOf(sessionId)?.id ?? "");
  const [trouble, fail] = useState("");
  const set = (name) => (event) => put({ ...form, [name]: event.target.value });
  const keep = async (settings, mode) => {
    try {
      await changeSettings(sessionId, settings());
      chooseMode(sessionId, mode);
      close();
    } catch (failure) {
      fail(failure.message);
    }
  };
  const { mode: usual = "", may_bypass: bypass = "no" } = participants.value.get("gatekeeper")?.details ?? {};
  const modes = MODES.filter((one) => one.id !== "bypassPermissions" || bypass === "yes");
  const mode = modes.find((one) => one.id === modeId) ?? null;
  const names = profiles.value.filter(({ name }) => name !== "general");
  if (form.profile && !names.some(({ name }) => name === form.profile)) names.push({ name: form.profile, description: "" });
  return html`<form onSubmit=${(event) => (event.preventDefault(), void keep(() => settingsFrom(form), mode))}>
    <h2 id="dialog-title">How this conversation is answered</h2>
    <p>From the next question on, in this conversation alone. Empty fields use the defaults.</p>
    <${Labelled} title="Profile" help=${names.find(({ name }) => name === form.profile)?.description ?? (me.value.owner ? html`Read and write them at <a href=${addressOf("tools", "profiles")} onClick=${close}>Profiles</a>.` : "")}>${(id) => html`<select id=${id} value=${form.profile} onChange=${set("profile")}><option value="">General</option>${names.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`}</${Labelled}>
    <${Labelled} title="Permissions" help=${mode ? `${mode.text} In this tab, until it is closed.` : modeWords(usual)}>${(id) => html`<select id=${id} value=${modeId} onChange=${(event) => choose(event.target.value)}><option value="">As in the settings</option>${modes.map((one) => html`<option key=${one.id} value=${one.id} disabled=${one.ownerOnly && !signIn.value?.owner}>${one.title}${one.ownerOnly && !signIn.value?.owner ? " (sign in first)" : ""}</option>`)}</select>`}</${Labelled}>
    <${Labelled} title="Instructions" help="Added to the system prompt: how to answer, in what language or style, what to keep in mind.">${(id) => html`<textarea id=${id} rows="4" maxlength="8000" dir="auto" value=${form.instructions} onInput=${set("instructions")}></textarea>`}</${Labelled}>
    <div class="number-fields">${Object.entries(RANGES).map(([name, { title, help }]) => html`<${Labelled} key=${name} title=${title} help=${help}>${(id) => html`<input id=${id} type="text" inputmode="decimal" autocomplete="off" placeholder="default" value=${form[name]} onInput=${set(name)} />`}</${Labelled}>`)}</div>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${() => void keep(() => ({}), null)}>Use the defaults</button><span class="push"></span><button type="button" onClick=${close}>Cancel</button><button type="submit" class="accent">Save</button></div>
  </form>`;
}

function Labelled({ title, help, children }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${title}</label>${children(id)}${help ? html`<small>${help}</small>` : null}</div>`;
}

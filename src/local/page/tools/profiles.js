/** Profiles, the kinds of assistants that can answer: listed, read, written and removed. */

import { html, useState } from "../html.js";
import { RANGES, settingsFrom } from "../core/answering.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Back, Code, Facts } from "../parts/detail.js";
import { Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { askAs } from "../state/choices.js";
import { begin } from "../state/commands.js";
import { addressOf, goToScreen } from "../state/screens.js";
import { ownerRequest } from "../state/system.js";

const COLUMNS = [
  { id: "name", title: "Profile", value: (row) => row.name, show: (row) => html`<a href=${addressOf("tools", "profiles", row.name)}>${row.name}</a>` },
  { id: "for", title: "What it is for", show: (row) => html`<span dir="auto">${row.description}</span>`, isWide: true },
  { id: "tools", title: "Tools", value: (row) => row.tools?.length ?? Infinity, show: (row) => toolsOf(row) },
  { id: "model", title: "Model", value: (row) => row.model ?? "", show: (row) => row.model ?? "–" },
  { id: "origin", title: "From", value: (row) => (row.origin === "built in" ? "built in" : "a file of yours") },
];

const toolsOf = ({ tools }) => (tools ? `${tools.length} of them` : "all");

export function Profiles() {
  const { data, trouble, reload } = useResource("/profiles");
  return html`<div class="deeds"><a class="as-button accent" href=${addressOf("tools", "new-profile")}>New profile</a></div>
    ${trouble ? html`<${Trouble} text="The profiles could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.problems.map((problem) => html`<p class="trouble" key=${problem}>${problem}</p>`)}
    ${data ? html`<${Table} label="Profiles" columns=${COLUMNS} rows=${data.profiles} keyOf=${(row) => row.name} />` : trouble ? null : html`<${Loading} />`}
    <p class="help">Choose one for a conversation with the sliders button in its header, or with “Ask as …” in the search (Ctrl K).</p>`;
}

/** One profile; `isChanged` shows it as a form. @param {{name: string, isChanged: boolean}} given */
export function ProfileDetail({ name, isChanged }) {
  const { data: profile, trouble, reload } = useResource(`/profiles/${encodeURIComponent(name)}`);
  if (profile && isChanged) return html`<${ProfileForm} profile=${profile} />`;
  return html`<${Back} href=${addressOf("tools", "profiles")}>All profiles</${Back}>
    <${ScreenHead} title=${name} text=${profile?.description ?? ""}>${profile ? html`<a class="as-button edged" href=${addressOf("tools", "profiles", name, "change")}>${profile.is_own ? "Change" : "Make your own version"}</a>` : null}</${ScreenHead}>
    ${trouble ? html`<${Trouble} text=${trouble.kind === "not_found" ? "There is no such profile any more." : "The profile could not be read."} failure=${trouble} act=${reload} />` : null}
    ${profile ? html`<div><${Profile} profile=${profile} /></div>` : trouble ? null : html`<${Loading} />`}`;
}

function Profile({ profile }) {
  const { name } = profile;
  const ask = () => {
    begin(false);
    askAs(name);
  };
  const remove = async () => (await ownerRequest("DELETE", `/profiles/${encodeURIComponent(name)}`), goToScreen("tools", "profiles"));
  return html`<${Facts} rows=${[
      ["From", profile.origin === "built in" ? "built in" : html`<code>${profile.origin}</code>`],
      ["Tools", profile.tools?.join(", ") ?? "all"],
      ["Model", profile.model],
      ["Who may choose it", profile.origin === "built in" || profile.shared ? "every user" : "only you"],
      ...Object.entries(RANGES).map(([key, { title }]) => [title, profile[key] == null ? "" : String(profile[key])]),
    ]} />
    <h2>Its instructions</h2>${profile.instructions ? html`<${Code} label="Its instructions" text=${profile.instructions} />` : html`<${Empty}>It has none.</${Empty}>`}
    <div class="deeds"><button type="button" class="edged" onClick=${ask}>Ask as ${name}</button>
      ${profile.is_own ? html`<${ConfirmButton} kind="bad edged" title=${`Remove ${name}?`} verb="Remove it" text="Its file is deleted. Conversations that were asked with it stay; a built-in profile of this name counts again." act=${remove}>Remove this profile</${ConfirmButton}>` : null}</div>`;
}

const EMPTY = { name: "", description: "", tools: "*", model: "", temperature: "", max_tokens: "", instructions: "", shared: false };

/** @param {{profile?: any}} given the one that is changed, or that a new one of the owner's takes the place of */
export function ProfileForm({ profile = null }) {
  const [order, put] = useState(profile ? { ...Object.fromEntries(Object.entries(EMPTY).map(([key]) => [key, String(profile[key] ?? "")])), tools: profile.tools?.join(", ") ?? "*", shared: profile.shared } : EMPTY);
  const [trouble, fail] = useState({ field: "", text: "" });
  const back = profile ? addressOf("tools", "profiles", profile.name) : addressOf("tools", "profiles");
  const change = (field) => (event) => put({ ...order, [field]: event.currentTarget.value });
  const on = (field) => (trouble.field === field ? trouble.text : "");
  const box = (field, more = {}) => (given) => html`<input type="text" autocomplete="off" ...${given} ...${more} value=${order[field]} onInput=${change(field)} />`;
  const save = async (event) => {
    event.preventDefault();
    const name = order.name.trim();
    if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return fail({ field: "name", text: "Expected lower-case letters, digits and hyphens." });
    if (!order.description.trim()) return fail({ field: "description", text: "Write what it is for." });
    const tools = order.tools.split(/[\s,]+/).filter(Boolean);
    if (!tools.length) return fail({ field: "tools", text: "Write the names of tools, or * for all." });
    try {
      const { temperature = null, max_tokens = null, instructions = "" } = settingsFrom({ profile: "", top_p: "", instructions: order.instructions, temperature: order.temperature, max_tokens: order.max_tokens });
      await ownerRequest("PUT", `/profiles/${encodeURIComponent(name)}`, { description: order.description, tools, model: order.model.trim() || null, temperature, max_tokens, instructions, shared: order.shared });
      goToScreen("tools", "profiles", name);
    } catch (failure) {
      fail({ field: Object.keys(EMPTY).find((field) => failure.message.startsWith(RANGES[field]?.title ?? field)) ?? "", text: failure.message });
    }
  };
  return html`<${Back} href=${back}>${profile?.name ?? "All profiles"}</${Back}>
    <${ScreenHead} title=${profile?.is_own ? `Change ${profile.name}` : "New profile"} text=${profile && !profile.is_own ? "Yours replaces the built-in profile." : "A kind of assistant: a text, and the tools that it may use. It gives no tool that a question would not have."} />
    <div><form class="box" onSubmit=${save} noValidate>
      ${profile ? null : html`<${Field} label="Name" help="Lower-case letters, digits and hyphens." trouble=${on("name")}>${box("name", { maxlength: 64, placeholder: "reviewer" })}</${Field}>`}
      <${Field} label="What it is for" trouble=${on("description")}>${box("description", { maxlength: 1000, dir: "auto", placeholder: "Reads a change, and says what is wrong with it." })}</${Field}>
      <${Field} label="Instructions" help="What the model is told, besides your other instructions." trouble=${on("instructions")}>${(given) => html`<textarea rows="6" dir="auto" maxlength="30000" ...${given} value=${order.instructions} onInput=${change("instructions")}></textarea>`}</${Field}>
      <${Field} label="Tools" help=${html`Names from <a href=${addressOf("tools")}>Tools</a> with commas between them, or * for all.`} trouble=${on("tools")}>${box("tools", { spellcheck: false })}</${Field}>
      <${Field} label="Model" help="Without one, that of the conversation." trouble=${on("model")}>${box("model", { spellcheck: false })}</${Field}>
      <${Field} label=${RANGES.temperature.title} help="0 to 2. Without a number, as in the settings." trouble=${on("temperature")}>${box("temperature", { inputmode: "decimal" })}</${Field}>
      <${Field} label=${RANGES.max_tokens.title} help="In tokens. Without a number, as in the settings." trouble=${on("max_tokens")}>${box("max_tokens", { inputmode: "numeric" })}</${Field}>
      <${Field} label="Share with other users" help="Other users may then choose it, and are answered by its instructions.">${(given) => html`<input type="checkbox" ...${given} checked=${order.shared} onChange=${(event) => put({ ...order, shared: event.currentTarget.checked })} />`}</${Field}>
      ${trouble.text && !trouble.field ? html`<p class="trouble" role="alert">The profile was not saved: ${trouble.text}</p>` : null}
      <div class="deeds"><button class="accent" type="submit">Save this profile</button> <a class="as-button" href=${back}>Cancel</a></div>
    </form></div>`;
}

/** Hooks: listed in the order in which they are asked, added and removed. */

import { html, useState } from "../html.js";
import { wordsOf } from "../core/arguments.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Button, Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { addressOf } from "../state/screens.js";
import { ownerRequest, restart } from "../state/system.js";

/** When a hook is asked, and what it can do then. @type {[string, string][]} */
const EVENTS = [
  ["session_start", "when a conversation begins"],
  ["before_turn", "before a question is answered"],
  ["before_model", "before the model is called: it may offer it fewer tools"],
  ["after_model", "after the model has answered, before any call is made"],
  ["before_tool", "before a call: it may change it, or have you decide"],
  ["after_tool", "after a call: it may change the result"],
  ["after_turn", "after an answer; commands only"],
  ["session_end", "when a conversation was deleted; commands only"],
];

export function HookList() {
  const { data, trouble, reload } = useResource("/hooks");
  const [waits, wait] = useState([]);
  const done = (names) => (wait(names), reload());
  if (!data) return trouble ? html`<${Trouble} text="The hooks could not be read." failure=${trouble} act=${reload} />` : html`<${Loading} />`;
  return html`${waits.length ? html`<div class="note"><p role="status">Stored. It takes effect after a restart; an answer that is being written goes on after it.</p>${waits.map((name) => html`<${Button} key=${name} act=${() => restart(name)}>Restart ${name}</${Button}> `)}</div>` : null}
    ${data.hooks.some((hook) => hook.command.length) && !data.runs_commands ? html`<div class="note"><p>The commands are not run, and calls that they guard are denied: add <code>hooks</code> to “more participants” in the <a href=${addressOf("settings", "system")}>settings of the system</a> and restart LoCAL2.</p></div>` : null}
    ${data.hooks.length ? html`<ol class="things" aria-label="Hooks">${data.hooks.map((hook) => html`<${Hook} key=${hook.name} hook=${hook} done=${done} />`)}</ol>` : html`<${Empty}>There is no hook. Add one below; it is asked before or after what a turn does, and can forbid it.</${Empty}>`}
    <h2>New hook</h2><${NewHook} scripts=${data.scripts} done=${done} />
    <p class="help">Stored in <code>${data.file}</code>.</p>`;
}

function Hook({ hook, done }) {
  return html`<li><div class="head"><b class="grow">${hook.name}</b><span class="tag">${hook.on_failure === "open" ? "goes on if it fails" : "denies if it fails"}</span>
      <${ConfirmButton} kind="quiet edged" label=${`Remove ${hook.name}`} title=${`Remove ${hook.name}?`} verb="Remove it" text="It is taken out of hooks.yaml and is not asked any more: what it forbids is then possible. A script in the folder hooks stays." act=${async () => done((await ownerRequest("DELETE", `/hooks/${encodeURIComponent(hook.name)}`)).restart_needed)}>Remove</${ConfirmButton}></div>
    <p>${hook.events.map((event) => EVENTS.find(([name]) => name === event)?.[1] ?? event).join("; ")}${hook.tools.length ? html` · only for ${hook.tools.map((tool, index) => html`${index ? ", " : ""}<code>${tool}</code>`)}` : null}</p>
    <p>${hook.command.length ? html`runs <code>${[...hook.command, hook.script].filter(Boolean).join(" ")}</code>` : html`a participant of yours answers <code>hook.request.${hook.name}</code>`} · waits ${hook.seconds} s</p></li>`;
}

const EMPTY = { name: "", events: ["before_tool"], tools: "", command: "", script: "", seconds: "5", on_failure: "closed" };

function NewHook({ scripts, done }) {
  const [order, put] = useState(EMPTY);
  const [trouble, fail] = useState({ field: "", text: "" });
  const change = (field) => (event) => put({ ...order, [field]: event.currentTarget.value });
  const toggle = (event) => put({ ...order, events: EVENTS.map(([name]) => name).filter((name) => (name === event ? !order.events.includes(name) : order.events.includes(name))) });
  const on = (field) => (trouble.field === field ? trouble.text : "");
  const box = (field, more = {}) => (given) => html`<input type="text" autocomplete="off" spellcheck=${false} ...${given} ...${more} value=${order[field]} onInput=${change(field)} />`;
  const save = async (event) => {
    event.preventDefault();
    const command = wordsOf(order.command);
    if (!order.name.trim()) return fail({ field: "name", text: "Write a name: lower-case letters, digits, _ and -." });
    if (!command) return fail({ field: "command", text: "A quote is not closed." });
    if (!order.events.length) return fail({ field: "events", text: "Choose when it is asked." });
    const tools = order.tools.split(/[\s,]+/).filter(Boolean);
    try {
      const { restart_needed: waits } = await ownerRequest("POST", "/hooks", { name: order.name.trim(), events: order.events, tools, command, script: order.script.trim(), seconds: Number(order.seconds), on_failure: order.on_failure });
      put(EMPTY);
      fail({ field: "", text: "" });
      done(waits);
    } catch (failure) {
      const field = Object.keys(EMPTY).find((name) => failure.message.startsWith(`${name}:`)) ?? "";
      fail({ field, text: failure.message });
    }
  };
  return html`<form class="box" onSubmit=${save} noValidate>
    <${Field} label="Name" help="Lower-case letters, digits, _ and -." trouble=${on("name")}>${box("name", { maxlength: 40, placeholder: "office-hours" })}</${Field}>
    <fieldset class="ways"><legend>When it is asked</legend>${EVENTS.map(([name, words]) => html`<label key=${name}><input type="checkbox" checked=${order.events.includes(name)} onChange=${() => toggle(name)} /><span>${words[0].toUpperCase()}${words.slice(1)}</span></label>`)}
      ${on("events") ? html`<small class="trouble" role="alert">${on("events")}</small>` : null}</fieldset>
    <${Field} label="Only for these tools" help="Names with commas between them; without any, for all." trouble=${on("tools")}>${box("tools", { placeholder: "shell_exec, shell_script" })}</${Field}>
    <${Field} label="Command" help="A program with its arguments, run in the sandbox. Without one, a participant of yours answers." trouble=${on("command")}>${box("command", { placeholder: "python3" })}</${Field}>
    <${Field} label="Script" help=${html`A file in <code>${scripts}</code> that the program reads.`} trouble=${on("script")}>${box("script", { placeholder: "office_hours.py" })}</${Field}>
    <${Field} label="Seconds to wait" trouble=${on("seconds")}>${box("seconds", { type: "number", min: 1, max: 60 })}</${Field}>
    <${Field} label="If it gives no answer" trouble=${on("on_failure")}>${(given) => html`<select ...${given} value=${order.on_failure} onChange=${change("on_failure")}><option value="closed">deny</option><option value="open">go on</option></select>`}</${Field}>
    ${trouble.text && !trouble.field ? html`<p class="trouble" role="alert">The hook was not added: ${trouble.text}</p>` : null}
    <div class="deeds"><button class="accent" type="submit">Add hook</button></div></form>`;
}

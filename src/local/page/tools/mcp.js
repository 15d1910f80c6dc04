/** MCP servers: connected by a command or an address, their tools approved, logged in to, removed. */

import { html, useEffect, useState } from "../html.js";
import { lineOf, pairsOf, wordsOf } from "../core/arguments.js";
import { counted } from "../core/words.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Back, Facts, State, Words } from "../parts/detail.js";
import { Button, Field } from "../parts/field.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { addressOf, goToScreen } from "../state/screens.js";
import { participants, tell } from "../state/store.js";
import { ownerRequest } from "../state/system.js";
import { Review } from "./review.js";

const LOOK_MS = 2000; // between two looks at a login that somebody completes elsewhere

const COLUMNS = [
  { id: "name", title: "Server", value: (row) => row.name, show: (row) => html`<a href=${addressOf("tools", "mcp", row.name)}>${row.name}</a>` },
  { id: "where", title: "Where", value: (row) => row.where, show: (row) => html`<code>${row.where}</code>`, isWide: true },
  { id: "tools", title: "Tools", value: (row) => row.tools.length, show: (row) => toolsOf(row) },
  { id: "state", title: "State", show: (row) => html`<${ServerState} server=${row} />` },
];

function toolsOf({ tools }) {
  const off = tools.filter((tool) => tool.disabled).length;
  return tools.length ? `${tools.length} approved${off ? `, ${off} switched off` : ""}` : "none approved";
}

export function Servers() {
  const { data, trouble, reload } = useResource("/mcp/servers");
  return html`<div class="deeds"><a class="as-button accent" href=${addressOf("tools", "connect")}>Connect a server</a><${Button} act=${reload}>Reload</${Button}></div>
    ${trouble ? html`<${Trouble} text="The servers could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.servers.length ? html`<${Table} label="MCP servers" columns=${COLUMNS} rows=${data.servers} keyOf=${(row) => row.name} />` : null}
    ${data && !data.servers.length ? html`<${Empty}>No server is connected. A server is a program on this machine or a service at an address that speaks the Model Context Protocol, such as one for your calendar.</${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

function ServerState({ server }) {
  const row = participants.value.get(server.participant);
  const why = row?.details?.off || row?.details?.server || "";
  if (server.problem) return html`<${State} state="bad">problem</${State}>`;
  if (server.disabled) return html`<${State} state="off">switched off</${State}>`;
  if (server.needs.length) return html`<${State} state="bad">needs a folder</${State}>`;
  if (!server.tools.length) return html`<${State} state="off">waits for your approval</${State}>`;
  if (!row) return html`<${State} state="off">not running</${State}>`;
  if (row.state !== "ready") return html`<${State} state=${row.state === "starting" ? "busy" : "bad"}>${row.state}</${State}>`;
  if (server.tools.every((tool) => tool.disabled)) return html`<${State} state="off">no tool switched on</${State}>`;
  return html`<${State} state=${why ? "bad" : "good"}>${why ? "not available" : "offered"}</${State}>${why ? html` <small>${why}</small>` : null}`;
}

/** @param {{name: string}} given */
export function ServerDetail({ name }) {
  const { data, trouble, reload } = useResource("/mcp/servers");
  const server = data?.servers.find((one) => one.name === name);
  const isMissing = data && !server;
  useLive(`mcp_${name}`, reload);
  return html`<${Back} href=${addressOf("tools", "mcp")}>All servers</${Back}>
    <${ScreenHead} title=${name}>${server && !server.skill ? html`<a class="as-button edged" href=${addressOf("tools", "mcp", name, "change")}>Change</a>` : null}</${ScreenHead}>
    ${trouble || isMissing ? html`<${Trouble} text=${isMissing ? "There is no such server. It may have been removed." : "The server could not be read."} failure=${trouble} act=${reload} />` : null}
    ${server ? html`<div><${Server} server=${server} reload=${reload} /></div>` : trouble || isMissing ? null : html`<${Loading} />`}`;
}

function Server({ server, reload }) {
  const path = `/mcp/servers/${encodeURIComponent(server.name)}`;
  const remove = async () => {
    const { kept, problem } = await ownerRequest("DELETE", path);
    if (kept || problem) tell(`${server.name} was removed. ${kept ? `Its data stays in ${kept}. ` : ""}${problem}`.trim());
    goToScreen("tools", "mcp");
  };
  const change = (edit) => changed(server.name, edit, reload);
  const rule = (tool, given) => change((entry) => ({ ...entry, tools: { ...entry.tools, [tool.server_name]: { ...entry.tools?.[tool.server_name], ...given } } }));
  return html`${server.needs.length ? html`<${Needs} server=${server} allow=${() => change((entry) => ({ ...entry, readable: [...(entry.readable ?? []), ...server.needs] }))} />` : null}
    <${Facts} rows=${[
      ["State", html`<${ServerState} server=${server} />`],
      ["Problem", server.problem],
      [server.is_remote ? "Address" : "Command", html`<code>${server.where}</code>`],
      ["Its program is", server.kind],
      ["Its calls", LEVELS[server.safety]],
      ["Who may use it", ["you", ...server.users].join(", ")],
      ["Network", server.is_remote ? "" : server.network ? "yes" : "none"],
      ["May read", server.readable.join(", ")],
      ["Variables", server.env.join(", ")],
      ["Headers", server.headers.join(", ")],
      ["Brought by", server.skill ? `the skill ${server.skill}` : ""],
    ]} />
    ${server.is_remote ? html`<${Login} server=${server} path=${path} reload=${reload} />` : null}
    <h2>Approved tools</h2>
    ${server.tools.length ? html`<ul class="things">${server.tools.map((tool) => html`<${ApprovedTool} key=${tool.name} tool=${tool} server=${server} rule=${(given) => rule(tool, given)} />`)}</ul>` : html`<${Empty}>None of its tools is approved, so none is offered to a model.</${Empty}>`}
    ${server.skill ? html`<p class="lead">Its tools are approved with its skill, at <a href=${addressOf("tools", "skills")}>Skills</a>.</p>` : html`<${Review} label=${server.tools.length ? "Compare with what it offers now" : "Review its tools"} done=${reload}
      note=${server.is_remote ? "This asks the server which tools it has. Nothing is approved by looking." : `This starts the command in a sandbox${server.network ? "" : " without a network"} to see its tools. Nothing is approved by looking.`}
      look=${() => ownerRequest("POST", `${path}/review`)} approve=${(review_id) => ownerRequest("POST", `${path}/approve`, { review_id })} />`}
    <div class="deeds">${server.skill ? null : html`<${Button} act=${() => change((entry) => ({ ...entry, disabled: !server.disabled }))}>${server.disabled ? "Switch on" : "Switch off"}</${Button}>`}
      <${ConfirmButton} kind="bad edged" title=${`Remove ${server.name}?`} verb="Remove it" text=${`${counted(server.tools.length, "approved tool")} and its login are removed, and it is taken out of mcp.json. What it has stored in its own folder stays.`} act=${remove}>Remove this server</${ConfirmButton}></div>`;
}

const LEVELS = { L0: "made without asking: they only read", L1: "ask as the mode says: they can be undone", L2: "ask before each call" };

/** Change a server's entry in mcp.json, and read it again. */
async function changed(name, edit, reload) {
  const path = `/mcp/servers/${encodeURIComponent(name)}`;
  try {
    const { entry } = await ownerRequest("GET", path);
    const { problem } = await ownerRequest("PUT", path, { entry: edit(entry) });
    if (problem) tell(`${name} was changed, but is not used yet: ${problem}`);
  } catch (failure) {
    tell(`${name} was not changed: ${failure.message}`);
  }
  reload();
}

/** The folders without which a program does not start. */
function Needs({ server, allow }) {
  return html`<section class="note"><p><b>It cannot start yet.</b> ${server.kind ? `Its program is ${server.kind}. ` : ""}To start, it has to read:</p>
    ${server.needs.map((folder) => html`<p key=${folder}><code>${folder}</code></p>`)}
    <div class="deeds"><${Button} kind="accent" act=${allow}>Let it read ${server.needs.length === 1 ? "this" : "these"}</${Button}></div></section>`;
}

function ApprovedTool({ tool, server, rule }) {
  const own = tool.safety === server.safety ? "" : tool.safety;
  return html`<li><div class="head"><code class="grow">${tool.name}</code>
      ${server.skill ? null : html`<select aria-label=${`Calls of ${tool.name}`} value=${own} onChange=${(event) => void rule({ safety: event.currentTarget.value || null })}>
          <option value="">as the server: ${LEVELS[server.safety].split(":")[0]}</option>${Object.entries(LEVELS).filter(([level]) => level !== server.safety).map(([level, words]) => html`<option key=${level} value=${level}>${words}</option>`)}</select>
        <label class="switch"><input type="checkbox" aria-label=${`Offer ${tool.name}`} checked=${!tool.disabled} disabled=${server.disabled} onChange=${(event) => void rule({ disabled: !event.currentTarget.checked })} /> <span aria-hidden="true">${tool.disabled ? "off" : "on"}</span></label>`}</div>
    <${Words}>${tool.description}</${Words}></li>`;
}

/** A login that is completed on a page of the server, in this browser. */
function Login({ server, path, reload }) {
  const [state, put] = useState({ visit: "", said: "", failure: null });
  const isWaiting = server.login === "waiting";
  useEffect(() => {
    if (!isWaiting) return undefined;
    const timer = setInterval(reload, LOOK_MS);
    return () => clearInterval(timer);
  }, [isWaiting]);
  const begin = async () => {
    try {
      const { visit } = await ownerRequest("POST", `${path}/login`);
      put({ visit: visit ?? "", said: visit ? "" : "This server needs no login.", failure: null });
      reload();
    } catch (failure) {
      put({ visit: "", said: "", failure });
    }
  };
  const word = isWaiting ? ["busy", "waiting for you"] : server.is_logged_in ? ["good", "logged in"] : ["off", "not logged in"];
  const host = hostOf(state.visit);
  return html`<h2>Login</h2>
    <p class="lead"><${State} state=${word[0]}>${word[1]}</${State}>${server.is_logged_in ? null : html` Only some servers need one. It is completed in a browser on the machine that LoCAL2 runs on.`}</p>
    ${state.failure ? html`<${Trouble} text="The login could not begin." failure=${state.failure} act=${begin} />` : null}
    ${state.said ? html`<p role="status">${state.said}</p>` : null}
    ${isWaiting && host ? html`<p class="lead"><a href=${state.visit} target="_blank" rel="noopener noreferrer">Log in at ${host}</a> in a new tab, then come back here.</p>` : null}
    <div class="deeds">${server.is_logged_in && !isWaiting
      ? html`<${ConfirmButton} title=${`Log out of ${server.name}?`} verb="Log out" text="The stored login is deleted. The server may keep its own record: check its page, too." act=${async () => (await ownerRequest("DELETE", `${path}/login`), reload())}>Log out</${ConfirmButton}>`
      : html`<${Button} act=${begin}>${isWaiting ? "Begin again" : "Log in"}</${Button}>`}</div>`;
}

/** The host of an address that a browser may open; "" for any other. */
function hostOf(address) {
  try {
    const { protocol, host } = new URL(address);
    return protocol === "https:" || protocol === "http:" ? host : "";
  } catch {
    return "";
  }
}

const EMPTY = { name: "", kind: "json", text: "", where: "", env: "", headers: "", readable: "", network: false, safety: "L2", users: "" };

const pairLines = (pairs = {}) => Object.entries(pairs).map(([name, value]) => `${name}=${value}`).join("\n");

/** The form of a server that there is. @param {{name: string}} given */
export function ChangedServer({ name }) {
  const [state, put] = useState({ entry: null, failure: null });
  useEffect(() => void ownerRequest("GET", `/mcp/servers/${encodeURIComponent(name)}`).then(({ entry }) => put({ entry, failure: null }), (failure) => put({ entry: null, failure })), [name]);
  if (!state.entry) return html`<${Back} href=${addressOf("tools", "mcp", name)}>${name}</${Back}><${ScreenHead} title=${`Change ${name}`} />${state.failure ? html`<${Trouble} text="The server could not be read." failure=${state.failure} />` : html`<${Loading} />`}`;
  const { url = "", command = "", args = [], env, headers, readable = [], network = false, safety = "L2", users = [] } = state.entry;
  const order = { ...EMPTY, name, kind: url ? "url" : "command", where: url || lineOf([command, ...args]), env: pairLines(env), headers: pairLines(headers), readable: readable.join("\n"), network, safety, users: users.join(", ") };
  return html`<${ServerForm} before=${order} entry=${state.entry} />`;
}

/** The form that connects a server. */
export function NewServer() {
  return html`<${ServerForm} before=${EMPTY} />`;
}

const WAYS = [
  ["json", "JSON for another client", "As its instructions give it: an mcpServers object."],
  ["command", "A program on this machine", "It is started in a sandbox, with a folder of its own."],
  ["url", "A service at an address", "What the model sends it leaves this machine."],
];

/** @param {{before: any, entry?: any}} given the entry of the server that is changed, null for a new one */
function ServerForm({ before, entry = null }) {
  const [order, put] = useState(before);
  const [trouble, fail] = useState({ field: "", text: "" });
  const [isBusy, mark] = useState(false);
  const change = (field) => (event) => put({ ...order, [field]: event.currentTarget.type === "checkbox" ? event.currentTarget.checked : event.currentTarget.value });
  const on = (field) => (trouble.field === field ? trouble.text : "");
  const box = (field, more = {}) => (given) => html`<input type="text" autocomplete="off" spellcheck=${false} ...${given} ...${more} value=${order[field]} onInput=${change(field)} />`;
  const lines = (field, placeholder) => (given) => html`<textarea rows="2" spellcheck=${false} ...${given} placeholder=${placeholder} value=${order[field]} onInput=${change(field)}></textarea>`;
  const isCommand = order.kind === "command";
  const back = entry ? addressOf("tools", "mcp", before.name) : addressOf("tools", "mcp");
  const save = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    const found = bodyOf(order);
    if (found.trouble) return fail(found.trouble);
    mark(true);
    try {
      const { name } = found.body;
      if (entry) await ownerRequest("PUT", `/mcp/servers/${encodeURIComponent(name)}`, { entry: entryOf(entry, found.body, order) });
      else await ownerRequest("POST", "/mcp/servers", found.body);
      goToScreen("tools", "mcp", name);
    } catch (failure) {
      fail({ field: "", text: failure.message });
      mark(false);
    }
  };
  return html`<${Back} href=${back}>${entry ? before.name : "All servers"}</${Back}>
    <${ScreenHead} title=${entry ? `Change ${before.name}` : "Connect a server"} text=${entry ? "Its approved tools stay approved as long as the server says the same of them." : "None of its tools is offered before you have reviewed and approved it."} />
    <div>${entry ? null : html`<fieldset class="ways"><legend>What it is</legend>${WAYS.map(([kind, title, words]) => html`<label key=${kind}><input type="radio" name="kind" value=${kind} checked=${order.kind === kind} onChange=${change("kind")} /><span>${title}<small>${words}</small></span></label>`)}</fieldset>`}
    ${order.kind === "json" ? html`<${Pasted} />` : html`<form class="box" onSubmit=${save} noValidate>
      ${entry ? null : html`<${Field} label="Name" help="Up to 32 letters, digits, _ and -. The names of its tools begin with it." trouble=${on("name")}>${box("name", { maxlength: 32, placeholder: "weather" })}</${Field}>`}
      ${isCommand
        ? html`<${Field} label="Command" help="The program and its arguments, as in a shell." trouble=${on("where")}>${box("where", { placeholder: "python3 /opt/weather/server.py" })}</${Field}>
          <${Field} label="Folders that it may read" help="One a line. It can read nothing else of yours. What its program needs to start is found and offered afterwards." trouble=${on("readable")}>${lines("readable", "/opt/weather")}</${Field}>
          <${Field} label="Environment variables" help=${html`NAME=VALUE, one a line. Store a key in <a href=${addressOf("settings", "secrets")}>Secrets</a> and write <code>secret:NAME</code> here.`} trouble=${on("env")}>${lines("env", "WEATHER_KEY=secret:weather")}</${Field}>
          <${Field} label="Network access" help="Without it, the program reaches no other machine.">${(given) => html`<input type="checkbox" ...${given} checked=${order.network} onChange=${change("network")} />`}</${Field}>`
        : html`<${Field} label="Address" help="https, or http on this machine." trouble=${on("where")}>${box("where", { placeholder: "https://weather.example/mcp", inputmode: "url" })}</${Field}>
          <${Field} label="Headers" help=${html`NAME=VALUE, one a line. Store a key in <a href=${addressOf("settings", "secrets")}>Secrets</a> and write <code>secret:NAME</code> here. A login is made later.`} trouble=${on("headers")}>${lines("headers", "Authorization=secret:weather")}</${Field}>`}
      ${entry ? html`<${Field} label="Its calls" help="Each of its tools can have a level of its own.">${(given) => html`<select ...${given} value=${order.safety} onChange=${change("safety")}>${Object.entries(LEVELS).map(([level, words]) => html`<option key=${level} value=${level}>${words}</option>`)}</select>`}</${Field}>
        <${Field} label="Other users who may use it" help="Their names with commas between them. Without one, only you.">${box("users")}</${Field}>` : null}
      ${trouble.text && !trouble.field ? html`<p class="trouble" role="alert">The server was not ${entry ? "changed" : "added"}: ${trouble.text}</p>` : null}
      <div class="deeds"><button class="accent" type="submit" aria-disabled=${isBusy || null}>${entry ? "Save" : "Connect"}</button> <a class="as-button" href=${back}>Cancel</a></div>
    </form>`}</div>`;
}

const EXAMPLE = `{"mcpServers": {"weather": {"command": "npx", "args": ["-y", "weather-mcp"]}}}`;

/** Servers in a text for another client: shown before they are stored. */
function Pasted() {
  const [text, type] = useState("");
  const [state, put] = useState({ servers: null, trouble: "" });
  const read = async (event) => {
    event.preventDefault();
    await ownerRequest("POST", "/mcp/servers/read", { text }).then(
      ({ servers }) => put({ servers: servers.map((server) => ({ ...server, mayRead: true, network: Boolean(server.entry.network) })), trouble: "" }),
      (failure) => put({ servers: null, trouble: failure.message })
    );
  };
  const set = (name, given) => put({ ...state, servers: state.servers.map((server) => (server.name === name ? { ...server, ...given } : server)) });
  const usable = (state.servers ?? []).filter((server) => !server.problem);
  const add = async () => {
    try {
      for (const { name, entry, needs, mayRead, network } of usable) {
        const folders = [...(entry.readable ?? []), ...(mayRead ? needs : [])];
        await ownerRequest("PUT", `/mcp/servers/${encodeURIComponent(name)}`, { entry: { ...entry, ...(folders.length ? { readable: folders } : {}), ...(entry.url ? {} : { network }) } });
      }
      goToScreen("tools", "mcp", ...(usable.length === 1 ? [usable[0].name] : []));
    } catch (failure) {
      put({ ...state, trouble: failure.message });
    }
  };
  return html`<form class="box" onSubmit=${read} noValidate>
      <${Field} label="JSON" help="Nothing is started or stored by reading it." trouble=${state.trouble}>${(given) => html`<textarea rows="8" spellcheck=${false} ...${given} placeholder=${EXAMPLE} value=${text} onInput=${(event) => (type(event.currentTarget.value), put({ servers: null, trouble: "" }))}></textarea>`}</${Field}>
      <div class="deeds"><button class=${state.servers ? "edged" : "accent"} type="submit" disabled=${!text.trim()}>Read it</button> <a class="as-button" href=${addressOf("tools", "mcp")}>Cancel</a></div>
    </form>
    ${state.servers ? html`<h2>To be added</h2><ul class="things">${state.servers.map((server) => html`<${PastedServer} key=${server.name} server=${server} set=${(given) => set(server.name, given)} />`)}</ul>
      <div class="deeds"><${Button} kind="accent" disabled=${!usable.length} act=${add}>Add ${counted(usable.length, "server")}</${Button}></div>` : null}`;
}

function PastedServer({ server, set }) {
  const { name, where, kind, needs, problem, is_known: isKnown, entry, mayRead, network } = server;
  return html`<li><div class="head"><b class="grow">${name}</b>${isKnown ? html`<span class="tag">replaces the one that is there</span>` : null}</div>
    ${where ? html`<p><code>${where}</code>${kind ? html` <small>${kind}</small>` : null}</p>` : null}
    ${problem ? html`<p class="trouble">Not added: ${problem}</p>` : null}
    ${!problem && needs.length ? html`<label class="switch"><input type="checkbox" checked=${mayRead} onChange=${(event) => set({ mayRead: event.currentTarget.checked })} /> It may read what it needs to start: ${needs.map((folder, index) => html`${index ? ", " : ""}<code>${folder}</code>`)}</label>` : null}
    ${!problem && !entry.url ? html`<label class="switch"><input type="checkbox" checked=${network} onChange=${(event) => set({ network: event.currentTarget.checked })} /> Network access, which npx and uvx need to download it</label>` : null}
    ${!problem && Object.keys(entry.env ?? {}).length ? html`<p class="help">Variables: ${Object.keys(entry.env).join(", ")}. A key is better stored in <a href=${addressOf("settings", "secrets")}>Secrets</a>, with <code>secret:NAME</code> in its place.</p>` : null}</li>`;
}

/** An entry of mcp.json with what the form says; what the form does not show stays. */
function entryOf(entry, { server, env, headers, readable, network }, { kind, safety, users }) {
  const said = kind === "command" ? { command: server[0], args: server.slice(1), env, readable, network } : { url: server[0], headers };
  return { ...entry, ...said, safety, users: users.split(/[\s,]+/).filter(Boolean) };
}

/** What was filled in, or what is wrong with a field. */
function bodyOf({ name, kind, where, env, headers, readable, network }) {
  const wrong = (field, text) => ({ body: null, trouble: { field, text } });
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(name)) return wrong("name", "Expected 1 to 32 letters, digits, _ and -.");
  const isCommand = kind === "command";
  const server = isCommand ? wordsOf(where) : [where.trim()].filter(Boolean);
  if (!server) return wrong("where", "A quote is not closed.");
  if (!server.length) return wrong("where", isCommand ? "Write the command that starts the server." : "Write the address of the server.");
  if (!isCommand && !/^https?:\/\//.test(server[0])) return wrong("where", "Expected an address that begins with https://.");
  if (isCommand && server.length === 1 && /^https?:\/\//.test(server[0])) return wrong("where", "This is an address. Choose “A service at an address” above.");
  const variables = pairsOf(isCommand ? env : "");
  if (variables.trouble) return wrong("env", variables.trouble);
  const sent = pairsOf(isCommand ? "" : headers);
  if (sent.trouble) return wrong("headers", sent.trouble);
  const folders = isCommand ? readable.split("\n").map((line) => line.trim()).filter(Boolean) : [];
  return { body: { name, server, env: variables.pairs, headers: sent.pairs, readable: folders, network: isCommand && network }, trouble: null };
}

/** MCP servers: connected by a command or an address, their tools approved, logged in to, removed. */

import { html, useEffect, useState } from "../html.js";
import { pairsOf, wordsOf } from "../core/arguments.js";
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
  { id: "tools", title: "Tools", value: (row) => row.tools.length, show: (row) => (row.tools.length ? `${row.tools.length} approved` : "none approved") },
  { id: "state", title: "State", show: (row) => html`<${ServerState} server=${row} />` },
];

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
  if (!server.tools.length) return html`<${State} state="off">waits for your approval</${State}>`;
  if (!row) return html`<${State} state="off">not running</${State}>`;
  if (row.state !== "ready") return html`<${State} state="bad">${row.state}</${State}>`;
  return html`<${State} state=${why ? "bad" : "good"}>${why ? "not available" : "offered"}</${State}>${why ? html` <small>${why}</small>` : null}`;
}

/** @param {{name: string}} given */
export function ServerDetail({ name }) {
  const { data, trouble, reload } = useResource("/mcp/servers");
  const server = data?.servers.find((one) => one.name === name);
  const isMissing = data && !server;
  useLive(`mcp_${name}`, reload);
  return html`<${Back} href=${addressOf("tools", "mcp")}>All servers</${Back}>
    <${ScreenHead} title=${name} />
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
  return html`<${Facts} rows=${[
      ["State", html`<${ServerState} server=${server} />`],
      ["Problem", server.problem],
      [server.is_remote ? "Address" : "Command", html`<code>${server.where}</code>`],
      ["Level of its calls", { L0: "L0: made without asking", L1: "L1: can be undone; asks as the mode says", L2: "L2: asks before each call" }[server.safety]],
      ["Network", server.is_remote ? "" : server.network ? "yes" : "none"],
      ["May read", server.readable.join(", ")],
      ["Variables", server.env.join(", ")],
      ["Headers", server.headers.join(", ")],
      ["Brought by", server.skill ? `the skill ${server.skill}` : ""],
    ]} />
    ${server.is_remote ? html`<${Login} server=${server} path=${path} reload=${reload} />` : null}
    <h2>Approved tools</h2>
    ${server.tools.length ? html`<ul class="things">${server.tools.map((tool) => html`<li key=${tool.name}><code>${tool.name}</code><${Words}>${tool.description}</${Words}></li>`)}</ul>` : html`<${Empty}>None of its tools is approved, so none is offered to a model.</${Empty}>`}
    ${server.skill ? html`<p class="lead">Its tools are approved with its skill, at <a href=${addressOf("tools", "skills")}>Skills</a>.</p>` : html`<${Review} label=${server.tools.length ? "Compare with what it offers now" : "Review its tools"} done=${reload}
      note=${server.is_remote ? "This asks the server which tools it has. Nothing is approved by looking." : `This starts the command in a sandbox${server.network ? "" : " without a network"} to see its tools. Nothing is approved by looking.`}
      look=${() => ownerRequest("POST", `${path}/review`)} approve=${(review_id) => ownerRequest("POST", `${path}/approve`, { review_id })} />`}
    <div class="deeds"><${ConfirmButton} kind="bad edged" title=${`Remove ${server.name}?`} verb="Remove it" text=${`${counted(server.tools.length, "approved tool")} and its login are removed, and it is taken out of mcp.json. What it has stored in its own folder stays.`} act=${remove}>Remove this server</${ConfirmButton}></div>`;
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

const EMPTY = { name: "", kind: "command", where: "", env: "", headers: "", readable: "", network: false };

/** The form that connects a server. */
export function NewServer() {
  const [order, put] = useState(EMPTY);
  const [trouble, fail] = useState({ field: "", text: "" });
  const [isBusy, mark] = useState(false);
  const change = (field) => (event) => put({ ...order, [field]: event.currentTarget.type === "checkbox" ? event.currentTarget.checked : event.currentTarget.value });
  const on = (field) => (trouble.field === field ? trouble.text : "");
  const box = (field, more = {}) => (given) => html`<input type="text" autocomplete="off" spellcheck=${false} ...${given} ...${more} value=${order[field]} onInput=${change(field)} />`;
  const lines = (field, placeholder) => (given) => html`<textarea rows="2" spellcheck=${false} ...${given} placeholder=${placeholder} value=${order[field]} onInput=${change(field)}></textarea>`;
  const isCommand = order.kind === "command";
  const save = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    const found = bodyOf(order);
    if (found.trouble) return fail(found.trouble);
    mark(true);
    try {
      const { name } = await ownerRequest("POST", "/mcp/servers", found.body);
      goToScreen("tools", "mcp", name);
    } catch (failure) {
      fail({ field: "", text: failure.message });
      mark(false);
    }
  };
  return html`<${Back} href=${addressOf("tools", "mcp")}>All servers</${Back}>
    <${ScreenHead} title="Connect a server" text="None of its tools is offered before you have reviewed and approved it." />
    <div><form class="box" onSubmit=${save} noValidate>
      <fieldset class="ways"><legend>What it is</legend>
        <label><input type="radio" name="kind" value="command" checked=${isCommand} onChange=${change("kind")} /><span>A program on this machine<small>It is started in a sandbox, with a folder of its own.</small></span></label>
        <label><input type="radio" name="kind" value="url" checked=${!isCommand} onChange=${change("kind")} /><span>A service at an address<small>What the model sends it leaves this machine.</small></span></label></fieldset>
      <${Field} label="Name" help="Up to 32 letters, digits, _ and -. The names of its tools begin with it." trouble=${on("name")}>${box("name", { maxlength: 32, placeholder: "weather" })}</${Field}>
      ${isCommand
        ? html`<${Field} label="Command" help="The program and its arguments, as in a shell." trouble=${on("where")}>${box("where", { placeholder: "python3 /opt/weather/server.py" })}</${Field}>
          <${Field} label="Folders that it may read" help="One a line. It can read nothing else of yours." trouble=${on("readable")}>${lines("readable", "/opt/weather")}</${Field}>
          <${Field} label="Environment variables" help=${html`NAME=VALUE, one a line. Store a key in <a href=${addressOf("settings", "secrets")}>Secrets</a> and write <code>secret:NAME</code> here.`} trouble=${on("env")}>${lines("env", "WEATHER_KEY=secret:weather")}</${Field}>
          <${Field} label="Network access" help="Without it, the program reaches no other machine.">${(given) => html`<input type="checkbox" ...${given} checked=${order.network} onChange=${change("network")} />`}</${Field}>`
        : html`<${Field} label="Address" help="https, or http on this machine." trouble=${on("where")}>${box("where", { placeholder: "https://weather.example/mcp", inputmode: "url" })}</${Field}>
          <${Field} label="Headers" help=${html`NAME=VALUE, one a line. Store a key in <a href=${addressOf("settings", "secrets")}>Secrets</a> and write <code>secret:NAME</code> here. A login is made later.`} trouble=${on("headers")}>${lines("headers", "Authorization=secret:weather")}</${Field}>`}
      ${trouble.text && !trouble.field ? html`<p class="trouble" role="alert">The server was not added: ${trouble.text}</p>` : null}
      <div class="deeds"><button class="accent" type="submit" aria-disabled=${isBusy || null}>Connect</button> <a class="as-button" href=${addressOf("tools", "mcp")}>Cancel</a></div>
    </form></div>`;
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

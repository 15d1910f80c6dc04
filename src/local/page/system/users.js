/** Who else may use LoCAL2: invited by a link that signs in once, limited in what they use, removed at once. */

import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { dayAt, limitOf, tokensOf } from "../core/system_tables.js";
import { figure, moment } from "../core/words.js";
import { signIn } from "../net/token.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Button, Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { now } from "../state/store.js";
import { control, ownerRequest } from "../state/system.js";
import { CopyButton } from "../views/copy_button.js";
import { SIGN_IN_FIELD } from "../views/token_form.js";

export function Users() {
  const isIn = Boolean(signIn.value);
  const { data, trouble, reload } = useResource(isIn ? "/users" : null);
  const [given, show] = useState(null);
  if (!isIn) return html`<${Trouble} text="Sign in to see and invite users." failure="This needs the owner. Enter the code that local2 code prints at the top of the page." label="Go to the code" act=${() => document.getElementById(SIGN_IN_FIELD)?.focus()} />`;
  return html`${given ? html`<${Token} given=${given} done=${() => show(null)} />` : html`<${Invite} invited=${(made) => (show(made), reload())} />`}
    ${trouble ? html`<${Trouble} text="The users could not be read." failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${List} users=${data.users} reload=${reload} invited=${show} />` : trouble ? null : html`<${Loading} />`}
    <${Budgets} />`;
}

function Invite({ invited }) {
  const [name, type] = useState("");
  const [failure, fail] = useState(null);
  const invite = (again) => ownerRequest("POST", "/users", { name: name.trim(), again }).then(invited, fail);
  const submit = (event) => {
    event.preventDefault();
    void invite(false);
  };
  return html`<form class="invite" onSubmit=${submit}><${Field} label="Invite somebody" trouble=${failure?.message ?? ""} help="A short name: letters, digits, dots, dashes. What they ask and what is remembered of it is kept under this name.">
      ${(given) => html`<div class="one-line"><input type="text" ...${given} data-invite autocomplete="off" spellcheck="false" maxlength="128" value=${name} onInput=${(event) => (type(event.target.value), fail(null))} /><button type="submit" class="accent" disabled=${!name.trim()}>Invite</button></div>`}<//>
      ${failure?.kind === "removed" ? html`<div class="deeds"><${Button} act=${() => invite(true)}>It is the same person again</${Button}></div>` : null}</form>`;
}

/** Only hashes are kept, so nobody can show them again. */
function Token({ given: { name, token = "", code }, done }) {
  const node = useRef(null);
  useLayoutEffect(() => node.current.focus(), []);
  const link = `${location.origin}/#code=${code}`;
  const isHere = /^(localhost|127\.|\[::1\])/.test(location.hostname);
  const close = () => (done(), requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[data-invite]"))?.focus()));
  return html`<section class="token" tabindex="-1" ref=${node} aria-labelledby="token-of"><h2 id="token-of">Invitation of <bdi>${name}</bdi></h2>
    <p>Send this link to <bdi>${name}</bdi>. It signs one browser in, once, within a week, and is shown only now.</p>
    <p><code>${link}</code> <${CopyButton} text=${link} what="link" /></p>
    ${token ? html`<details><summary>For programs of ${name}: a token</summary><p>It is shown only now. Programs send it as <code>Authorization: Bearer …</code>; in a browser it can be entered in place of the link.</p>
      <p><code>${token}</code> <${CopyButton} text=${token} what="token" /></p></details>` : null}
    ${isHere ? html`<p class="help">This address works only on this machine. For other devices, open LoCAL2 to your network first: see “Use it from a phone or another computer” in the documentation.</p>` : null}
    <div class="deeds"><button type="button" class="edged" onClick=${close}>Done</button></div></section>`;
}

function List({ users, reload, invited }) {
  const used = useResource(`/usage?by=user&since=${dayAt(now.value)}`);
  const today = new Map((used.data?.rows ?? []).map((row) => [row.user, tokensOf(row)]));
  if (!users.length) return html`<${Empty}>Nobody else uses LoCAL2 yet. Invite somebody, and they appear here.<//>`;
  const revoke = async (name) => (await ownerRequest("DELETE", `/users/${encodeURIComponent(name)}`), reload());
  const columns = [
    { id: "name", title: "User", value: (row) => row.name, show: (row) => html`<bdi>${row.name}</bdi>` },
    { id: "added_at", title: "Since", value: (row) => row.added_at, show: (row) => since(row.added_at) },
    { id: "today", title: "Tokens today", value: (row) => today.get(row.name) ?? 0, show: (row) => figure(today.get(row.name) ?? 0), isNumber: true },
    { id: "acts", title: "Actions", show: ({ name }) => html`<${Button} label=${`New link for ${name}`} act=${async () => invited(await ownerRequest("POST", `/users/${encodeURIComponent(name)}/invite`))}>New link<//> <${ConfirmButton} kind="quiet edged" label=${`Remove ${name}`} title=${`Remove ${name}?`} verb="Remove" text="The token stops working and every browser is signed out at once. What was asked and remembered stays, and the name is given to nobody else: you can invite the same person again." act=${() => revoke(name)}>Remove<//>` },
  ];
  return html`<${Table} label="Users" columns=${columns} rows=${users} keyOf=${(row) => row.name} />`;
}

/** A date as the file of users has it; users of before have none. */
function since(text) {
  const seconds = Date.parse(text) / 1000;
  return Number.isFinite(seconds) ? moment(seconds, now.value) : "–";
}

const SCOPES = [["all", "Everybody together"], ["user", "Each user"], ["session", "Each conversation"]];
const UNITS = [["tokens", "tokens a day", true], ["money", "money a day", false]];
const OF_GUESTS = [["tokens_a_day", "tokens a day", true], ["megabytes", "megabytes of conversations and files", true]];
const MODELS = html`<code>default</code>, <code>local</code> for those on your machines, <code>*</code> for all, or names, with commas between them.`;

/** The limits of a day, from the settings of the API. */
function Budgets() {
  const { data, trouble, reload } = useResource("/settings/api");
  return html`<h2>Limits <small>a question beyond a limit for a day is refused until midnight</small></h2>
    ${trouble ? html`<${Trouble} text="The limits could not be read." failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${Limits} key=${JSON.stringify([data.values?.budgets, data.values?.users])} before=${{ ...data.values?.budgets, guest: data.values?.users }} readers=${data.restart_needed ?? []} />` : trouble ? null : html`<${Loading} />`}`;
}

function Limits({ before, readers }) {
  const [typed, type] = useState({});
  const [state, tell] = useState({ trouble: "", isSaved: false });
  const at = (scope, unit) => typed[`${scope} ${unit}`] ?? String(before[scope]?.[unit] ?? "");
  const read = (scope, unit, isWhole) => limitOf(at(scope, unit), isWhole);
  const models = typed["guest models"] ?? (before.guest?.models ?? []).join(", ");
  const isWrong = SCOPES.some(([scope]) => UNITS.some(([unit, , isWhole]) => read(scope, unit, isWhole).trouble)) || OF_GUESTS.some(([unit]) => read("guest", unit, true).trouble);
  const save = async () => {
    const budgets = Object.fromEntries(SCOPES.map(([scope]) => [scope, Object.fromEntries(UNITS.map(([unit, , isWhole]) => [unit, read(scope, unit, isWhole).value]))]));
    const users = { ...Object.fromEntries(OF_GUESTS.map(([unit]) => [unit, read("guest", unit, true).value])), models: models.split(/[\s,]+/).filter(Boolean) };
    await ownerRequest("PUT", "/settings/api", { values: { budgets, users } }).then(() => tell({ trouble: "", isSaved: true }), (failure) => tell({ trouble: failure.message, isSaved: false }));
  };
  const put = (scope, unit) => (event) => (type({ ...typed, [`${scope} ${unit}`]: event.target.value }), tell({ trouble: "", isSaved: false }));
  const limit = (scope) => ([unit, title, isWhole]) => html`<${Field} key=${unit} label=${title} trouble=${read(scope, unit, isWhole).trouble}>
      ${(given) => html`<input type="text" inputmode="decimal" ...${given} placeholder="no limit" autocomplete="off" value=${at(scope, unit)} onInput=${put(scope, unit)} />`}<//>`;
  return html`<div class="limits"><fieldset><legend>Each other user</legend>${OF_GUESTS.map(limit("guest"))}
      <${Field} label="models to choose from" help=${MODELS}>${(given) => html`<input type="text" ...${given} autocomplete="off" spellcheck=${false} value=${models} onInput=${put("guest", "models")} />`}<//></fieldset>
    ${SCOPES.map(([scope, whose]) => html`<fieldset key=${scope}><legend>${whose}</legend>${UNITS.map(limit(scope))}</fieldset>`)}</div>
    ${state.trouble ? html`<p class="trouble" role="alert">Not saved: ${state.trouble}</p>` : null}
    ${state.isSaved ? html`<p role="status">Saved. The limits take effect after a restart of the API.</p>` : null}
    <div class="deeds"><${Button} kind="accent" disabled=${isWrong || !Object.keys(typed).length || state.isSaved} act=${save}>Save limits<//>
      ${state.isSaved ? readers.filter((name) => name !== "system").map((name) => html`<${Button} key=${name} label=${`Restart ${name}`} act=${() => control("restart", name)}>Restart ${name}<//>`) : null}</div>`;
}

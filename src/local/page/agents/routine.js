/** How something is that LoCAL2 does by itself: whether it is on, when it last ran, what it may use; and its switch. */

import { html, useState } from "../html.js";
import { figure, moment } from "../core/words.js";
import { Facts, State } from "../parts/detail.js";
import { Button } from "../parts/field.js";
import { Trouble } from "../parts/notes.js";
import { request } from "../net/api.js";
import { now } from "../state/store.js";

/** @param {{path: string, state: any, name: string, verb: string, what: string, done: () => void}} given `path` is its
 * route, `what` says what running it does, in words that follow "Now" */
export function Routine({ path, state, name, verb, what, done }) {
  const [said, say] = useState({ text: "", failure: null });
  const change = async (to) => {
    try {
      const after = await request("POST", `${path}/${to}`);
      const text = to === "now" ? (after.why ? `It did not run: ${after.why}.` : `${what} A result appears here in a moment.`) : to === "on" ? `${name} is on, also after a restart.` : `${name} is off, also after a restart.`;
      say({ text, failure: null });
      done();
    } catch (failure) {
      say({ text: "", failure });
    }
  };
  return html`<${Facts} rows=${[
      ["State", html`<${State} state=${state.problem ? "bad" : state.is_on ? "good" : "off"}>${state.is_on ? "on" : "off"}</${State}>${state.is_on && state.why ? html` <small>${state.why}</small>` : null}`],
      ["Problem", state.problem],
      ["Last run", state.done_at ? moment(state.done_at, now.value) : "not yet"],
      ["Has read until", state.read_until ? moment(state.read_until, now.value) : ""],
      ["Tokens today", `${figure(state.tokens_today)} of ${figure(state.tokens_per_day)}`],
    ]} />
    <div class="deeds"><${Button} act=${() => change("now")}>${verb}</${Button}> <${Button} act=${() => change(state.is_on ? "off" : "on")}>Switch ${name.toLowerCase()} ${state.is_on ? "off" : "on"}</${Button}></div>
    ${said.text ? html`<p role="status">${said.text}</p>` : null}
    ${said.failure ? html`<${Trouble} text="Nothing was changed." failure=${said.failure} label="Close" act=${() => say({ text: "", failure: null })} />` : null}`;
}

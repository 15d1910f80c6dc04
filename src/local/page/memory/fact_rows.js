/** Facts with all that can be done about them: confirm, drop, correct, take back; and adding one. */

import { html, useRef, useState } from "../html.js";
import { holdsOf, marksOf } from "../core/memory.js";
import { ago, moment } from "../core/words.js";
import { request } from "../net/api.js";
import { Button, Field } from "../parts/field.js";
import { Trouble } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { now, spoken } from "../state/store.js";
import { exchangeAt, focused, focusSoon } from "./live.js";

const wordsOf = (fact) => `${fact.slot}: ${fact.value}`;

/** @param {{facts: any[], reload: () => void, isOfOne?: boolean, label?: string}} given `isOfOne`: all of them are of the
 * exchange that is shown */
export function FactRows({ facts, reload, isOfOne = false, label = "Facts" }) {
  const [shown, show] = useState({ id: 0, what: "" });
  const [failure, fail] = useState(null);
  const opener = useRef(null);
  const close = () => (show({ id: 0, what: "" }), focusSoon(opener.current));
  const done = (words) => (show({ id: 0, what: "" }), fail(null), (spoken.value = words), reload(), focusSoon());
  const settle = (fact, method) => request(method, `/memory/facts/${fact.fact_id}${method === "POST" ? "/confirm" : ""}`).then(() => done(method === "POST" ? "Confirmed" : "Dropped"), fail);
  const acts = (fact) => {
    if (fact.superseded_at) return null;
    const press = (what) => (event) => ((opener.current = event.currentTarget), show(shown.id === fact.fact_id && shown.what === what ? { id: 0, what: "" } : { id: fact.fact_id, what }));
    const toggle = (what, title) => html`<button type="button" class="edged" aria-label=${`${title} ${wordsOf(fact)}`} aria-expanded=${shown.id === fact.fact_id && shown.what === what} onClick=${press(what)}>${title}</button>`;
    if (fact.confirmed === false)
      return html`<span class="row-acts"><${Button} label=${`Confirm ${wordsOf(fact)}`} act=${() => settle(fact, "POST")}>Confirm</${Button}><${Button} label=${`Drop ${wordsOf(fact)}`} act=${() => settle(fact, "DELETE")}>Drop</${Button}>${toggle("correct", "Correct")}</span>`;
    return html`<span class="row-acts">${toggle("correct", "Correct")}${toggle("take-back", "Take back")}</span>`;
  };
  const below = (fact) => {
    if (shown.id !== fact.fact_id || !fact.fact_id) return null;
    if (shown.what === "correct") return html`<${FactForm} key=${fact.fact_id} fact=${fact} close=${close} done=${() => done("Corrected")} />`;
    return html`<${TakeBack} key=${fact.fact_id} fact=${fact} close=${close} done=${() => done("Taken back")} />`;
  };
  const source = { id: "stated", title: "Said", value: (fact) => -fact.stated_at, show: (fact) => html`<a class="age" href=${exchangeAt(fact.engram_id)} title=${moment(fact.stated_at, now.value)}>${ago(now.value - fact.stated_at)}</a>` };
  const columns = [
    { id: "slot", title: "About", value: (fact) => fact.slot },
    { id: "value", title: "What you said", value: (fact) => fact.value, show: (fact) => html`<span class=${fact.superseded_at ? "old" : null}>${fact.value}</span>${marksOf(fact).map((mark) => html` <small key=${mark}>${mark}</small>`)}`, isWide: true },
    { id: "holds", title: "Holds", value: (fact) => fact.holds_until || fact.holds_from, show: (fact) => holds(fact) },
    ...(isOfOne ? [] : [source]),
    { id: "acts", title: "Actions", show: acts },
  ];
  return html`${failure ? html`<${Trouble} text="The fact was not changed." failure=${failure} label="Reload" act=${() => (fail(null), reload())} />` : null}
    <${Table} label=${label} columns=${columns} rows=${facts} keyOf=${(fact) => String(fact.fact_id || wordsOf(fact))} below=${below} />`;
}

function holds(fact) {
  const days = holdsOf(fact);
  const ended = fact.superseded_at ? `replaced or taken back ${moment(fact.superseded_at, now.value)}` : "";
  return [days, ended].filter(Boolean).join(", ") || html`<span class="none">–</span>`;
}

/** A fact that is written by hand: in place of `fact`, or a new one. */
export function FactForm({ fact = null, close, done }) {
  const [typed, type] = useState({ slot: fact?.slot ?? "", value: fact?.value ?? "", holds_from: fact?.holds_from ?? "", holds_until: fact?.holds_until ?? "" });
  const [failure, fail] = useState(null);
  const isWhole = Boolean(typed.slot.trim() && typed.value.trim());
  const save = async (event) => {
    event.preventDefault();
    if (isWhole) await request(fact ? "PUT" : "POST", `/memory/facts${fact ? `/${fact.fact_id}` : ""}`, typed).then(done, fail);
  };
  const line = (name, label, help, type_ = "text") => html`<${Field} label=${label} help=${help}>${(given) => html`<input ...${given} type=${type_} name=${name} dir="auto" maxlength=${name === "slot" ? 200 : 1000} autocomplete="off" value=${typed[name]} onInput=${(event) => type({ ...typed, [name]: event.target.value })} ref=${name === (fact ? "value" : "slot") ? focused : null} />`}</${Field}>`;
  return html`<form class="fact-form" onSubmit=${save} onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), close())}>
    ${line("slot", "About", "A name for it, such as “how I take my coffee”.")}
    ${line("value", "What is true", "Such as “black, without sugar”.")}
    <div class="days">${line("holds_from", "Holds from", "Empty: always.", "date")}${line("holds_until", "Holds until", "Empty: until you say otherwise.", "date")}</div>
    ${failure ? html`<p class="trouble" role="alert">Not saved: ${failure.message}</p>` : null}
    <div class="row-acts"><button type="submit" class="accent" disabled=${!isWhole}>${fact ? "Save correction" : "Add fact"}</button><button type="button" class="edged" onClick=${close}>Cancel</button></div>
  </form>`;
}

function TakeBack({ fact, close, done }) {
  const [failure, fail] = useState(null);
  const take = () => request("PUT", `/memory/facts/${fact.fact_id}`, { slot: fact.slot, value: "" }).then(done, fail);
  return html`<div class="fact-form" role="group" aria-label=${`Take back ${wordsOf(fact)}`} onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), close())}>
    <p>No model will be told “<bdi>${wordsOf(fact)}</bdi>” any more. It stays in the history; delete its exchange to remove it permanently.</p>
    ${failure ? html`<p class="trouble" role="alert">Not taken back: ${failure.message}</p>` : null}
    <div class="row-acts"><button type="button" class="edged" ref=${focused} onClick=${close}>Cancel</button><${Button} kind="edged bad" act=${take}>Take it back</${Button}></div></div>`;
}

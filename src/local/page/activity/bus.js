/** The bus as it is now: who takes part, in fixed seats, what waits for whom, and each message that passes. */

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { MOST, Rates, Ring, groupsOf, journalPath, lags, rateInWords, ratesBefore, seatsOf, SEAT, together } from "../core/bus.js";
import { figure } from "../core/words.js";
import { request } from "../net/api.js";
import { Empty, Loading } from "../parts/notes.js";
import { MessageRows, Messages } from "../parts/messages.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { watchBus } from "../state/following.js";
import { addressOf } from "../state/screens.js";
import { offlineSince, participants } from "../state/store.js";
import { FilterField } from "./filter_field.js";
import { Times } from "./times.js";

const RATES_MS = 500;
const MOST_EARLIER = 500; // messages on record with which the list of a new filter begins
const LABEL = "Messages on the bus";

export function Bus() {
  const [filter, want] = useState("");
  const [held, hold] = useState(null);
  const [until, jump] = useState(null);
  const [, draw] = useState(0);
  const [rates, measure] = useState({ all: 0, by: new Map() });
  const flow = useMemo(() => ({ all: new Ring(), rates: new Rates() }), []);
  const chosen = useMemo(() => (filter ? new Ring() : flow.all), [filter]);
  const redraw = () => draw((count) => count + 1);
  useEffect(() => {
    if (!filter) return undefined;
    const stop = new AbortController();
    const end = watchBus((name, header) => name === "message" && chosen.push(header), filter);
    request("GET", journalPath({ filter, limit: MOST_EARLIER }), undefined, { signal: stop.signal }).then(({ entries }) => (chosen.precede(entries), redraw()), () => {});
    return () => (end(), stop.abort());
  }, [chosen]);
  useEffect(() => {
    const { later, stop } = together(redraw);
    const end = watchBus((name, data) => {
      if (name === "lost") flow.all.lost += data.lost;
      else {
        flow.rates.count(data.sender, Date.now() / 1000);
        flow.all.push(data);
      }
      later();
    });
    const timer = setInterval(() => measure(flow.rates.at(Date.now() / 1000)), RATES_MS);
    return () => (end(), stop(), clearInterval(timer));
  }, []);
  const { data } = useResource(until === null ? null : journalPath({ until, limit: 500 }));
  const then = useMemo(() => (until === null ? null : ratesBefore(until, data?.entries ?? [])), [until, data]);
  const picture = useMemo(() => html`<${Picture} rates=${then ?? rates} isNow=${!then} />`, [then ?? rates]); // not at each message
  const shown = Ring.latest(held ?? chosen.rows);
  return html`<p class="bus-head" data-passed=${flow.all.count} data-lost=${flow.all.lost}><b>${then ? "on record" : offlineSince.value ? "not connected" : held ? "held" : "live"}</b>
      <span class="num">${rateInWords((then ?? rates).all) || "0/s"}</span>${then ? null : html`<span class="num">${figure(flow.all.count)} seen</span><span class=${flow.all.lost ? "num trouble" : "num"}>${figure(flow.all.lost)} lost</span>`}</p>
    <${Times} until=${until} jump=${(to) => (hold(null), jump(to))} />
    ${picture}
    <h2>Messages <small>${then ? "on record, the latest first" : `headers of the last ${figure(MOST)}; press one for all of it`}</small></h2>
    <div class="filters"><${FilterField} at=${filter} choose=${(text) => (hold(null), want(text))} />
      ${then ? null : html`<button type="button" class="edged" aria-pressed=${held !== null} onClick=${() => hold(held ? null : chosen.rows.slice())}>${held ? "Go on" : "Hold still"}</button>`}</div>
    ${then ? html`<${Messages} filter=${filter} until=${until} label=${LABEL} empty="No such message was on record then." />`
      : shown.length ? html`<${MessageRows} rows=${shown} label=${LABEL} />`
      : html`<${Empty}>${flow.all.count ? "No message has matched this filter yet." : "Nothing has passed yet. Participants report their state every few seconds."}</${Empty}>`}`;
}

const COLUMNS = [
  { id: "name", title: "Participant", value: (row) => row.name, show: (row) => html`<a href=${addressOf("participants", row.name)}>${row.name}</a>` },
  { id: "state", title: "State", value: (row) => row.state, show: (row) => html`<span class="dot" data-state=${row.state} aria-hidden="true"></span> ${row.state}` },
  { id: "rate", title: "Sends", value: (row) => row.rate, show: (row) => rateInWords(row.rate) || "–", isNumber: true },
  { id: "inflight", title: "In hand", value: (row) => row.inflight ?? 0, isNumber: true },
  { id: "lag", title: "Waiting", value: (row) => row.lag, isNumber: true },
  { id: "restarts", title: "Restarts", value: (row) => row.restarts ?? 0, isNumber: true },
];

/** @param {{rates: {by: Map<string, number>}, isNow: boolean}} given of a moment of the past only the rates are known */
function Picture({ rates, isNow }) {
  const box = useRef(null);
  const [width, measure] = useState(0);
  const [isTable, open] = useState(false);
  useEffect(() => {
    const seen = new ResizeObserver(([entry]) => measure(Math.floor(entry.contentRect.width)));
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  const present = participants.value;
  const all = useMemo(() => (isNow ? present : new Map([...present].map(([name, { kind }]) => [name, { name, kind, state: "" }]))), [present, isNow]);
  const groups = useMemo(() => groupsOf(all.values()), [all]);
  const waiting = useMemo(() => lags(all.values()), [all]);
  const plan = useMemo(() => (width ? seatsOf(groups, width) : null), [groups, width]);
  const rows = !isTable ? [] : [...all.values()].map((row) => ({ ...row, rate: rates.by.get(row.name) ?? 0, lag: waiting.get(row.name) ?? 0 }));
  return html`<div class="bus-picture" ref=${box}>${!all.size ? html`<${Loading} />` : plan ? html`<svg width=${plan.width} height=${plan.height} role="group" aria-label="The participants on the bus">
      <line class="trunk" x1="5" y1="8" x2="5" y2=${plan.height - SEAT.gap - SEAT.height / 2} />
      ${plan.groups.map(({ title, y, seats }) => html`<g key=${title}><text class="group" x="18" y=${y}>${title}</text>${seats.map((seat) => html`<${Seat} key=${seat.row.name} ...${seat} rate=${rates.by.get(seat.row.name) ?? 0} lag=${waiting.get(seat.row.name) ?? 0} />`)}</g>`)}
    </svg>` : null}</div>
    <details class="as-table" onToggle=${(event) => open(event.currentTarget.open)}><summary>As a table</summary>${isTable ? html`<${Table} label="Participants on the bus" columns=${isNow ? COLUMNS : COLUMNS.filter(({ id }) => id === "name" || id === "rate")} rows=${rows} keyOf=${(row) => row.name} />` : null}</details>`;
}

/** One participant in its place; a line to the bus that is strong while it sends. */
function Seat({ row, x, y, rate, lag }) {
  const facts = [row.state === "ready" ? "" : row.state, rateInWords(rate), row.inflight ? `${row.inflight} in hand` : "", lag ? `${figure(lag)} waiting` : "", row.restarts ? `${row.restarts} restarts` : ""].filter(Boolean).join(" · ");
  const middle = y + SEAT.height / 2;
  return html`<g class="seat" data-state=${row.state} data-busy=${rate > 0}>
    <path class="wire" d=${`M5 ${y - 5}H${x + 10}V${y}`} />
    <a href=${addressOf("participants", row.name)} aria-label=${[row.name, row.state, facts].filter(Boolean).join(", ")}><rect x=${x} y=${y} width=${SEAT.width} height=${SEAT.height} rx="8" />
      <circle cx=${x + 12} cy=${y + 14} r="3.5" /><text class="name" x=${x + 22} y=${y + 18}>${cut(row.name)}</text><text class="facts" x=${x + 12} y=${middle + 14}>${facts || "quiet"}</text></a></g>`;
}

const cut = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);

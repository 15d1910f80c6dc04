/** What was used, by day, model, agent and more: a small picture of the days, and a table with bars. */

import { html, useState } from "../html.js";
import { dayAt, dayBefore, daysOf, tokensOf } from "../core/system_tables.js";
import { counted, duration, figure, moment } from "../core/words.js";
import { Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { sheet } from "../parts/sheet.js";
import { Table } from "../parts/table.js";
import { addressOf } from "../state/screens.js";
import { me, now } from "../state/store.js";

await sheet("./system.css", import.meta.url);

const GROUPS = [["day", "Day"], ["model", "Model"], ["server", "Model server"], ["agent", "Agent"], ["user", "User"], ["job", "Scheduled question"], ["session", "Conversation"]];
const PERIODS = [["7", "7 days"], ["30", "30 days"], ["365", "a year"], ["", "all time"]];
const NOTHING = { user: "you, and work beside the answers", agent: "none", job: "no scheduled question", session: "no conversation", model: "unknown", server: "not noted: each model has one", day: "–" };

/** Everybody's usage, for the owner. */
export function Usage() {
  return html`<${Used} groups=${GROUPS} />`;
}

/** A user's own usage. */
export function OwnUsage() {
  return html`<div class="system-part"><p>What your questions have used, and what is left of your budgets.</p><${Used} groups=${GROUPS.filter(([id]) => id !== "user")} /></div>`;
}

function Used({ groups }) {
  const [by, group] = useState("day");
  const [period, limit] = useState("30");
  const today = dayAt(now.value);
  const since = period ? `&since=${dayBefore(today, Number(period) - 1)}` : "";
  const { data, trouble, reload } = useResource(`/usage?by=${by}${since}`);
  const days = useResource(`/usage?by=day&since=${dayBefore(today, 29)}`);
  return html`<div class="filters"><${Choice} label="Show by" options=${groups} value=${by} change=${group} /><${Choice} label="Of the last" options=${PERIODS} value=${period} change=${limit} /></div>
    ${trouble ? html`<${Trouble} text="The usage could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.budgets.length ? html`<${Budgets} budgets=${data.budgets} />` : null}
    ${days.data?.rows.length ? html`<${Days} days=${daysOf(days.data.rows, today, 30)} />` : null}
    ${data ? html`<${Rows} by=${by} data=${data} />` : trouble ? null : html`<${Loading} />`}`;
}

export function Choice({ label, options, value, change }) {
  return html`<${Field} label=${label}>${(given) => html`<select ...${given} onChange=${(event) => change(event.target.value)}>${options.map(([id, title]) => html`<option key=${id} value=${id} selected=${id === value}>${title}</option>`)}</select>`}<//>`;
}

function Rows({ by, data: { rows, total } }) {
  if (!rows.length) return html`<${Empty}>Nothing was used in this time. Each answer is counted here as soon as it is complete.<//>`;
  const most = Math.max(1, ...rows.map(tokensOf));
  const hasMoney = rows.some((row) => row.money !== null);
  const number = (id, title, words) => ({ id, title, value: (row) => row[id], show: (row) => words(row[id]), isNumber: true });
  const columns = [
    { id: by, title: GROUPS.find(([id]) => id === by)?.[1], value: (row) => row[by], show: (row) => (by === "session" && row[by] ? html`<a href=${`#/c/${encodeURIComponent(row[by])}`}>${row[by]}</a>` : row[by] || NOTHING[by]) },
    number("answers", "Answers", figure),
    number("calls", "Calls", figure),
    number("prompt_tokens", "Tokens read", figure),
    number("completion_tokens", "Written", figure),
    number("seconds", "Time", (seconds) => duration(seconds) || "–"),
    ...(hasMoney ? [number("money", "Money", money)] : []),
    { id: "share", title: "Tokens", value: tokensOf, show: (row) => html`<${Bar} share=${tokensOf(row) / most} />` },
  ];
  const latestFirst = by === "day" ? [...rows].reverse() : [...rows].sort((one, other) => tokensOf(other) - tokensOf(one));
  return html`<${Table} key=${by} label=${`Usage by ${by}`} columns=${columns} rows=${latestFirst} keyOf=${(row) => row[by]} />
    ${total ? html`<p class="sum">Together ${counted(total.answers, "answer")}, ${figure(tokensOf(total))} tokens, ${duration(total.seconds) || "0 s"}${total.money === null ? "" : `, ${money(total.money)}`}.${hasMoney || !me.value.owner ? "" : html` Money is counted for models that have a price in <a href=${addressOf("settings", "models")}>the settings of models</a>.`}</p>` : null}`;
}

const money = (amount) => (amount === null ? "–" : amount.toFixed(amount < 1 ? 4 : 2));

function Bar({ share }) {
  return html`<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="8" /><rect class="full" width=${100 * share} height="8" /></svg>`;
}

function Days({ days }) {
  const most = Math.max(1, ...days.map((one) => one.tokens));
  const used = days.filter((one) => one.tokens);
  return html`<figure class="days"><svg viewBox="0 0 300 48" preserveAspectRatio="none" role="img" aria-label=${`Tokens on each of the last 30 days: at most ${figure(most)}, used on ${counted(used.length, "day")}`}>
      ${days.map(({ day, tokens }, index) => html`<rect key=${day} x=${index * 10 + 1} width="8" y=${48 - Math.max(1, (46 * tokens) / most)} height=${Math.max(1, (46 * tokens) / most)} class=${tokens ? "full" : null}><title>${`${day}: ${figure(tokens)} tokens`}</title></rect>`)}</svg>
    <figcaption><span>${days[0].day}</span><span>tokens a day, at most ${figure(most)}</span><span>today</span></figcaption></figure>`;
}

const WHOSE = { all: "Everybody together", user: "You", session: "A conversation" };

function Budgets({ budgets }) {
  return html`<ul class="models" aria-label="Budgets of today">${budgets.map((one) => html`<li key=${`${one.of} ${one.unit}`}><div>${WHOSE[one.of]}: ${one.unit === "money" ? money(one.spent) : figure(one.spent)} of ${one.unit === "money" ? money(one.limit) : figure(one.limit)} ${one.unit} today
      <progress aria-label=${`Budget: ${WHOSE[one.of]}, ${one.unit}`} max=${one.limit} value=${Math.min(one.spent, one.limit)}></progress>
      ${one.spent >= one.limit ? html`<small class="trouble">Spent: further questions are refused until ${moment(one.anew_at, now.value)}.</small>` : null}</div></li>`)}</ul>`;
}

/** The goals: set, checked, remarked on, reached or given up. */

import { html, useState } from "../html.js";
import { scheduleWords } from "../core/schedule_words.js";
import { counted, moment } from "../core/words.js";
import { ConfirmButton } from "../parts/confirm.js";
import { State, Words } from "../parts/detail.js";
import { Button, Field } from "../parts/field.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { request } from "../net/api.js";
import { now } from "../state/store.js";
import { Routine } from "./routine.js";

const STATES = { active: ["good", "active"], done: ["off", "reached"], dropped: ["off", "given up"] };
const OFFERED = [["Once a day", ""], ["Every 4 hours", "every 4h"], ["Every day at 18:00", "0 18 * * *"], ["Every Friday at 18:00", "0 18 * * 5"]];

export function Goals() {
  const { data, trouble, reload } = useResource("/goals");
  useLive("reflection", reload);
  if (!data) return trouble ? html`<${Trouble} text="The goals could not be read." failure=${trouble} act=${reload} />` : html`<${Loading} />`;
  const open = data.goals.filter((goal) => goal.state === "active");
  const past = data.goals.filter((goal) => goal.state !== "active");
  return html`<${NewGoal} done=${reload} />
    <h2>Active</h2>
    ${open.length ? html`<ul class="things">${open.map((goal) => html`<${Goal} key=${goal.goal_id} goal=${goal} done=${reload} />`)}</ul>` : html`<${Empty}>There is no goal. Set one above, such as “Hand in the tax return by Friday”.</${Empty}>`}
    ${past.length ? html`<h2>Reached or given up</h2><ul class="things">${past.map((goal) => html`<${Goal} key=${goal.goal_id} goal=${goal} done=${reload} />`)}</ul>` : null}
    <h2>The checks</h2>
    <${Routine} path="/goals" state=${data} name="Checking" verb="Check all goals now" what="All goals are being checked." done=${reload} />`;
}

function NewGoal({ done }) {
  const [text, type] = useState("");
  const [schedule, plan] = useState("");
  const [trouble, fail] = useState("");
  const set = async (event) => {
    event.preventDefault();
    if (!text.trim()) return fail("Write what you want to achieve.");
    try {
      await request("POST", "/goals", { text, schedule, by: "page" });
      type("");
      fail("");
      done();
    } catch (failure) {
      fail(failure.message);
    }
  };
  return html`<form class="box" onSubmit=${set} noValidate>
    <${Field} label="New goal" trouble=${trouble}>${(given) => html`<input type="text" ...${given} dir="auto" maxlength="1000" placeholder="Hand in the tax return by Friday" value=${text} onInput=${(event) => type(event.currentTarget.value)} />`}</${Field}>
    <${Field} label="Check it" help=${schedule ? scheduleWords(schedule) : "At most one remark at a time; what was said is not said again."}>${(given) => html`<select ...${given} value=${schedule} onChange=${(event) => plan(event.currentTarget.value)}>${OFFERED.map(([title, value]) => html`<option key=${value} value=${value}>${title}</option>`)}</select>`}</${Field}>
    <div class="deeds"><button class="accent" type="submit">Set goal</button></div>
  </form>`;
}

function Goal({ goal, done }) {
  const [trouble, fail] = useState(null);
  const change = (body) => request("PATCH", `/goals/${encodeURIComponent(goal.goal_id)}`, { ...body, by: "page" });
  const act = (body) => change(body).then(() => (fail(null), done()), fail);
  const [tone, word] = STATES[goal.state];
  return html`<li><div class="head"><h3 class="grow" dir="auto">${goal.text}</h3><${State} state=${tone}>${word}</${State}></div>
    <p>${[scheduleWords(goal.schedule) || goal.schedule, goal.state === "active" && goal.next_at ? `next check ${moment(goal.next_at, now.value)}` : "", goal.checks ? `${counted(goal.checks, "check")}, ${goal.quiet} without a remark` : "not checked yet"].filter(Boolean).join(" · ")}</p>
    ${goal.words ? html`<${Words}>${goal.words}</${Words}><p><small>${goal.words_at ? moment(goal.words_at, now.value) : ""}</small></p>` : null}
    ${trouble ? html`<p class="trouble" role="alert">Not changed: ${trouble.message}</p>` : null}
    <div class="row-acts">
      ${goal.is_seen ? null : html`<${Button} kind="quiet edged" label=${`Mark the remark on ${goal.text} as read`} act=${() => act({ seen: goal.words_at })}>Got it</${Button}>`}
      ${goal.state === "active"
        ? html`<${Button} kind="quiet edged" label=${`Mark ${goal.text} as reached`} act=${() => act({ state: "done" })}>Reached</${Button}>
          <${ConfirmButton} kind="quiet edged" label=${`Give up ${goal.text}`} title="Give up this goal?" verb="Give it up" text="It is not checked any more. You can take it up again below." act=${async () => (await change({ state: "dropped" }), done())}>Give up</${ConfirmButton}>`
        : html`<${Button} kind="quiet edged" label=${`Take up ${goal.text} again`} act=${() => act({ state: "active" })}>Take up again</${Button}>`}
    </div></li>`;
}

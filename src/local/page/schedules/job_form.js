/** The form of a job, a new one or one that is changed: its schedule is explained while it is typed, with the next times as the scheduler counts them. */

import { html, useEffect, useState } from "../html.js";
import { MODES } from "../core/modes.js";
import { MISSED, OFFERED, scheduleWords } from "../core/schedule_words.js";
import { moment } from "../core/words.js";
import { Back } from "../parts/detail.js";
import { Field } from "../parts/field.js";
import { ScreenHead } from "../parts/screen_head.js";
import { request } from "../net/api.js";
import { addressOf, goToScreen } from "../state/screens.js";
import { me, now } from "../state/store.js";
import { ownerRequest } from "../state/system.js";

const EMPTY = { prompt: "", schedule: OFFERED[0][1], name: "", mode: "dontAsk", time_zone: "", missed: "once", session_id: "", max_runs_a_day: "", max_tokens_a_day: "" };
const PAUSE_MS = 250; // after the last key, before the API is asked

/** @param {{job?: any}} given the one that is changed; none for a new one */
export function JobForm({ job = null }) {
  const [order, put] = useState(job ? orderOf(job) : EMPTY);
  const [trouble, fail] = useState({ field: "", text: "" });
  const [isBusy, mark] = useState(false);
  const change = (field) => (event) => (fail({ field: "", text: "" }), put({ ...order, [field]: event.currentTarget.value }));
  const box = (field, more = {}) => (given) => html`<input type="text" ...${given} ...${more} value=${order[field]} onInput=${change(field)} />`;
  const on = (field) => (trouble.field === field ? trouble.text : "");
  const save = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    if (!order.prompt.trim()) return fail({ field: "prompt", text: "Write what is to be asked." });
    mark(true);
    try {
      const send = MODES.find((one) => one.id === order.mode)?.ownerOnly ? ownerRequest : request;
      const { job_id: id } = await (job ? send("PUT", `/cron/${encodeURIComponent(job.job_id)}`, bodyOf(order)) : send("POST", "/cron", bodyOf(order)));
      goToScreen("schedules", id);
    } catch (failure) {
      const field = Object.keys(EMPTY).find((name) => failure.message.startsWith(name)) ?? "";
      fail({ field, text: failure.message });
      mark(false);
    }
  };
  const back = job ? addressOf("schedules", job.job_id) : addressOf("schedules");
  return html`<${Back} href=${back}>${job ? job.name : "All schedules"}</${Back}>
    <${ScreenHead} title=${job ? "Change a schedule" : "New schedule"} text=${job ? "It counts from now on. Its runs stay." : "A question that LoCAL2 asks at set times, also while you are away."} />
    <div><form class="box" onSubmit=${save} noValidate>
      <${Field} label="Question" trouble=${on("prompt")}>${(given) => html`<textarea ...${given} rows="3" dir="auto" placeholder="What is new about local language models?" value=${order.prompt} onInput=${change("prompt")}></textarea>`}</${Field}>
      <${When} order=${order} trouble=${on("schedule") || on("time_zone")} change=${change("schedule")} choose=${(schedule) => (fail({ field: "", text: "" }), put({ ...order, schedule }))} />
      <${Field} label="Name" help="If it is empty, the question is the name." trouble=${on("name")}>${box("name", { maxlength: 80, dir: "auto" })}</${Field}>
      <fieldset class="ways"><legend>What it may do</legend>
        ${MODES.filter((mode) => me.value.owner || !mode.ownerOnly).map((mode) => html`<label key=${mode.id}><input type="radio" name="mode" value=${mode.id} checked=${order.mode === mode.id} onChange=${change("mode")} /><span>${mode.title}<small>${mode.text}</small></span></label>`)}
        ${on("mode") ? html`<small class="trouble" role="alert">${on("mode")}</small>` : null}</fieldset>
      <details class="more-fields" open=${["time_zone", "missed", "session_id", "max_runs_a_day", "max_tokens_a_day"].includes(trouble.field)}><summary>More</summary>
        <${Field} label="Time zone" help="Such as Europe/Berlin. Without one, that of this machine or of the settings of cron." trouble=${on("time_zone")}>${box("time_zone")}</${Field}>
        <${Field} label="Times that pass while LoCAL2 does not run" trouble=${on("missed")}>${(given) => html`<select ...${given} value=${order.missed} onChange=${change("missed")}>${Object.entries(MISSED).map(([id, words]) => html`<option key=${id} value=${id}>${words}</option>`)}</select>`}</${Field}>
        <${Field} label="Conversation" help="A name for one conversation of all its runs. Without one, each run has its own." trouble=${on("session_id")}>${box("session_id", { placeholder: "evenings" })}</${Field}>
        <${Field} label="Runs a day at most" help="Without a number, that of the settings of cron." trouble=${on("max_runs_a_day")}>${box("max_runs_a_day", { type: "number", min: 1, max: 1440 })}</${Field}>
        <${Field} label="Tokens a day at most" trouble=${on("max_tokens_a_day")}>${box("max_tokens_a_day", { type: "number", min: 1 })}</${Field}>
      </details>
      ${trouble.text && !on(trouble.field || "none") ? html`<p class="trouble" role="alert">The job was not ${job ? "changed" : "made"}: ${trouble.text}</p>` : null}
      <div class="deeds"><button class="accent" type="submit" aria-disabled=${isBusy || null}>${job ? "Save changes" : "Save schedule"}</button> <a class="as-button" href=${back}>Cancel</a></div>
    </form></div>`;
}

/** The schedule with what is offered, its words, and its next times. */
function When({ order, trouble, change, choose }) {
  const shown = useTimes(order.schedule, order.time_zone);
  const words = scheduleWords(order.schedule);
  const help = html`${words ? html`<b>${words}.</b> ` : null}${shown.times ? `Next: ${shown.times.map((time) => moment(time, now.value)).join(" · ")} (${shown.zone}).` : ""}`;
  return html`<div class="when">
    <${Field} label="When" trouble=${trouble || shown.trouble} help=${help}>${(given) => html`<div class="offers" role="group" aria-label="Offered times">${OFFERED.map(([title, schedule]) => html`<button type="button" key=${schedule} aria-pressed=${order.schedule === schedule} onClick=${() => choose(schedule)}>${title}</button>`)}</div>
      <input type="text" ...${given} autocomplete="off" spellcheck=${false} value=${order.schedule} onInput=${change} />`}</${Field}>
    <p class="help">Five fields: minute, hour, day of the month, month, day of the week (1 is Monday). Or a time, <code>at 2026-12-24T18:00</code>; a delay, <code>in 10m</code>; an interval, <code>every 30m</code>.</p></div>`;
}

const UNKNOWN = { times: null, zone: "", trouble: "" };

/** `{times, zone, trouble}` of a schedule, asked for a moment after the last change; nothing is known before. */
function useTimes(schedule, zone) {
  const [found, put] = useState(UNKNOWN);
  useEffect(() => {
    const stop = new AbortController();
    put(UNKNOWN);
    const timer = setTimeout(() => {
      if (!scheduleWords(schedule) && !schedule.trim()) return put({ times: null, zone: "", trouble: "Write when, or choose one of these." });
      request("GET", `/cron/times?${new URLSearchParams({ schedule, time_zone: zone })}`, undefined, { signal: stop.signal }).then(
        ({ times, time_zone, problem }) => put({ times: problem ? null : times, zone: time_zone, trouble: problem }),
        (failure) => stop.signal.aborted || put({ times: null, zone: "", trouble: failure.message })
      );
    }, PAUSE_MS);
    return () => (clearTimeout(timer), stop.abort());
  }, [schedule, zone]);
  return found;
}

/** A job as the form has it. */
function orderOf(job) {
  return Object.fromEntries(Object.entries(EMPTY).map(([name, usual]) => [name, job[name] == null ? usual : String(job[name])]));
}

/** What was filled in. */
function bodyOf(order) {
  const { max_runs_a_day: runs, max_tokens_a_day: tokens, ...texts } = order;
  const given = Object.fromEntries(Object.entries(texts).filter(([, value]) => value.trim()));
  return { ...given, ...(runs ? { max_runs_a_day: Number(runs) } : {}), ...(tokens ? { max_tokens_a_day: Number(tokens) } : {}), by: "page" };
}

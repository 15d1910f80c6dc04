/** The critic's grades and comparisons, how fit it is, and how often the user agrees with it. */

import { html, useEffect, useState } from "../html.js";
import { agreement, agreementInWords, judgementsIn, ratingsIn, verdictOf } from "../core/judgements.js";
import { moment } from "../core/words.js";
import { request } from "../net/api.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { watchBus } from "../state/following.js";
import { addressOf } from "../state/screens.js";
import { now } from "../state/store.js";

const SUBJECTS = ["critique.result", "pairwise.result", "user.feedback"];
const PAGE = 100;
const SOON_MS = 400; // what comes together is read together
const WORDS = { unparsed: "the judge's reply could not be read", failed: "the judge could not be asked", skipped: "too many answers waited" };

/** Entries of the journal with their payloads, the latest first, and how to get earlier ones; read again when new ones pass. */
export function useJudgements(subjects = SUBJECTS) {
  const [page, put] = useState({ entries: null, before: null, trouble: null });
  const read = (before) => {
    const query = new URLSearchParams({ limit: String(PAGE), payloads: "true", ...(before ? { before: String(before) } : {}) });
    for (const one of subjects) query.append("subject", one);
    return request("GET", `/journal?${query}`);
  };
  const load = () => read(null).then(({ entries, before }) => put({ entries, before, trouble: null }), (trouble) => put((had) => ({ ...had, trouble })));
  const earlier = () => read(page.before).then(({ entries, before }) => put({ entries: [...(page.entries ?? []), ...entries], before, trouble: null }), (trouble) => put({ ...page, trouble }));
  useEffect(() => {
    let timer = 0;
    void load();
    const end = watchBus((name, header) => {
      if (name === "message" && subjects.includes(header.subject)) timer ||= setTimeout(() => ((timer = 0), void load()), SOON_MS);
    });
    return () => (clearTimeout(timer), end());
  }, []);
  return { ...page, load, earlier };
}

/** @param {{row: any}} given the critic, as it says how it is; nothing where it does not run */
export function Judgements({ row }) {
  const { entries, before, trouble, load, earlier } = useJudgements();
  const found = judgementsIn(entries ?? []).filter((one) => one.status !== "judge_unfit");
  const ratings = ratingsIn(entries ?? []);
  const { model, self_test: tested, grading_off: isOff, problem } = row?.details ?? {};
  const columns = [
    { id: "at", title: "When", value: (one) => one.at, show: (one) => html`<a href=${["#", "c", ...[one.sessionId, one.query_id].filter(Boolean).map(encodeURIComponent)].join("/")} title="Open the answer">${moment(one.at, now.value)}</a>` },
    { id: "kind", title: "Of", value: (one) => (one.kind === "grade" ? `answer ${one.respondent_id ?? "A"}` : "A and B") },
    { id: "verdict", title: "Verdict", value: (one) => one.score ?? one.winner ?? "", show: (one) => (one.kind === "grade" ? html`<b>${one.score == null ? "none" : `${one.score} of 5`}</b>` : html`<a href=${addressOf("participants", "critic", "compare", one.query_id)}>${verdictOf(one)}</a>`) },
    { id: "feedback", title: "Feedback", show: (one) => html`${one.feedback || WORDS[one.status] || "none"}${one.self_judged ? html` <small>judged by the model that answered</small>` : null}`, isWide: true },
    { id: "rating", title: "You", value: (one) => rated(ratings, one) },
  ];
  return html`<dl class="known">
      <dt>judge</dt><dd>${model || "unknown: the critic is not running"}</dd>
      <dt>self-test</dt><dd>${tested || "not made yet: it is made before the first grade counts"}</dd>
      ${problem ? html`<dt>problem</dt><dd class="bad">${problem}</dd>` : null}
      ${entries ? html`<dt>agreement</dt><dd>${agreementInWords(agreement(found, ratings))}</dd>` : null}</dl>
    ${trouble ? html`<${Trouble} text="The judgements could not be read." failure=${trouble} act=${load} />` : null}
    ${found.length ? html`<${Table} label="Judgements" columns=${columns} rows=${found} keyOf=${(one) => one.key} />` : entries ? html`<${Empty}>${isOff ? html`Grading is off. <a href=${addressOf("settings", "critic", "model")}>Choose another judge</a>` : html`No answer was graded yet: the critic grades each shortly after it is complete.<${Example} ask="What is the capital of France?" />`}</${Empty}>` : trouble ? null : html`<${Loading} />`}
    ${before ? html`<p class="more-messages"><${Button} act=${earlier}>Earlier judgements</${Button}></p>` : null}`;
}

function rated(ratings, { kind, query_id: id, respondent_id: who }) {
  if (kind !== "grade") return "";
  return { 1: "good", "-1": "bad" }[ratings.get(`${id} ${who ?? "A"}`)] ?? "–";
}

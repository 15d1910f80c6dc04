/** Two answers to one question side by side; blind: in random order, voted on before anything is said of them. */

import { html, useMemo, useState } from "../html.js";
import { judgementsIn, questionsIn, verdictOf, votesInWords } from "../core/judgements.js";
import { counted, moment } from "../core/words.js";
import { Prose } from "../markdown/prose.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { addressOf } from "../state/screens.js";
import { now } from "../state/store.js";
import { useJudgements } from "./judgements.js";

const VOTES = "local2.votes";
const COMPARISONS = ["pairwise.result", "query.received"];

function readVotes() {
  try {
    return JSON.parse(localStorage.getItem(VOTES) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** @param {{query: string}} given of the comparison, or nothing for the list of them */
export function Compare({ query }) {
  const { entries, before, trouble, load, earlier } = useJudgements(COMPARISONS);
  const [votes, keep] = useState(readVotes);
  const [isBlind, blind] = useState(true);
  const found = judgementsIn(entries ?? []);
  const questions = questionsIn(entries ?? []);
  const one = found.find((each) => each.query_id === query);
  const vote = (choice) => {
    const next = { ...votes, [query]: { vote: choice, winner: one?.winner ?? null } };
    localStorage.setItem(VOTES, JSON.stringify(next));
    keep(next);
  };
  return html`<div class="compare-head"><label class="switch"><input type="checkbox" checked=${isBlind} onChange=${(event) => blind(event.target.checked)} /> Blind: in random order, without names and verdict until you have voted</label><p class="help" role="status">${votesInWords(votes)}</p></div>
    ${trouble ? html`<${Trouble} text="The comparisons could not be read." failure=${trouble} act=${load} />` : null}
    ${!entries ? (trouble ? null : html`<${Loading} />`) : query ? html`<${Pair} key=${`${query} ${isBlind}`} query=${query} question=${questions.get(query)} verdict=${one} isBlind=${isBlind} voted=${votes[query]?.vote ?? ""} vote=${vote} />`
      : found.length ? html`<ul class="plain-rows comparisons">${found.map((each) => html`<li key=${each.key}><span><a href=${addressOf("participants", "critic", "compare", each.query_id)}dir="auto">${questions.get(each.query_id) ?? "A question that is not on record any more"}</a> <small>${moment(each.at, now.value)} · ${isBlind && !votes[each.query_id] ? "not voted on yet" : verdictOf(each)}</small></span></li>`)}</ul>`
      : html`<${Empty}>No two answers were compared yet. A second respondent answers every question, too, and the critic compares the answers: add <code>{"generator_b": {"model": "MODEL"}}</code> to “more participants” in the <a href=${addressOf("settings", "system", "more_participants")}>settings of the system</a>, and start LoCAL2 again.</${Empty}>`}
    ${before && !query ? html`<p class="more-messages"><${Button} act=${earlier}>Earlier comparisons</${Button}></p>` : null}`;
}

function Pair({ query, question, verdict, isBlind, voted, vote }) {
  const { data, trouble, reload } = useResource(`/query/${encodeURIComponent(query)}/respondents`);
  const turned = useMemo(() => isBlind && crypto.getRandomValues(new Uint8Array(1))[0] % 2 === 1, []);
  const answers = (data?.respondents ?? []).filter((one) => one.respondent_id === "A" || one.respondent_id === "B");
  const order = turned ? [...answers].reverse() : answers;
  const isShown = !isBlind || Boolean(voted);
  return html`<p class="crumbs"><a href=${addressOf("participants", "critic", "compare")}>‹ All comparisons</a></p>
    ${question ? html`<p class="asked-of" dir="auto">${question}</p>` : null}
    ${trouble ? html`<${Trouble} text="The answers could not be read." failure=${trouble} act=${reload} />` : null}
    ${!data ? (trouble ? null : html`<${Loading} />`) : order.length < 2 ? html`<${Empty}>There are no two answers to this question any more.</${Empty}>` : html`
      <div class="pair">${order.map((one, index) => html`<section key=${one.respondent_id} aria-label=${`${index ? "Second" : "First"} answer`}><h2>${index ? "Second" : "First"} answer ${isShown ? html`<small>${one.respondent_id}${one.model ? `, ${one.model}` : ""}${one.usage?.output_tokens ? `, ${counted(one.usage.output_tokens, "token")}` : ""}</small>` : null}</h2><${Prose} text=${one.answer ?? ""} live=${false} /></section>`)}</div>
      <div class="row-acts vote" role="group" aria-label="Your vote">${order.map((one, index) => html`<button type="button" key=${one.respondent_id} class="edged" aria-pressed=${voted === one.respondent_id} onClick=${() => vote(one.respondent_id)}>The ${index ? "second" : "first"} is better</button>`)}<button type="button" class="edged" aria-pressed=${voted === "tie"} onClick=${() => vote("tie")}>Equally good</button></div>
      <div role="status">${isShown && verdict?.winner ? html`<p class="verdict"><b>The critic: ${verdictOf(verdict)}.</b>${voted ? html` You: ${voted === "tie" ? "equally good" : `${voted} is better`}.` : null}</p><p>${verdict.feedback || "No explanation was given."} ${verdict.self_judged ? html`<small>The judge has written one of the two.</small>` : null}</p>` : isShown ? html`<p>The critic has not compared them.</p>` : null}</div>`}`;
}

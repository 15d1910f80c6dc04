/** What the heartbeat has said of goals, as notices, until it is seen: here or anywhere else. */

import { request } from "../net/api.js";
import { notices, tell } from "./store.js";

let known = "";
/** The text of each notice, by its goal. */
const told = new Map();

/** `counters` are those of the participant that keeps goals: they say when there is something to be looked up. */
export async function hearGoals({ goals_unseen: unseen = 0, goals_said: said = 0 } = {}) {
  if (known === `${unseen} ${said}`) return;
  known = `${unseen} ${said}`;
  const goals = unseen ? await request("GET", "/goals").then((found) => found.goals, () => null) : [];
  if (goals === null) known = ""; // and looked up with the next sign of life
  else show(goals.filter((goal) => !goal.is_seen));
}

function show(unseen) {
  const texts = new Map(unseen.map((goal) => [goal.goal_id, `${goal.text}: ${goal.words}`]));
  for (const [id, text] of told) if (texts.get(id) !== text) putAway(id);
  for (const goal of unseen) {
    if (told.has(goal.goal_id)) continue;
    told.set(goal.goal_id, texts.get(goal.goal_id));
    tell(texts.get(goal.goal_id), { title: "Got it", run: () => void see(goal) });
  }
}

function putAway(id) {
  notices.value = notices.value.filter((one) => one.text !== told.get(id));
  told.delete(id);
}

async function see(goal) {
  putAway(goal.goal_id);
  await request("PATCH", `/goals/${goal.goal_id}`, { seen: goal.words_at, by: "page" }).catch((failure) => tell(`The remark could not be marked as read: ${failure.message}`));
}
